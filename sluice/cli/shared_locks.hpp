#pragma once

#include <memory>
#include <string>

#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/smb/server/file/peer_servers.hpp"

namespace sluice::cli {

/// Servers of one host that serve the same files and use the same lock file honour each other's
/// share modes, byte-range locks and removals (sluice serve --shared-locks).
///
/// FILE is a cross-process mutex of kind byte_ranges. A server that changes the state of a served
/// file, or inspects it in order to do so, holds the entity of that file in the meantime. Next to
/// it, in the directory FILE.d, each served file that is open has a board, a file of its own that
/// stays empty: its servers lock its signs shared, and its bytes as their clients do
/// (offset_locks). The kernel holds all these locks, and releases them when the process ends.
///
/// Invariants:
///   1. A server has the board of a file open if and only if it shows a sign there, or has sealed
///      it.
///   2. Boards are opened and removed, and signs shown, only while holding the file's entity. So
///      all servers of a file have the same board, and an answer obtained before showing a sign is
///      still valid then.
///   3. A board is removed only if no other server shows a sign on it. If the entity cannot be
///      acquired at once, its board stays, empty, until it is used again.
/// Thread safety: any thread; a file that it returns, one at a time. Allocates:
/// the returned objects.
class shared_locks final : public smb::server::peer_servers {
public:
    /// Opens or creates both. Errors: as file_handle::open and directory_handle::open.
    [[nodiscard]] static result<std::unique_ptr<shared_locks>> open(const std::string& path);

    [[nodiscard]] std::unique_ptr<smb::server::peer_file> file(const vfs::file_key& key) override;

private:
    class shared_file;

    shared_locks(std::unique_ptr<fsmutex::shared_fs_mutex> entities, io::path_handle boards) noexcept
        : entities_(std::move(entities)), boards_(std::move(boards)) {}

    std::unique_ptr<fsmutex::shared_fs_mutex> entities_;
    io::path_handle boards_;
};

}  // namespace sluice::cli

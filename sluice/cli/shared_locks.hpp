#pragma once

#include <memory>
#include <string>

#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/smb/server/file/peer_servers.hpp"

namespace sluice::cli {

/// Servers of one host that serve the same files and name the same lock file mind each other's share modes,
/// byte-range locks and removals (sluice serve --shared-locks).
///
/// FILE is a mutex of the file system, of the kind byte_ranges: whoever changes how a served file stands, or
/// looks at it to that end, has that file's entity for as long as it takes. Beside it, in FILE.d, each served
/// file that is open has a board of its own, which stays empty: its servers have its signs locked shared, and
/// its bytes as their clients do (offset_locks). All of it is the kernel's, and goes with the process.
///
/// Invariants:
///   1. A server has the board of a file open if and only if it shows a sign there, or has it sealed.
///   2. Boards are opened, removed, and signs shown, only with the file's entity: so all servers of a file
///   have the same board, and what one asks before it shows a sign still holds when it does.
///   3. A board is removed only if nobody else shows a sign on it. One whose entity could not be had at once
///   stays, empty, until it is used again.
/// Thread safety: the loop's thread. Allocates: what is returned.
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

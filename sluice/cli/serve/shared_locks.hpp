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
/// it, in the directory FILE.d, each served file that is open has a lock-byte file, which stays
/// empty: the servers lock the share-mode lock bytes of it shared, and its other bytes as their
/// clients do (offset_locks). The kernel holds all these locks, and releases them when the process
/// ends.
///
/// Invariants:
///   1. A server has the lock-byte file of a file open if and only if it holds a share-mode lock
///      byte there, or has claimed the file exclusively.
///   2. Lock-byte files are opened and removed, and share-mode lock bytes acquired, only while
///      holding the file's entity. So all servers of a file have the same lock-byte file, and an
///      answer obtained before acquiring a lock byte is still valid then.
///   3. A lock-byte file is removed only if no other server holds a share-mode lock byte there. If
///      the entity cannot be acquired at once, the lock-byte file stays, empty, until it is used
///      again.
/// Thread safety: any thread; a file that it returns, one at a time. Allocates:
/// the returned objects.
class shared_locks final : public smb::server::peer_servers {
public:
    /// Opens or creates both. Errors: as file_handle::open and directory_handle::open.
    [[nodiscard]] static result<std::unique_ptr<shared_locks>> open(const std::string& path);

    [[nodiscard]] std::unique_ptr<smb::server::peer_file> file(const vfs::file_key& key) override;

private:
    class shared_file;

    shared_locks(std::unique_ptr<fsmutex::shared_fs_mutex> entities, io::path_handle lock_byte_files) noexcept
        : entities_(std::move(entities)), lock_byte_files_(std::move(lock_byte_files)) {}

    std::unique_ptr<fsmutex::shared_fs_mutex> entities_;
    io::path_handle lock_byte_files_;
};

}  // namespace sluice::cli

#pragma once

#include <memory>

#include "sluice/fsmutex/lock_threads.hpp"
#include "sluice/fsmutex/process/lock_file.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::fsmutex {

/// Creates one file for each entity in a directory, named by its 16 hexadecimal digits. The process
/// that created it, and holds the kernel's lock on it, holds the entity. For file systems with few
/// known guarantees, and for users who want to list the locks with ls. Exclusive only: a shared
/// request is granted exclusively.
///
/// Invariant: the process that locks the inode of an entity's name holds the entity. So a process
/// takes over the file of a dead creator by locking it, and there is no moment at which two could
/// break it. The file holds the creator's host, boot, process and start time as text. That informs
/// users, and allows takeover only on the same host where other hosts have mounted the file system:
/// this host may not see the lock of another host.
///
/// A waiter holds nothing; order and pauses are random. Not fair. Deaths are reported (owner_died).
/// Errors: also EACCES, EROFS, ENOSPC, EDQUOT; EMFILE, because each held entity costs a descriptor.
/// Allocates: per request. Complexity: seven system calls per entity.
class lock_files final : public shared_fs_mutex {
public:
    /// Opens or creates the directory `path`, which is not removed. Errors: as path_handle::open;
    /// ENOTDIR; EACCES, EROFS. Allocates: the mutex.
    [[nodiscard]] static result<std::unique_ptr<shared_fs_mutex>> open(
        const io::path_handle& base, io::path_view path,
        const dependencies& from = dependencies::of_this_machine()) noexcept {
        return open_with_access(base, path, from, {});
    }
    /// The same, with the permissions of a created file (lock_file.hpp). Errors: also ELOOP, EMLINK
    /// and EPERM for a file that another user may have planted.
    [[nodiscard]] static result<std::unique_ptr<shared_fs_mutex>> open_with_access(
        const io::path_handle& base, io::path_view path, const dependencies& from,
        const file_access& access) noexcept;

    ~lock_files() override;

    [[nodiscard]] result<std::vector<listed_request>> list() noexcept override;
    [[nodiscard]] int file_descriptor() const noexcept override;
    [[nodiscard]] algorithm which() const noexcept override { return algorithm::lock_files; }
    [[nodiscard]] bool has_shared_mode() const noexcept override { return false; }
    [[nodiscard]] bool is_fair() const noexcept override { return false; }

private:
    struct lock_directory;
    struct files;
    lock_files(std::unique_ptr<lock_directory> opened, const dependencies& from, fork_mark mark) noexcept;

    result<bool> enter(std::span<const entity> wanted, ticket& mine, wait_policy how) noexcept override;
    result<bool> poll(std::span<const entity> wanted, ticket& mine) noexcept override;
    void wait(std::span<const entity> wanted, ticket& mine, steady_time end) noexcept override;
    bool begin_wait(std::span<const entity> wanted, ticket& mine,
                    const std::shared_ptr<wake_up>& waker) noexcept override;
    void end_wait(ticket& mine) noexcept override;
    void leave(ticket& mine) noexcept override;
    void drop_copy(ticket& mine) noexcept override;
    void add_descriptors(const ticket& mine, std::vector<int>& into) const override;

    std::unique_ptr<lock_directory> directory_;
    lock_threads threads_;  // for requests that wait without a thread
};

}  // namespace sluice::fsmutex

#pragma once

#include <memory>

#include "sluice/fsmutex/lock_file.hpp"
#include "sluice/fsmutex/lock_threads.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::fsmutex {

/// Makes one file for each entity in a directory, named by its 16 hexadecimal digits; who made it, and holds
/// the kernel's lock on it, holds the entity. For file systems of which little is known, and for people who
/// want to see with ls what is locked. Exclusive only: who wants to share is alone, too.
///
/// Invariant: an entity is held by whoever holds the lock on the inode that its name leads to. So a file
/// whose maker died is taken over by locking it, and there is no moment at which two could break it. It holds
/// the maker's host, boot, process and start time as text, for people, and because on a file system that
/// other hosts have mounted only a file of the same host is taken over: the lock of another may not be seen
/// from here.
///
/// Nobody who waits holds anything; order and pauses are drawn. Not fair. Deaths are reported (owner_died).
/// Errors: also EACCES, EROFS, ENOSPC, EDQUOT; EMFILE, since each entity held costs a descriptor. Allocates:
/// per request. Complexity: seven system calls per entity.
class lock_files final : public shared_fs_mutex {
public:
    /// Opens the directory `path`, or makes it; it stays. Errors: as path_handle::open; ENOTDIR; EACCES,
    /// EROFS. Allocates: the mutex.
    [[nodiscard]] static result<std::unique_ptr<shared_fs_mutex>> open(
        const io::path_handle& base, io::path_view path,
        const seams& from = seams::of_this_machine()) noexcept {
        return open_with_access(base, path, from, {});
    }
    /// The same, with the permissions of a file that is created: lock_file.hpp. Errors: also ELOOP, EMLINK
    /// and EPERM for a file that another user may have planted.
    [[nodiscard]] static result<std::unique_ptr<shared_fs_mutex>> open_with_access(
        const io::path_handle& base, io::path_view path, const seams& from,
        const file_access& access) noexcept;

    ~lock_files() override;

    [[nodiscard]] result<std::vector<listed_request>> list() noexcept override;
    [[nodiscard]] int file_descriptor() const noexcept override;
    [[nodiscard]] algorithm which() const noexcept override { return algorithm::lock_files; }
    [[nodiscard]] bool has_shared_mode() const noexcept override { return false; }
    [[nodiscard]] bool is_fair() const noexcept override { return false; }

private:
    struct folder;
    struct files;
    lock_files(std::unique_ptr<folder> opened, const seams& from, fork_mark mark) noexcept;

    result<bool> enter(std::span<const entity> wanted, ticket& mine, patience how) noexcept override;
    result<bool> poll(std::span<const entity> wanted, ticket& mine) noexcept override;
    void wait(std::span<const entity> wanted, ticket& mine, steady_time end) noexcept override;
    bool begin_wait(std::span<const entity> wanted, ticket& mine,
                    const std::shared_ptr<wake_up>& told) noexcept override;
    void end_wait(ticket& mine) noexcept override;
    void leave(ticket& mine) noexcept override;
    void drop_copy(ticket& mine) noexcept override;
    void add_descriptors(const ticket& mine, std::vector<int>& into) const override;

    std::unique_ptr<folder> folder_;
    lock_threads threads_;  // for requests that wait without a thread
};

}  // namespace sluice::fsmutex

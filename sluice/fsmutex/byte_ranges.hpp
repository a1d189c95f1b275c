#pragma once

#include <memory>

#include "sluice/fsmutex/process/lock_file.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::fsmutex {

/// Locks one byte of a file for each entity with the kernel's byte-range locks. A request acquires
/// all of them, or none, and then waits for the one that was contended. The file stays empty and is
/// not removed.
///
/// The kernel releases the locks of a process that dies at once and does not report the death:
/// owner_died() is never true. A waiter holds nothing, so requests do not deadlock. They are not
/// granted in order, however, and a request for many entities can be overtaken repeatedly. Hosts
/// exclude each other where the file system's locks do (NFSv4, CephFS). A wait without a deadline
/// sleeps in the kernel. A wait with a deadline polls every 8 to 16 ms, because the kernel has no
/// timed wait. So does every wait where other hosts can share the volume, because they might not
/// wake the waiter. Errors: EMFILE, ENFILE if no file description can be opened for a request;
/// ENOLCK; EOPNOTSUPP. Allocates: nothing per request. Complexity: a system call per entity, one to
/// unlock.
class byte_ranges final : public shared_fs_mutex {
public:
    /// Opens or creates the file. Errors: as file_handle::open. Allocates: the mutex.
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

    byte_ranges(const byte_ranges&) = delete;
    ~byte_ranges() override;

    [[nodiscard]] int file_descriptor() const noexcept override;
    [[nodiscard]] algorithm which() const noexcept override { return algorithm::byte_ranges; }
    [[nodiscard]] bool is_fair() const noexcept override { return false; }

private:
    struct files;
    byte_ranges(std::unique_ptr<files> opened, const dependencies& from, fork_mark mark) noexcept;

    result<bool> enter(std::span<const entity> wanted, ticket& mine, wait_policy how) noexcept override;
    result<bool> poll(std::span<const entity> wanted, ticket& mine) noexcept override;
    void wait(std::span<const entity> wanted, ticket& mine, steady_time end) noexcept override;
    bool begin_wait(std::span<const entity> wanted, ticket& mine,
                    const std::shared_ptr<wake_up>& waker) noexcept override;
    void end_wait(ticket& mine) noexcept override;
    void leave(ticket& mine) noexcept override;
    void drop_copy(ticket& mine) noexcept override;
    void add_descriptors(const ticket& mine, std::vector<int>& into) const override;

    std::unique_ptr<files> files_;
};

}  // namespace sluice::fsmutex

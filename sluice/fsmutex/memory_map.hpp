#pragma once

#include <atomic>
#include <memory>

#include "sluice/fsmutex/process/lock_file.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/fsmutex/yield_policy.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::fsmutex {

class mapped_file;

/// A queue in a mapped file. Locking and unlocking without contention takes no system call. The
/// releasing process grants the lock to a waiter and wakes it. For processes of one host.
///
/// Requests are granted in order of arrival. A thread that repeats its requests on a CPU with other
/// such threads may be delayed by a time slice. A waiter first yields once to earlier requests of
/// its CPU, or polls for some microseconds if those are all on other CPUs. Then it sleeps on a
/// futex. Deaths are reported (owner_died), of holders only. A waiter notices a death within 50 ms,
/// by the lock that the kernel keeps for every open mutex. That includes a process that left a
/// forked child, unless the child is in another namespace of process ids.
///
/// The file is created with all its blocks, 1.4 MiB, and removed by its last user. After a reboot
/// it is created again.
///
/// Damage: the file is untrusted. A process that can write it can keep others out, or grant one
/// lock to two processes. But no user crashes or waits without end, whatever is written into the
/// file at any moment, and wherever it is truncated. A user that finds damage records it in the
/// file. Then requests and waits fail with EBADMSG within 50 ms, check() and unlock() report it to
/// holders, and the file is refused until all its users have closed it. The last one removes it.
///
/// Signals: the first mutex of a process installs a handler of SIGBUS, which stays. It handles only
/// faults in files mapped by mutexes, caused by truncation, and calls the previous handler for
/// everything else. A fault still kills the process if the thread blocks SIGBUS, or if the program
/// later installs a handler that does not call the previous one. atomic_append installs the same
/// one; other algorithms need none.
///
/// A process stopped (SIGSTOP) within the tens of nanoseconds in which it holds the latch of the
/// queue stops the others until it continues or dies, also beyond their deadlines, but not longer
/// than limits::latch_wait_max: then they fail with EBUSY.
///
/// Errors: EBADMSG and EBUSY as above; ENOLCK if 4096 requests (of up to 8 entities; longer ones
/// count more) are outstanding. Allocates: nothing per request. Complexity: O(entities), whatever
/// the length of the queue.
class memory_map final : public shared_fs_mutex {
public:
    /// Opens or creates the file. Errors: as file_handle::open; EOPNOTSUPP on a volume that other
    /// hosts can have mounted: use atomic_append, as open_best_available does; EBADMSG if it has
    /// another format, or is damaged and still in use; ENOSPC; EBUSY if 1024 have it open, or a
    /// stopped process holds its latch; ENOMEM if the process has limits::guarded_maps_max open.
    /// Allocates: the mutex.
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

    ~memory_map() override;

    [[nodiscard]] result<std::vector<listed_request>> list() noexcept override;
    [[nodiscard]] int file_descriptor() const noexcept override;
    [[nodiscard]] algorithm which() const noexcept override { return algorithm::memory_map; }
    [[nodiscard]] bool is_fair() const noexcept override { return true; }

private:
    memory_map(std::unique_ptr<mapped_file> file, const dependencies& from, fork_mark mark) noexcept;

    result<bool> enter(std::span<const entity> wanted, ticket& mine, wait_policy how) noexcept override;
    result<bool> poll(std::span<const entity> wanted, ticket& mine) noexcept override;
    void wait(std::span<const entity> wanted, ticket& mine, steady_time end) noexcept override;
    wake_word prepare_wake(ticket& mine) noexcept override;
    void check_for_deaths(ticket& mine) noexcept override;
    void leave(ticket& mine) noexcept override;
    void drop_copy(ticket&) noexcept override {}
    result<void> check(const ticket& mine) noexcept override;

    void yield_to_neighbours(wait_policy how) noexcept;
    [[nodiscard]] bool stays_awake(std::uint32_t number, steady_time end) noexcept;

    std::unique_ptr<mapped_file> file_;
    int spins_;
    std::atomic<bool> met_neighbour_ = false;  // the last request had an earlier one on its CPU
    yield_policy yield_policy_;
};

}  // namespace sluice::fsmutex

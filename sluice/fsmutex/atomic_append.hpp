#pragma once

#include <atomic>
#include <memory>

#include "sluice/fsmutex/lock_threads.hpp"
#include "sluice/fsmutex/process/lock_file.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/fsmutex/yield_policy.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::fsmutex {

class queue_file;

/// A queue in a file. A request appends a record to the file and waits only for earlier records
/// that conflict with one of its entities, in order. The cost does not depend on the number of
/// entities.
///
/// Requests are granted in order of arrival. A thread that repeats its requests on a CPU with other
/// such threads may be delayed by a time slice. A waiter first yields once to earlier requests of
/// its CPU. If those are all on other CPUs, it polls its page of the file, as mapped memory, for
/// some microseconds. Then it sleeps in the kernel, on a lock that its nearest predecessor holds
/// until it is done or dead. With a deadline, or where other hosts can share the volume and might
/// not wake it, it polls every 8 to 16 ms. Deaths are reported (owner_died). A request that died
/// while it waited cannot be distinguished from a holder and is reported as well. Works between
/// hosts where the file system locks byte ranges between them. The last user removes the file. (The
/// idea is ordered locking by one total order, as in lock managers; the record is Lamport's time
/// stamp. On-disk format and reasons: docs/formats/fs_mutex_file.md, docs/algorithms/fs_mutex.md.)
///
/// Errors: ENOSPC, EDQUOT, EFBIG, EIO when appending; EBADMSG if the file is damaged, or was
/// truncated before or during the wait, in which case unlock() and check() of holders also report
/// it; EMFILE, ENFILE; ENOLCK. Allocates: a lane for each request of the largest number outstanding
/// at once. Complexity: four system calls without contention.
///
/// Signals: the first request of a process installs a handler of SIGBUS, as the first memory_map
/// does (see there), so that a waiter that reads mapped memory survives the truncation of the file.
class atomic_append final : public shared_fs_mutex {
public:
    /// Opens or creates the file. Errors: as file_handle::open; EBADMSG if it has another format;
    /// ETIMEDOUT if another process is stopped while opening it. Allocates: the mutex.
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

    ~atomic_append() override;

    [[nodiscard]] result<std::vector<listed_request>> list() noexcept override;
    [[nodiscard]] int file_descriptor() const noexcept override;
    [[nodiscard]] algorithm which() const noexcept override { return algorithm::atomic_append; }
    [[nodiscard]] bool is_fair() const noexcept override { return true; }

private:
    struct lane;
    class lanes;
    atomic_append(std::unique_ptr<queue_file> file, std::unique_ptr<lanes> requests, const dependencies& from,
                  fork_mark mark) noexcept;

    result<bool> enter(std::span<const entity> wanted, ticket& mine, wait_policy how) noexcept override;
    result<bool> poll(std::span<const entity> wanted, ticket& mine) noexcept override;
    void wait(std::span<const entity> wanted, ticket& mine, steady_time end) noexcept override;
    bool begin_wait(std::span<const entity> wanted, ticket& mine,
                    const std::shared_ptr<wake_up>& waker) noexcept override;
    void end_wait(ticket& mine) noexcept override;
    void leave(ticket& mine) noexcept override;
    void drop_copy(ticket& mine) noexcept override;
    result<void> check(const ticket& mine) noexcept override;

    [[nodiscard]] result<void> generate_id(lane& mine) noexcept;
    [[nodiscard]] result<void> append(lane& mine, std::span<const entity> wanted) noexcept;
    void yield_to_neighbours(lane& mine, std::span<const entity> wanted, wait_policy how) noexcept;
    [[nodiscard]] bool has_neighbour(lane& mine, std::span<const entity> wanted) noexcept;
    [[nodiscard]] bool has_place(const lane& mine) const noexcept;
    [[nodiscard]] bool erase(lane& mine) noexcept;
    void stay_awake(lane& mine, steady_time end) noexcept;
    static void unlock_ids(lane& mine) noexcept;
    static void unlock_id(lane& mine) noexcept;
    [[nodiscard]] result<bool> is_past(lane& mine, std::span<const entity> wanted) noexcept;
    [[nodiscard]] result<bool> is_free(lane& mine, std::span<const entity> wanted) noexcept;

    std::unique_ptr<queue_file> file_;
    std::unique_ptr<lanes> lanes_;
    lock_threads threads_;  // for requests that wait without a thread
    int looks_;
    // relaxed: a hint from a recent request.
    std::atomic<bool> met_neighbour_ = false;
    yield_policy yield_policy_;
};

}  // namespace sluice::fsmutex

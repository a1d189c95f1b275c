#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/io/loop/operation_record.hpp"

namespace sluice::io {

/// Threads that carry out file operations which would block a loop. Used by multiplexers whose
/// kernel interface has no asynchronous file I/O. Only call_threads, name_resolver and the probe of
/// atomicity_probe.hpp start other threads.
///
/// No locks: each worker has its own queue, which the loop fills, and returns operations through
/// the loop's queue. Thread safety: submit() and take_done() from the loop's thread. Allocates: in
/// create() only.
class worker_pool {
public:
    using operation_handoff =
        intrusive_mpsc_queue<detail::operation_record, &detail::operation_record::handoff_link>;

    /// Called, on a worker's thread, when take_done() has something to return.
    class listener {
    public:
        virtual void work_done() noexcept = 0;

    protected:
        ~listener() = default;
    };

    /// Errors: EAGAIN if a thread cannot be started, ENOMEM.
    [[nodiscard]] static result<std::unique_ptr<worker_pool>> create(std::size_t threads,
                                                                     listener& notified) noexcept;
    worker_pool(const worker_pool&) = delete;
    worker_pool& operator=(const worker_pool&) = delete;
    /// Waits for the operations in progress; none may be queued.
    ~worker_pool();

    /// Passes an operation to the worker with the shortest queue. The operation and its buffers
    /// stay in place until take_done() returns it.
    void submit(detail::operation_record& op) noexcept;

    /// Requests that a submitted operation not be begun. One that has begun runs to its end,
    /// because the kernel cannot interrupt it.
    static void cancel(detail::operation_record& op, int code) noexcept;

    /// Returns an operation whose outcome is known; null if there is none.
    [[nodiscard]] detail::operation_record* take_done() noexcept;
    [[nodiscard]] bool has_done() const noexcept { return not done_.empty(); }

private:
    struct worker {
        operation_handoff queue;
        std::atomic<std::uint32_t> posted{0};  // counts submitted operations; an
                                               // idle worker waits on it
        std::size_t load = 0;                  // the loop's count of operations
                                               // submitted and not returned
        std::atomic<bool> stopping{false};
        std::thread thread;
    };

    explicit worker_pool(listener& notified) noexcept : notified_(notified) {}
    void work(worker& self) noexcept;

    listener& notified_;
    operation_handoff done_;
    std::vector<std::unique_ptr<worker>> workers_;
};

/// Carries out a file operation on the calling thread, and waits until it is complete.
void perform_blocking(detail::operation_record& op) noexcept;

}  // namespace sluice::io

#pragma once

#include <deque>
#include <functional>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/io/task/call_threads.hpp"
#include "tests/smb_simulation/world/loop_scheduler.hpp"

namespace sluice::smb_simulation {

/// Threads of a simulation that carry out calls in the order of their submission, like the workers
/// of a file system (call_threads_options::executor). A call may take simulated time (slow_volume).
/// The scheduler outlives them; they end after stop(). Thread safety: the thread that runs.
/// Allocates: per thread and call.
class simulated_workers final : public io::call_executor {
public:
    simulated_workers(loop_scheduler& scheduler, std::size_t count, const std::string& name = "worker")
        : scheduler_(scheduler) {
        for (std::size_t i = 0; i != count; ++i)
            scheduler_.spawn(name + " " + std::to_string(i), [this] { run(); }, true);
    }

    void submit(std::move_only_function<void() noexcept> call) { add(nullptr, std::move(call)); }
    void submit(io::queued_call& one) noexcept override {
        add(&one, [&one]() noexcept { carry_out(one); });
    }
    [[nodiscard]] bool cancel(io::queued_call& one) noexcept override {
        return std::erase_if(queue_, [&](const waiting_call& each) { return each.which == &one; }) != 0;
    }
    [[nodiscard]] io::call_statistics statistics() const noexcept override {
        return {.queued = queue_.size(), .running = running_, .completed = completed_};
    }

    /// Ends the threads after the calls that were submitted.
    void stop() noexcept {
        is_stopping_ = true;
        scheduler_.wake(this);
    }

private:
    struct waiting_call {
        const io::queued_call* which = nullptr;
        std::move_only_function<void() noexcept> call;
    };

    void add(const io::queued_call* which, std::move_only_function<void() noexcept> call) {
        queue_.push_back({which, std::move(call)});
        scheduler_.wake(this);
    }
    void run() {
        for (;;) {
            while (queue_.empty() and not is_stopping_)
                (void)scheduler_.park(this);
            if (queue_.empty()) return;
            waiting_call next = std::move(queue_.front());
            queue_.pop_front();
            ++running_;
            next.call();
            --running_;
            ++completed_;
            loop_scheduler::may_switch();
        }
    }

    loop_scheduler& scheduler_;
    std::deque<waiting_call> queue_;
    std::size_t running_ = 0;
    std::uint64_t completed_ = 0;
    bool is_stopping_ = false;
};

}  // namespace sluice::smb_simulation

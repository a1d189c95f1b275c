#pragma once

#include <deque>
#include <functional>
#include <string>

#include "tests/smb_simulation/loop_scheduler.hpp"

namespace sluice::smb_simulation {

/// Threads of a simulation that carry out calls in the order of their submission, like the workers
/// of a file system. A call may take simulated time (slow_volume). The scheduler outlives them;
/// they end after stop(). Thread safety: the thread that runs. Allocates: per thread and call.
class simulated_workers {
public:
    simulated_workers(loop_scheduler& scheduler, std::size_t count) : scheduler_(scheduler) {
        for (std::size_t i = 0; i != count; ++i)
            scheduler_.spawn("worker " + std::to_string(i), [this] { run(); }, true);
    }
    simulated_workers(const simulated_workers&) = delete;
    simulated_workers& operator=(const simulated_workers&) = delete;

    void submit(std::move_only_function<void() noexcept> call) {
        queue_.push_back(std::move(call));
        scheduler_.wake(this);
    }
    /// Ends the threads after the calls that were submitted.
    void stop() noexcept {
        is_stopping_ = true;
        scheduler_.wake(this);
    }

private:
    void run() {
        for (;;) {
            while (queue_.empty() and not is_stopping_)
                (void)scheduler_.park(this);
            if (queue_.empty()) return;
            auto call = std::move(queue_.front());
            queue_.pop_front();
            call();
            loop_scheduler::may_switch();
        }
    }

    loop_scheduler& scheduler_;
    std::deque<std::move_only_function<void() noexcept>> queue_;
    bool is_stopping_ = false;
};

}  // namespace sluice::smb_simulation

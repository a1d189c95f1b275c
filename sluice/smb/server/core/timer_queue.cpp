#include "sluice/smb/server/core/timer_queue.hpp"

#include <algorithm>

namespace sluice::smb::server {

timer_queue::entry timer_queue::add(std::chrono::milliseconds within,
                                    std::move_only_function<void() noexcept> what) {
    ENSURE(background_.latch().is_mine());
    const entry added = entries_.emplace(clock_.steady_now() + within, std::move(what));
    if (not is_running_) {
        is_running_ = true;
        background_.spawn(run());
    }
    return added;
}

io::task<void> timer_queue::run() noexcept {
    while (not entries_.empty()) {
        const auto until_first = entries_.begin()->first - clock_.steady_now();
        const std::chrono::nanoseconds pause =
            std::clamp<std::chrono::nanoseconds>(until_first, std::chrono::milliseconds(1), granularity);
        const deadline until(pause);
        io::task<bool> waiting = pass(background_.loop(), until);
        const bool is_time = co_await unlatched(background_.latch(), std::move(waiting));
        if (not is_time) break;
        loop_activity::begin(std::nullopt);  // not for the request that started this task
        while (not entries_.empty() and entries_.begin()->first <= clock_.steady_now()) {
            // Taken out first: what it does may add to the list.
            auto due = entries_.extract(entries_.begin());
            due.mapped()();
        }
    }
    is_running_ = false;
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/core/timer_queue.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/server/core/loop_wait.hpp"

namespace sluice::smb::server {

timer_queue::entry timer_queue::add(std::chrono::milliseconds within, work what) {
    const steady_time when = clock_.steady_now() + within;
    entry added;
    bool starts = false;
    {
        const lock_guard held(mutex_);
        added = {when, next_number_++};
        ENSURE(entries_.emplace(added, std::move(what)).second, "a number names one entry");
        starts = not std::exchange(is_running_, true);
    }
    if (starts) background_.spawn(run());
    return added;
}

bool timer_queue::cancel(const entry& which) noexcept {
    work unused;  // destroyed without the mutex
    const lock_guard held(mutex_);
    const auto found = entries_.find(which);
    if (found == entries_.end()) return false;
    unused = std::move(found->second);
    entries_.erase(found);
    return true;
}

void timer_queue::end(std::optional<entry>& kept) noexcept {
    if (not kept) return;
    (void)cancel(*std::exchange(kept, std::nullopt));
}

std::chrono::nanoseconds timer_queue::next_pause() noexcept {
    ENSURE(background_.loop().is_owner(), "the task that waits is on the first loop");
    const lock_guard held(mutex_);
    ENSURE(is_running_, "is_running_ is set while the task waits");
    is_running_ = not entries_.empty();
    if (not is_running_) return std::chrono::nanoseconds::zero();
    const auto until_first = entries_.begin()->first.first - clock_.steady_now();
    return std::clamp<std::chrono::nanoseconds>(until_first, std::chrono::milliseconds(1), granularity);
}

timer_queue::work timer_queue::take_due() noexcept {
    const lock_guard held(mutex_);
    ENSURE(is_running_, "the task that waits takes the entries");
    if (entries_.empty() or entries_.begin()->first.first > clock_.steady_now()) return {};
    // Taken out first: what it does may add to the list.
    return std::move(entries_.extract(entries_.begin()).mapped());
}

io::task<void> timer_queue::run() noexcept {
    for (;;) {
        const std::chrono::nanoseconds pause = next_pause();
        if (pause == pause.zero()) co_return;
        const deadline until(pause);
        io::task<bool> waiting = pass(background_.loop(), until);
        const bool is_time = co_await within_work(std::move(waiting));
        if (not is_time) break;
        loop_activity::begin(std::nullopt);  // not for the request that started this task
        ENSURE(background_.loop().is_owner(), "entries run on the first loop");
        while (work due = take_due())
            due();
    }
    const lock_guard held(mutex_);
    is_running_ = false;
}

}  // namespace sluice::smb::server

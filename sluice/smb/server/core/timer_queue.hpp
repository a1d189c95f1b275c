#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/core/background.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"

namespace sluice::smb::server {

/// Timers that can be cancelled. Most never expire, because they are time limits. One task, on the
/// first loop, waits for all of them, and checks the list every `granularity`.
///
/// Invariants:
///   1. One task runs, or is about to, while there are entries, until the background is cancelled.
///   2. An entry is in the list until it is cancelled or begins. One that has begun may run while
///   its owner tries to cancel it: it locks the object that it changes, and does nothing if its
///   own number is outdated.
/// Monitor: any thread; `mutex_` guards the list. Entries run on the first loop, without the mutex.
/// Allocates: a node per entry. Complexity: O(log n). Lifetime: the clock and the
/// background outlive it.
class timer_queue {
public:
    static constexpr std::chrono::milliseconds granularity{250};

    using steady_time = clock_source::steady_time;
    /// Identifies an entry; numbers are not used again.
    using entry = std::pair<steady_time, std::uint64_t>;
    using work = std::move_only_function<void() noexcept>;

    timer_queue(clock_source& clock, background_work& background) noexcept
        : clock_(clock), background_(background) {}
    timer_queue(const timer_queue&) = delete;
    timer_queue& operator=(const timer_queue&) = delete;

    /// Runs `what` once `within` has passed; late by up to the granularity. It is not run after the
    /// background was cancelled. The caller holds no mutex: the first entry starts the task.
    entry add(std::chrono::milliseconds within, work what);
    /// Returns false if the entry is not in the list any more: it was cancelled, or has begun,
    /// perhaps on another loop. The caller holds no leaf mutex.
    bool cancel(const entry& which) noexcept;
    /// Cancels the entry of an owner, and resets the owner's copy. None: does nothing.
    void end(std::optional<entry>& kept) noexcept;
    [[nodiscard]] std::size_t size() const noexcept {
        const lock_guard held(mutex_);
        return entries_.size();
    }

private:
    [[nodiscard]] io::task<void> run() noexcept;
    // Returns how long to sleep until the next check; zero: the list is empty, and the task ends.
    [[nodiscard]] std::chrono::nanoseconds next_pause() noexcept;
    // Returns the first entry if it is due; otherwise an empty one.
    [[nodiscard]] work take_due() noexcept;

    clock_source& clock_;
    background_work& background_;
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    std::map<entry, work> entries_ SLUICE_GUARDED_BY(mutex_);
    std::uint64_t next_number_ SLUICE_GUARDED_BY(mutex_) = 0;
    bool is_running_ SLUICE_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::smb::server

#pragma once

#include <chrono>
#include <functional>
#include <map>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/core/background.hpp"

namespace sluice::smb::server {

/// Things to be done at a later time unless they are struck out before: time limits of which most are never
/// reached. One task waits for all of them, looking at the list every `granularity`.
///
/// Thread safety: under the latch, and what is done is done with it. Allocates: a node per entry. The clock
/// and the background outlive it.
class timer_queue {
public:
    static constexpr std::chrono::milliseconds granularity{250};

    using steady_time = clock_source::steady_time;
    using entry = std::multimap<steady_time, std::move_only_function<void() noexcept>>::iterator;

    timer_queue(clock_source& clock, background_work& background) noexcept
        : clock_(clock), background_(background) {}
    timer_queue(const timer_queue&) = delete;
    timer_queue& operator=(const timer_queue&) = delete;

    /// Does `what` once `within` has passed; late by up to the granularity. The entry may be struck out until
    /// `what` begins. Nothing is done after the background was cancelled.
    entry add(std::chrono::milliseconds within, std::move_only_function<void() noexcept> what);
    void cancel(entry which) noexcept {
        ENSURE(background_.latch().is_mine());
        entries_.erase(which);
    }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

private:
    [[nodiscard]] io::task<void> run() noexcept;

    clock_source& clock_;
    background_work& background_;
    std::multimap<steady_time, std::move_only_function<void() noexcept>> entries_;
    bool is_running_ = false;
};

}  // namespace sluice::smb::server

#pragma once

#include <chrono>
#include <functional>
#include <map>

#include "sluice/base/clock.hpp"
#include "sluice/io/task_group.hpp"

namespace sluice::smb::server {

/// Things to be done at a later time unless they are struck out before: time limits of which most are never
/// reached. One task waits for all of them, looking at the list every `granularity`.
///
/// Thread safety: the loop's thread. Allocates: a node per entry. The clock, loop and group outlive it.
class agenda {
public:
    static constexpr std::chrono::milliseconds granularity{250};

    using steady_time = clock_source::steady_time;
    using entry = std::multimap<steady_time, std::move_only_function<void() noexcept>>::iterator;

    agenda(io::io_multiplexer& loop, clock_source& clock, io::task_group& tasks) noexcept
        : loop_(loop), clock_(clock), tasks_(tasks) {}
    agenda(const agenda&) = delete;
    agenda& operator=(const agenda&) = delete;

    /// Does `what` once `within` has passed; late by up to the granularity. The entry may be struck out until
    /// `what` begins. Nothing is done after the group was cancelled.
    entry add(std::chrono::milliseconds within, std::move_only_function<void() noexcept> what);
    void strike_out(entry which) noexcept { entries_.erase(which); }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

private:
    [[nodiscard]] io::task<void> run() noexcept;

    io::io_multiplexer& loop_;
    clock_source& clock_;
    io::task_group& tasks_;
    std::multimap<steady_time, std::move_only_function<void() noexcept>> entries_;
    bool is_running_ = false;
};

}  // namespace sluice::smb::server

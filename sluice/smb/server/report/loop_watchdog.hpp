#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/core/loop_activity.hpp"
#include "sluice/smb/server/core/thread_usage.hpp"
#include "sluice/smb/server/report/domain_names.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::smb::server {

/// Decides from samples of io_multiplexer::turn() whether a turn of a loop takes long.
///
/// Time in which the loop's thread sleeps in a call, or computes, counts. Time in which it waits
/// for a processor does not, because a busy host says nothing about the file systems.
class turn_observer {
public:
    enum class finding : std::uint8_t {
        none,
        slow,       ///< a turn has ended that lasted for limits::loop_turn_max, and
                    ///< no longer than a stall
        stalled,    ///< one turn has lasted for limits::loop_stall_min; reported once
        recovered,  ///< that turn has ended, or the loop sleeps
    };
    struct report {
        finding what = finding::none;
        clock_source::duration lasted{};  // how long the turn was observed
    };
    struct sample {
        std::uint64_t turn = 0;
        clock_source::steady_time now{};
        std::optional<thread_usage> usage{};  // none: as if it slept
    };

    /// Whether a sample with this turn is another one of the same turn.
    [[nodiscard]] bool is_in_turn(std::uint64_t turn) const noexcept {
        return turn % 2 == 1 and turn == turn_;
    }

    /// Takes the next sample. At most limits::loop_samples_apart_max counts between two samples,
    /// because a process that did not run itself learns nothing about its loops.
    [[nodiscard]] report observe(const sample& next) noexcept;

private:
    [[nodiscard]] clock_source::duration counted(clock_source::duration apart,
                                                 const std::optional<thread_usage>& usage) noexcept;

    std::uint64_t turn_ = 0;
    clock_source::steady_time sampled_{};
    std::optional<clock_source::duration> cpu_time_;  // that this turn has counted; none: not known
    clock_source::duration lasted_{};
    bool is_stalled_ = false;
};

/// Reports each turn of an event loop that takes long, with the request that the loop served: a
/// file system that does not answer, or an endless loop. Takes no lock of the server, because the
/// stuck loop may hold it.
/// Thread safety: check() by one thread, which is none of the loops'; the rest by any.
class loop_watchdog {
public:
    /// All outlive the watchdog.
    loop_watchdog(const std::vector<const loop_activity*>& loops, const clock_source& clock,
                  thread_usage_source& threads, event_log& log);

    /// Calls `found` with the number of a domain (vfs::fs_domain::number) whose call has kept
    /// a loop's thread asleep from one sample to the next: its calls are not for loops.
    /// Before the first check().
    void on_blocked_call(std::function<void(std::uint32_t domain)> found) {
        on_blocked_call_ = std::move(found);
    }

    /// Takes a sample of each loop, and logs what it finds. To be called every
    /// limits::loop_sample_period.
    void check() noexcept;

    /// The names for the numbers in loop_work::domain.
    [[nodiscard]] domain_names& domains() noexcept { return domains_; }

    /// The number of loops that are stuck in a turn now. A loop whose thread sleeps in a call of a
    /// file system does not count: the file system hangs, and not the server.
    [[nodiscard]] std::size_t stuck_loops() const noexcept {
        return stuck_loops_.load(std::memory_order_relaxed);
    }
    /// How often a loop was found stuck so far.
    [[nodiscard]] std::uint64_t stalls() const noexcept { return stalls_.load(std::memory_order_relaxed); }
    /// How many turns took limits::loop_turn_max so far, those of stalls among them.
    [[nodiscard]] std::uint64_t slow_turns() const noexcept {
        return slow_turns_.load(std::memory_order_relaxed);
    }

private:
    struct watched_loop {
        const loop_activity* activity = nullptr;
        turn_observer observer{};
        std::uint64_t turn = 0;                      // at the last sample
        std::optional<loop_work> work{};             // the last seen in the turn observed
        vfs::inline_call_slot::running_call call{};  // at the last sample
        bool is_stalled = false;
        bool waits_in_call = false;  // the call has kept the thread asleep since the last sample
        std::optional<clock_source::steady_time> slow_logged{};
        std::uint64_t unlogged = 0;  // slow turns since then
    };
    void check(std::size_t number, watched_loop& loop) noexcept;
    void check_call(watched_loop& loop, const std::optional<thread_usage>& usage) noexcept;
    void report_slow(std::size_t number, watched_loop& loop, clock_source::duration lasted) noexcept;
    void write_line(std::string_view what, std::size_t number, const watched_loop& loop,
                    clock_source::duration lasted, std::uint64_t unlogged = 0) noexcept;

    std::vector<watched_loop> loops_;
    const clock_source& clock_;
    thread_usage_source& threads_;
    event_log& log_;
    std::function<void(std::uint32_t)> on_blocked_call_;
    domain_names domains_;
    std::atomic<std::size_t> stuck_loops_{0};
    std::atomic<std::uint64_t> stalls_{0};
    std::atomic<std::uint64_t> slow_turns_{0};
};

}  // namespace sluice::smb::server

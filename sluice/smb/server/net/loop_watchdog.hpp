#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/io/io_multiplexer.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::smb::server {

/// Decides from samples of io_multiplexer::turn() whether a loop is stuck in one turn.
class turn_observer {
public:
    enum class finding : std::uint8_t {
        none,
        stalled,    ///< one turn has lasted for limits::loop_turn_max; reported once
        recovered,  ///< that turn has ended, or the loop sleeps
    };
    struct report {
        finding what = finding::none;
        clock_source::duration lasted{};  // how long the turn was observed
    };

    /// Takes the next sample, at time `now`. At most limits::loop_samples_apart_max counts between two
    /// samples, because a process that did not run itself learns nothing about its loops.
    [[nodiscard]] report observe(std::uint64_t turn, clock_source::steady_time now) noexcept;

private:
    std::uint64_t turn_ = 0;
    clock_source::steady_time sampled_{};
    clock_source::duration lasted_{};
    bool is_stalled_ = false;
};

/// Reports each event loop that is stuck in one turn: a file system that does not answer, or an endless loop.
/// Takes no lock of the server, because the stuck loop may hold it. Thread safety: check() by one thread,
/// which is none of the loops'; stalls() by any.
class loop_watchdog {
public:
    /// `loops`, `clock` and `log` outlive the watchdog.
    loop_watchdog(std::vector<const io::io_multiplexer*> loops, const clock_source& clock, event_log& log);

    /// Takes a sample of each loop, and logs what it finds. To be called every limits::loop_sample_period.
    void check() noexcept;

    /// How often a loop was found stuck so far.
    [[nodiscard]] std::uint64_t stalls() const noexcept { return stalls_.load(std::memory_order_relaxed); }

private:
    struct watched_loop {
        const io::io_multiplexer* loop = nullptr;
        turn_observer observer{};
    };

    std::vector<watched_loop> loops_;
    const clock_source& clock_;
    event_log& log_;
    std::atomic<std::uint64_t> stalls_{0};
};

}  // namespace sluice::smb::server

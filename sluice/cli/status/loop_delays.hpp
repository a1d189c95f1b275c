#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::cli {

/// Measures how long each event loop takes to begin work that is handed to it: the delay that every
/// request on the loop has as well.
///
/// Invariant: at most one probe of a loop is posted at a time, so that a stuck loop collects none.
/// Thread safety: probe() and milliseconds() by one thread; the probes run on the loops. They share
/// the state, so that one that runs late finds it.
/// Allocates: the state, and a node for each probe.
class loop_delays {
public:
    /// The loops and the clock outlive this, and the posted probes.
    loop_delays(std::vector<io::io_multiplexer*> loops, const clock_source& clock);
    loop_delays(const loop_delays&) = delete;
    loop_delays& operator=(const loop_delays&) = delete;

    /// Posts a probe to each loop whose last one has run.
    void probe() noexcept;
    /// Returns the delay of the last probe of each loop. One that still waits counts with the time
    /// that it has waited.
    [[nodiscard]] std::vector<double> milliseconds() const;

private:
    struct loop_state {
        std::atomic<bool> is_waiting{false};
        std::atomic<std::int64_t> posted_ns{0};
        std::atomic<std::int64_t> delay_ns{0};
    };
    struct shared_state {
        explicit shared_state(std::size_t loops) : of_loop(loops) {}
        std::vector<loop_state> of_loop;
    };
    [[nodiscard]] std::int64_t now_ns() const noexcept;

    std::vector<io::io_multiplexer*> loops_;
    const clock_source& clock_;
    std::shared_ptr<shared_state> state_;
};

}  // namespace sluice::cli

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/simulated/simulation_options.hpp"

namespace sluice::io {

/// A multiplexer over real descriptors whose other ends are in this process and this thread.
/// Everything that depends on randomness or time is drawn from a seed: which operation advances
/// next, how far, after how long, whether it fails, and whether a cancel comes in time. The same
/// seed and the same program give the same run, event for event, as long as the descriptors are
/// pipes, Unix socket pairs and files: TCP has timing of its own.
///
/// The rules of every multiplexer apply: requests in one direction of a stream keep their order,
/// and a write to a stream is complete unless an error, a cancel or a deadline ends it. Operations
/// on different handles, in different directions, and on one file are reordered.
///
/// Time is virtual. now() passes a little with every step, and jumps to the next event when there
/// is nothing else to do, so a deadline of an hour takes no time. If no event can ever happen
/// (every operation waits for another, and no timer is left), run() and the functions like it
/// return `nothing_ready` instead of waiting indefinitely, and stalled() lists the waiting
/// operations.
///
/// Thread safety: as every multiplexer; but it never sleeps, so it takes the posts of other threads
/// at the loop's next check. Allocates: as every multiplexer, when attaching; and stalled().
class simulated_multiplexer : public io_multiplexer {
public:
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

    /// Returns the number of events so far, and a digest of them all: two runs with equal digests
    /// were the same run.
    [[nodiscard]] virtual std::uint64_t events() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t digest() const noexcept = 0;

    /// Returns the pending operations, one per line, if the last check found that none of them can
    /// ever advance; otherwise an empty string. A sleep is never in it, because it ends.
    [[nodiscard]] virtual std::string stalled() const = 0;

    /// Returns the simulation's clocks.
    [[nodiscard]] virtual simulated_clock& clock_of_simulation() noexcept = 0;

protected:
    explicit simulated_multiplexer(std::uint64_t seed) noexcept : seed_(seed) {}

private:
    std::uint64_t seed_;
};

/// Errors: ENOMEM. Allocates: yes.
[[nodiscard]] result<std::unique_ptr<simulated_multiplexer>> make_simulated_multiplexer(
    simulation_options options) noexcept;

/// Returns an event as text for people: "read failed on handle 3: errno 5 (1.000123 s)".
[[nodiscard]] std::string to_text(const simulation_event& event);

}  // namespace sluice::io

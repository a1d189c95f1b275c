#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/simulated/simulation_options.hpp"

namespace sluice::io {

/// A multiplexer over real descriptors whose other ends are in this process and this thread, with everything
/// that is chance or time drawn from a seed: which operation advances next, how far, after how long, whether
/// it fails, whether a cancel comes in time. The same seed, and the same program, give the same run, event
/// for event, as long as the descriptors are pipes, Unix socket pairs and files: TCP has timing of its own.
///
/// What holds of every multiplexer holds here: requests in one direction of a stream keep their order, a
/// write to a stream goes out whole unless an error, a cancel or a deadline ends it. Reordered are operations
/// on different handles, in different directions, and on one file.
///
/// Time is virtual. now() passes a little with every step, and jumps to the next event when there is nothing
/// else to do, so a deadline of an hour takes no time. If nothing can ever happen (every operation waits for
/// another, and no timer is left) run() and its like return `nothing_ready` instead of waiting for ever, and
/// stalled() says who waits for what.
///
/// Thread safety: as every multiplexer; but it never sleeps, so what other threads post is taken when the
/// loop looks next. Allocates: as every multiplexer, when attaching; and stalled().
class simulated_multiplexer : public io_multiplexer {
public:
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

    /// Events so far, and a digest of them all: two runs with equal digests were the same run.
    [[nodiscard]] virtual std::uint64_t events() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t digest() const noexcept = 0;

    /// What is pending, one operation in a line, if the last look found that none of it can ever advance;
    /// otherwise nothing. A sleep is never in it: it ends.
    [[nodiscard]] virtual std::string stalled() const = 0;

    /// The simulation's clocks.
    [[nodiscard]] virtual simulated_clock& clock_of_simulation() noexcept = 0;

protected:
    explicit simulated_multiplexer(std::uint64_t seed) noexcept : seed_(seed) {}

private:
    std::uint64_t seed_;
};

/// Errors: ENOMEM. Allocates: yes.
[[nodiscard]] result<std::unique_ptr<simulated_multiplexer>> make_simulated_multiplexer(
    simulation_options options) noexcept;

/// "read failed on handle 3: errno 5 (1.000123 s)", for people.
[[nodiscard]] std::string to_text(const simulation_event& event);

}  // namespace sluice::io

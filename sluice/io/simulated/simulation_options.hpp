#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/io/loop/operation.hpp"

namespace sluice::io {

/// A probability, in thousandths: 0 never, 1000 always.
using permille = std::uint32_t;

/// An error some operations fail with.
struct injected_error {
    operation_kind on = operation_kind::read;
    std::optional<handle_kind> of{};  // none: every kind of handle
    int code = 0;                     // an errno value
    permille chance = 0;              // each time such an operation advances
    bool breaks = false;  // the connection is gone: everything on the handle fails with it from then on
};

/// An event of a simulation: enough to compare two runs, and to read their course. Handles are
/// identified by the multiplexer's own numbers, which are the same in every run; descriptors are
/// not.
struct simulation_event {
    enum class kind : std::uint8_t {
        advanced,     // amount: bytes moved in one step
        finished,     // amount: bytes in all
        refused,      // the descriptor was not ready
        held_back,    // it was not even asked: a spurious "would block"
        failed,       // amount: the errno value, injected or the kernel's
        cancelling,   // a cancel was heard, and will be heeded later unless the operation is faster
        cancelled,    // amount: the errno value
        began,        // start() may try it itself
        time_passed,  // amount: nanoseconds, because nothing could happen before
        stalled,      // no event can ever happen again without an action from outside
    };
    std::uint64_t number = 0;
    clock_source::steady_time when{};
    kind what = kind::advanced;
    operation_kind operation = operation_kind::read;
    std::uint32_t handle = 0;
    std::int64_t amount = 0;

    [[nodiscard]] friend bool operator==(const simulation_event&, const simulation_event&) = default;
};

/// Gets to know every event of a simulation, as it happens.
class simulation_listener {
public:
    virtual void on_event(const simulation_event& event) noexcept = 0;

protected:
    ~simulation_listener() = default;
};

/// Decides what happens while a loop waits, in a simulation of several loops that share a clock: each on a
/// thread of its own, of which one runs at a time.
/// Thread safety: whichever of these threads runs.
class simulation_sleeper {
public:
    /// Called by `loop`, which can do nothing before `until` unless one of `readiness` becomes ready or an
    /// item is posted to it. Other threads run until then, and time passes. May return early. Returns false
    /// if nothing can ever happen, on any loop. Blocks: while others run.
    [[nodiscard]] virtual bool sleep(const void* loop, clock_source::steady_time until,
                                     std::span<pollfd> readiness) noexcept = 0;
    /// Something was posted to `loop`, which sleeps.
    virtual void wake(const void* loop) noexcept = 0;

protected:
    ~simulation_sleeper() = default;
};

/// How a simulated multiplexer behaves. As made, it is calm: only the order in which operations advance is
/// drawn.
struct simulation_options {
    std::uint64_t seed = 1;

    /// A transfer moves only a random part of its bytes: reads are short, writes take several
    /// steps.
    permille short_transfers = 0;
    /// A descriptor that is ready is not asked until later.
    permille spurious_waits = 0;
    /// A cancel is heeded late: the operation may still succeed.
    permille late_cancels = 0;
    /// start() tries the operation itself. Never, by default: so nothing completes inside it.
    permille speculation = 0;
    /// The time before an operation may take its next step: anything up to this.
    std::chrono::nanoseconds delay_max{0};
    /// The time every step takes, and every look that finds nothing.
    std::chrono::nanoseconds step_time{1000};
    std::vector<injected_error> errors{};

    /// Shared with the program under test, so that there is one time; null: the multiplexer has its own.
    simulated_clock* clock = nullptr;
    simulation_listener* listener = nullptr;
    /// Runs other loops while this one waits; they share `clock`. Null: there is no other, and time jumps.
    simulation_sleeper* sleeper = nullptr;

    /// Everything that may happen to a program whose system is in order, often.
    [[nodiscard]] static simulation_options rough(std::uint64_t seed);
    /// And what happens when it is not: the errors of full and failing devices, and of lost connections.
    [[nodiscard]] static simulation_options hostile(std::uint64_t seed);
};

}  // namespace sluice::io

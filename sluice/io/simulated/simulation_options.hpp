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

/// An error with which some operations fail.
struct injected_error {
    operation_kind on = operation_kind::read;
    std::optional<handle_kind> of{};  // none: every kind of handle
    int code = 0;                     // an errno value
    permille chance = 0;              // each time such an operation advances
    // The connection is lost: everything on the handle fails with it from then on.
    bool breaks = false;
};

/// An event of a simulation: enough to compare two runs, and to read their course. Handles are
/// identified by the multiplexer's own numbers, which are the same in every run; descriptors are
/// not.
struct simulation_event {
    enum class kind : std::uint8_t {
        advanced,     // amount: bytes moved in one step
        finished,     // amount: bytes in all
        refused,      // the descriptor was not ready
        held_back,    // held back although it may be ready: a spurious "would block"
        failed,       // amount: the errno value, injected or the kernel's
        cancelling,   // a cancel was received, and takes effect later unless
                      // the operation is faster
        cancelled,    // amount: the errno value
        began,        // start() may try it itself
        time_passed,  // amount: nanoseconds; no event was possible before
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

/// Receives every event of a simulation, as it happens.
class simulation_listener {
public:
    virtual void on_event(const simulation_event& event) noexcept = 0;

protected:
    ~simulation_listener() = default;
};

/// Decides the order of events while a loop waits, in a simulation of several loops that share a
/// clock: each on a thread of its own, of which one runs at a time. Thread safety: called by the
/// running thread.
class simulation_sleeper {
public:
    /// Called by `loop`, which has nothing to do before `until` unless one of `readiness` becomes
    /// ready or an item is posted to it. Other threads run until then, and time passes. May return
    /// early. Returns false if no event can ever happen, on any loop. Blocks: while others run.
    [[nodiscard]] virtual bool sleep(const void* loop, clock_source::steady_time until,
                                     std::span<pollfd> readiness) noexcept = 0;
    /// Called when an item was posted to `loop`, which sleeps.
    virtual void wake(const void* loop) noexcept = 0;

protected:
    ~simulation_sleeper() = default;
};

/// The behaviour of a simulated multiplexer. By default it is calm: only the order in which
/// operations advance is random.
struct simulation_options {
    std::uint64_t seed = 1;

    /// A transfer moves only a random part of its bytes: reads are short, writes take several
    /// steps.
    permille short_transfers = 0;
    /// A ready descriptor is treated as not ready until later.
    permille spurious_waits = 0;
    /// A cancel takes effect late: the operation may still succeed.
    permille late_cancels = 0;
    /// start() tries the operation itself. Never, by default: so no operation completes inside it.
    permille speculation = 0;
    /// The longest time before an operation may take its next step.
    std::chrono::nanoseconds delay_max{0};
    /// The time of every step, and of every check that finds no event.
    std::chrono::nanoseconds step_time{1000};
    std::vector<injected_error> errors{};

    /// Shared with the program under test, so that there is one time; null: the
    /// multiplexer has its own.
    simulated_clock* clock = nullptr;
    simulation_listener* listener = nullptr;
    /// Runs other loops while this one waits; they share `clock`. Null: there are no others, and
    /// time jumps.
    simulation_sleeper* sleeper = nullptr;

    /// Returns options for frequent occurrence of everything that can happen on a working system.
    [[nodiscard]] static simulation_options adversarial(std::uint64_t seed);
    /// Returns options that add the errors of full and failing devices, and of lost connections.
    [[nodiscard]] static simulation_options hostile(std::uint64_t seed);
};

}  // namespace sluice::io

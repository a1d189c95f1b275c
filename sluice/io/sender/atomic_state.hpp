#pragma once

#include <atomic>
#include <cstdint>

#include "sluice/base/ensure.hpp"

namespace sluice::io {

/// The state machine of an operation that any thread may start and cancel. It is one word and, for
/// every event, a step to the next state that returns the action for the caller. The state machine
/// neither starts nor posts anything itself, so that a test can visit every order of events (`Word`
/// is std::atomic outside tests).
///
/// States, as sets of bits; "owner" is the multiplexer's thread:
///
///     idle                  not started, or done
///     pending claimed       a thread has won start(); the owner has not begun the I/O
///     pending               the owner has begun the I/O
///     pending valued        the value has been signalled
///     pending valued ended  the I/O is over, but the done signal waits for the queued cancel item
///
/// `cancel_requested` joins `claimed`, `cancel_queued` joins the states after it; `valued` stays
/// after done until the next start.
///
/// Thread safety: claim(), cancel(), is_pending() and has_value() from any thread; the
/// others from the owner.
///
/// Invariants:
///   1. One claim() succeeds from each idle state, and one done or cancel_arrived()
///      makes it idle again.
///   2. `claimed` is cleared by begin() alone, once per claim. So a cancel before it needs no item:
///      begin() will see it, and refuses to do any I/O.
///   3. The cancel item is queued, or about to be, exactly while `cancel_queued` is set: the thread
///      that sets it pushes the item, and only the item's arrival clears it.
///   4. The done signal is given only by a step to idle, from a state without `claimed` and
///      `cancel_queued`: then no item of this state is queued, nor will be before the next claim.
template <class Word = std::atomic<std::uint32_t>>
class atomic_state {
public:
    enum class cancel_step : std::uint8_t {
        nothing,    ///< not pending, already over, or already being cancelled
        post_item,  ///< push the cancel item: from any thread
        cancel_io,  ///< cancel the I/O: on the owner
    };

    /// Wins the right to start: returns true for one caller, false while pending. That caller then
    /// calls begin() on the owner: directly, or by the start item, which it pushes.
    [[nodiscard]] bool claim() noexcept {
        // relaxed: a failure is only reported.
        std::uint32_t seen = word_.load(std::memory_order_relaxed);
        while ((seen & pending) == 0) {
            // acquire: pairs with the release in step(), so that the claimer sees the state as done
            // left it. No release: the writes of the claimer reach the owner through the queue of
            // posted items.
            if (word_.compare_exchange_weak(seen, pending | claimed, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }

    /// The owner is about to begin the I/O. False: it was cancelled before; signal that and do no
    /// I/O.
    [[nodiscard]] bool begin() noexcept {
        const std::uint32_t before = step([](std::uint32_t s) { return s & ~(claimed | cancel_requested); });
        ENSURE((before & (pending | claimed)) == (pending | claimed));
        return (before & cancel_requested) == 0;
    }

    /// A thread wants the operation to end early.
    [[nodiscard]] cancel_step cancel(bool on_owner) noexcept {
        cancel_step then{};
        step([&](std::uint32_t s) {
            then = cancel_step::nothing;
            const bool over = (s & pending) == 0 or (s & valued) != 0;
            if (over or (s & cancel_queued) != 0) return s;
            if ((s & claimed) != 0) return s | cancel_requested;
            then = on_owner ? cancel_step::cancel_io : cancel_step::post_item;
            return on_owner ? s : s | cancel_queued;
        });
        return then;
    }

    /// The cancel item has reached the owner.
    enum class arrival_step : std::uint8_t { nothing, cancel_io, signal_done };
    [[nodiscard]] arrival_step cancel_arrived() noexcept {
        const std::uint32_t before = step([](std::uint32_t s) {
            const std::uint32_t after = s & ~cancel_queued;
            return (s & ended) != 0 ? after & ~(pending | ended) : after;
        });
        ENSURE((before & cancel_queued) != 0 and (before & claimed) == 0);
        if ((before & ended) != 0) return arrival_step::signal_done;
        return (before & valued) != 0 ? arrival_step::nothing : arrival_step::cancel_io;
    }

    /// The owner is about to signal the value.
    void value() noexcept {
        const std::uint32_t before = step([](std::uint32_t s) { return s | valued; });
        ENSURE((before & (pending | claimed | valued)) == pending);
    }

    /// The I/O is over. True: signal done. False: the cancel item is queued, and its arrival will
    /// signal done.
    [[nodiscard]] bool end() noexcept {
        const std::uint32_t before =
            step([](std::uint32_t s) { return (s & cancel_queued) != 0 ? s | ended : s & ~pending; });
        ENSURE((before & (pending | claimed | valued | ended)) == (pending | valued));
        return (before & cancel_queued) == 0;
    }

    [[nodiscard]] bool is_pending() const noexcept {
        // acquire: pairs with step(): writes before the done signal are visible to a thread that
        // sees the operation idle.
        return (word_.load(std::memory_order_acquire) & pending) != 0;
    }
    [[nodiscard]] bool has_value() const noexcept {
        return (word_.load(std::memory_order_acquire) & valued) != 0;  // as in is_pending()
    }
    [[nodiscard]] bool is_claimed() const noexcept {
        return (word_.load(std::memory_order_relaxed) & claimed) !=
               0;  // only the owner calls this: its own write
    }

private:
    static constexpr std::uint32_t pending = 1U << 0;
    static constexpr std::uint32_t claimed = 1U << 1;
    static constexpr std::uint32_t cancel_requested = 1U << 2;
    static constexpr std::uint32_t cancel_queued = 1U << 3;
    static constexpr std::uint32_t valued = 1U << 4;
    static constexpr std::uint32_t ended = 1U << 5;

    // Changes from a state to next(state); returns the previous state.
    template <class Next>
    std::uint32_t step(Next next) noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // checked by the exchange
        // release: pairs with the acquire in claim() and in the queries. acquire: the steps of one
        // state are totally ordered by this word, and each sees the writes of the previous one.
        while (not word_.compare_exchange_weak(seen, next(seen), std::memory_order_acq_rel,
                                               std::memory_order_relaxed)) {}
        return seen;
    }

    Word word_{};
};

}  // namespace sluice::io

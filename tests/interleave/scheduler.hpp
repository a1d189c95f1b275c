#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/sync/atomics.hpp"
#include "tests/interleave/store_buffers.hpp"

// Tries the orders in which the steps of a few threads can happen. A step is an access to a
// scheduled_atomics atomic, a wait or a wake-up; between two of them a thread runs alone. All
// accesses are sequentially consistent, unless limits::delays_stores is set: then a store that is
// not seq_cst becomes visible to other threads at a later step, so that loads may overtake it, as
// on every processor. Weaker orders are checked by TSan.

namespace sluice::interleave {

/// The threads of one schedule; created again for each.
class scenario {
public:
    scenario() = default;
    scenario(const scenario&) = delete;
    scenario& operator=(const scenario&) = delete;
    virtual ~scenario() = default;

    [[nodiscard]] virtual std::vector<std::function<void()>> threads() = 0;
    /// Called after the threads have ended. Returns the problem, or an empty string.
    [[nodiscard]] virtual std::string verdict() = 0;

    /// Returns whether a thread may be killed before any of its steps: it takes no other step, and
    /// its stack is not unwound.
    [[nodiscard]] virtual bool is_mortal(unsigned /*thread*/) const { return false; }
    /// Called directly after a thread was killed. Runs in no thread.
    virtual void killed(unsigned /*thread*/) {}
};

/// When deadlines pass.
enum class timers : unsigned char {
    at_any_moment,   // any number of times: for waits that end with their deadline
    as_preemptions,  // while other threads can run, at the cost of a preemption: for waits that
                     // poll
    when_all_sleep,  // an infinitely fast machine: every possible action takes no time
};

struct limits {
    /// How often a thread that could continue is made to wait for another. Most bugs need two
    /// (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007).
    unsigned preemptions_max = 2;
    std::uint64_t schedules_max = 2'000'000;
    unsigned kills_max = 0;
    timers deadlines = timers::at_any_moment;
    /// Each thread has a store buffer (store_buffers.hpp). When its oldest store becomes visible is
    /// part of the schedule; that does not count as a preemption.
    bool delays_stores = false;
    /// Also delays seq_cst stores, until the next seq_cst access of their thread: weaker loads
    /// may overtake them, as on a processor whose loads order no earlier store.
    bool delays_all_stores = false;
};

struct report {
    std::uint64_t schedules = 0;
    bool is_complete = false;        // all schedules within the limits were tried
    std::string problem;             // the problem of the first schedule that failed
    std::vector<unsigned> schedule;  // that schedule: the thread of each step, plus `kill` if it
                                     // was killed, or `flush` if its oldest store became visible
    static constexpr unsigned kill = 1000;
    static constexpr unsigned flush = 2000;
};

/// Runs `make()` under every schedule, until one fails: by a verdict, a thread that is never woken,
/// or one that never ends. Thread safety: one exploration at a time in a thread.
[[nodiscard]] report explore(const std::function<std::unique_ptr<scenario>()>& make,
                             const limits& within = {});

/// Ends the program if an exploration has found a problem, as the use of a destroyed object does
/// by itself: for EXPECT_DEATH.
void abort_if_found(const report& by);

/// Returns the identity of the current thread; null outside of an exploration.
[[nodiscard]] const void* this_thread() noexcept;
/// Returns the number of the current thread, -1 outside of all threads.
[[nodiscard]] int thread_number() noexcept;
/// Ends a step: another thread may run. No effect outside of an exploration.
void step() noexcept;
/// Marks a point where the thread may be killed, without letting other threads run.
void mortal_step() noexcept;
/// Returns the time of the scenario, which starts at 0 and passes while all threads sleep.
[[nodiscard]] std::uint64_t now_ns() noexcept;
constexpr std::uint64_t never_ns = ~std::uint64_t{0};
/// Sleeps until woken, or until that time at the latest; is_late() returns which of them.
void sleep_until(const void* address, std::uint64_t when_ns) noexcept;
/// Sleeps until woken, or, if `may_time_out`, possibly until a deadline; is_late() returns which of
/// them.
void sleep_on(const void* address, bool may_time_out) noexcept;
void wake_one_on(const void* address) noexcept;
void wake_all_on(const void* address) noexcept;
/// Lets all other threads run first, until the state changes.
void give_way() noexcept;
/// Records that the state has changed, which threads may poll.
void record_change() noexcept;
/// Call this before an access of that order: makes stores of this thread visible that it must not
/// overtake.
void settle_before_access(std::memory_order order) noexcept;
/// Returns whether a store of that order may be delayed.
[[nodiscard]] bool is_delayed(std::memory_order order) noexcept;
/// Delays a store or exchange of this thread; delayed() returns the latest one to a location, if it
/// is not visible yet.
void delay(const store_buffers::store& one) noexcept;
[[nodiscard]] std::optional<std::uint64_t> delayed(const void* location) noexcept;
/// Call this before this thread changes the location immediately: makes its own stores visible, and
/// exchanges of others there.
void settle_before_change(const void* location) noexcept;
/// Call this before this thread exchanges the location, now or delayed: makes exchanges of others
/// there visible.
void settle_before_exchange(const void* location) noexcept;
/// Call this when the location is destroyed.
void settle_for_end(const void* location) noexcept;
/// Returns whether the last sleep of this thread ended by its deadline.
[[nodiscard]] bool is_late() noexcept;

/// The template argument of locks (sluice/sync/atomics.hpp) that makes every access a step.
struct scheduled_atomics {
    using time_point = std::chrono::steady_clock::time_point;
    using tuning = sync::range_lock_tuning;
    static constexpr unsigned spins_max = 1;

    /// Ends the program if an atomic is used after its destruction: the thread that ends a wait
    /// must not access the waiter afterwards.
    template <class T>
    class atomic {
    public:
        atomic(T initial = {}) noexcept : value_(initial) {}
        atomic(const atomic&) = delete;
        atomic& operator=(const atomic&) = delete;
        ~atomic() {
            settle_for_end(this);
            forget_life();
        }
        [[nodiscard]] T load(std::memory_order order) const noexcept {
            begin(order);
            return seen();
        }
        void store(T fresh, std::memory_order order) noexcept {
            begin(std::memory_order_relaxed);
            change(fresh, order, false);
        }
        T exchange(T fresh, std::memory_order order) noexcept {
            return replace([fresh](T) { return fresh; }, order);
        }
        T fetch_or(T more, std::memory_order order) noexcept {
            return replace([more](T before) { return before | more; }, order);
        }
        T fetch_add(T more, std::memory_order order) noexcept {
            return replace([more](T before) { return before + more; }, order);
        }
        T fetch_sub(T less, std::memory_order order) noexcept {
            return replace([less](T before) { return before - less; }, order);
        }
        bool compare_exchange_strong(T& expected, T fresh, std::memory_order order,
                                     std::memory_order) noexcept {
            begin(order);
            settle_exchanges();
            if (const T before = seen(); before != expected) {
                expected = before;
                return false;
            }
            change(fresh, order, true);
            return true;
        }
        bool compare_exchange_weak(T& expected, T fresh, std::memory_order a, std::memory_order b) noexcept {
            return compare_exchange_strong(expected, fresh, a, b);
        }

    private:
        friend struct scheduled_atomics;
        void begin(std::memory_order order) const noexcept {
            step();
            ENSURE(life_ == alive, "atomic used after its destruction");
            settle_before_access(order);
        }
        [[nodiscard]] T seen() const noexcept {
            const std::optional<std::uint64_t> own = delayed(this);
            return own ? from_bits(*own) : value_;
        }
        template <class Change>
        T replace(Change what, std::memory_order order) noexcept {
            begin(order);
            settle_exchanges();
            const T before = seen();
            change(static_cast<T>(what(before)), order, true);
            return before;
        }
        void settle_exchanges() noexcept { settle_before_exchange(this); }
        void change(T fresh, std::memory_order order, bool is_exchange) noexcept {
            if (is_delayed(order)) {
                delay({.location = this,
                       .value = to_bits(fresh),
                       .apply = &apply,
                       .is_exchange = is_exchange,
                       .is_seq_cst = order == std::memory_order_seq_cst});
                return;
            }
            settle_before_change(this);
            record_change();
            value_ = fresh;
        }
        static void apply(void* at, std::uint64_t value) {
            static_cast<atomic*>(at)->value_ = from_bits(value);
        }
        static_assert(std::is_trivially_copyable_v<T> and sizeof(T) <= sizeof(std::uint64_t));
        [[nodiscard]] static std::uint64_t to_bits(T value) noexcept {
            std::uint64_t bits = 0;
            std::memcpy(&bits, &value, sizeof value);
            return bits;
        }
        [[nodiscard]] static T from_bits(std::uint64_t bits) noexcept {
            T value{};
            std::memcpy(&value, &bits, sizeof value);
            return value;
        }
        void forget_life() noexcept { *const_cast<volatile std::uint32_t*>(&life_) = 0; }

        static constexpr std::uint32_t alive = 0xa11f'e000;
        std::uint32_t life_ = alive;
        T value_;
    };

    static void wait(atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept {
        step();
        settle_before_change(&word);  // system calls order earlier accesses
        if (word.value_ == expected) sleep_on(&word, until != time_point::max());
    }
    static void wake_one(atomic<std::uint32_t>& word) noexcept {
        step();
        settle_before_change(&word);
        wake_one_on(&word);
    }
    static void wake_all(atomic<std::uint32_t>& word) noexcept {
        step();
        settle_before_change(&word);
        wake_all_on(&word);
    }
    /// One value per thread of a scenario, and one for outside; each keeps its value between steps.
    template <class T>
    [[nodiscard]] static T& per_thread() noexcept {
        constexpr std::size_t threads_max = 8;
        static std::array<T, threads_max + 1> of_all{};
        return of_all.at(static_cast<std::size_t>(thread_number() + 1));
    }
    [[nodiscard]] static time_point now() noexcept { return is_late() ? time_point::max() : time_point{}; }
    static void back_off(unsigned) noexcept { give_way(); }
};

}  // namespace sluice::interleave

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/sync/atomics.hpp"

// Tries the orders in which the steps of a few threads can happen. A step is an access to a scheduled_atomics
// atomic, a wait or a wake; between two of them a thread runs alone. All accesses are sequentially consistent
// here: what needs a weaker order to go wrong is for TSan to see.

namespace sluice::interleave {

/// What one schedule runs: made anew for each.
class scenario {
public:
    scenario() = default;
    scenario(const scenario&) = delete;
    scenario& operator=(const scenario&) = delete;
    virtual ~scenario() = default;

    [[nodiscard]] virtual std::vector<std::function<void()>> threads() = 0;
    /// After the threads have ended: what is wrong, or nothing.
    [[nodiscard]] virtual std::string verdict() = 0;

    /// Whether a thread may be killed before any of its steps: it takes no other, and nothing is unwound.
    [[nodiscard]] virtual bool is_mortal(unsigned /*thread*/) const { return false; }
    /// It was, just now. Runs in no thread.
    virtual void killed(unsigned /*thread*/) {}
};

/// Whose deadlines pass when.
enum class timers : unsigned char {
    at_any_moment,   // however often: for waits that end with their deadline
    as_preemptions,  // while others could go on, as often as there are preemptions: for those who look again
    when_all_sleep,  // a machine as fast as can be: what anybody can do is done in no time
};

struct limits {
    /// How often a thread that could go on is made to wait for another. Most bugs need two (Musuvathi and
    /// Qadeer, "Iterative context bounding", PLDI 2007).
    unsigned preemptions_max = 2;
    std::uint64_t schedules_max = 2'000'000;
    unsigned kills_max = 0;
    timers deadlines = timers::at_any_moment;
};

struct report {
    std::uint64_t schedules = 0;
    bool is_complete = false;        // every schedule within the limits was tried
    std::string problem;             // of the first schedule that went wrong
    std::vector<unsigned> schedule;  // that one: which thread took each step, plus `kill` if it was killed
    static constexpr unsigned kill = 1000;
};

/// Runs `make()` under every schedule, until one goes wrong: a verdict, a thread that nobody wakes, or one
/// that never ends. Thread safety: one exploration at a time in a thread.
[[nodiscard]] report explore(const std::function<std::unique_ptr<scenario>()>& make,
                             const limits& within = {});

/// Which of the threads this is; null outside of an exploration.
[[nodiscard]] const void* this_thread() noexcept;
/// The same by its number, -1 outside of all threads.
[[nodiscard]] int thread_number() noexcept;
/// Where threads give way to each other. Outside of an exploration: nothing happens.
void step() noexcept;
/// Where the thread does not give way, but may be killed.
void mortal_step() noexcept;
/// The time of the scenario, which passes while all sleep; begins at 0.
[[nodiscard]] std::uint64_t now_ns() noexcept;
constexpr std::uint64_t never_ns = ~std::uint64_t{0};
/// Sleeps until woken, or until that time at the latest: then is_late() says so.
void sleep_until(const void* address, std::uint64_t when_ns) noexcept;
/// Sleeps until woken, or, if `may_time_out`, perhaps without: then is_late() says so.
void sleep_on(const void* address, bool may_time_out) noexcept;
void wake_one_on(const void* address) noexcept;
void wake_all_on(const void* address) noexcept;
/// Lets everybody else go first, until something changes.
void give_way() noexcept;
/// Something that a thread may look at has changed.
void note_change() noexcept;
/// Whether the last sleep of this thread ended by its deadline.
[[nodiscard]] bool is_late() noexcept;

/// What locks are templates over (sluice/sync/atomics.hpp), with every access a step.
struct scheduled_atomics {
    using time_point = std::chrono::steady_clock::time_point;
    using tuning = sync::range_lock_tuning;
    static constexpr unsigned spins_max = 1;

    /// Stops the program when one is used that is gone: who ends a wait may not touch the waiter afterwards.
    template <class T>
    class atomic {
    public:
        atomic(T initial = {}) noexcept : value_(initial) {}
        atomic(const atomic&) = delete;
        atomic& operator=(const atomic&) = delete;
        ~atomic() { forget_life(); }
        [[nodiscard]] T load(std::memory_order) const noexcept {
            begin();
            return value_;
        }
        void store(T fresh, std::memory_order) noexcept {
            begin();
            note_change();
            value_ = fresh;
        }
        T exchange(T fresh, std::memory_order) noexcept {
            begin();
            note_change();
            return std::exchange(value_, fresh);
        }
        T fetch_or(T more, std::memory_order) noexcept {
            begin();
            note_change();
            return std::exchange(value_, value_ | more);
        }
        T fetch_add(T more, std::memory_order) noexcept {
            begin();
            note_change();
            return std::exchange(value_, value_ + more);
        }
        T fetch_sub(T less, std::memory_order) noexcept {
            begin();
            note_change();
            return std::exchange(value_, value_ - less);
        }
        bool compare_exchange_strong(T& expected, T fresh, std::memory_order, std::memory_order) noexcept {
            begin();
            if (value_ != expected) {
                expected = value_;
                return false;
            }
            note_change();
            value_ = fresh;
            return true;
        }
        bool compare_exchange_weak(T& expected, T fresh, std::memory_order a, std::memory_order b) noexcept {
            return compare_exchange_strong(expected, fresh, a, b);
        }

    private:
        friend struct scheduled_atomics;
        void begin() const noexcept {
            step();
            ENSURE(life_ == alive, "an atomic is used after it is gone");
        }
        void forget_life() noexcept { *const_cast<volatile std::uint32_t*>(&life_) = 0; }

        static constexpr std::uint32_t alive = 0xa11f'e000;
        std::uint32_t life_ = alive;
        T value_;
    };

    static void wait(atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept {
        step();
        if (word.value_ == expected) sleep_on(&word, until != time_point::max());
    }
    static void wake_one(atomic<std::uint32_t>& word) noexcept {
        step();
        wake_one_on(&word);
    }
    static void wake_all(atomic<std::uint32_t>& word) noexcept {
        step();
        wake_all_on(&word);
    }
    /// One for each thread of a scenario, and one for outside; each is as its thread left it.
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

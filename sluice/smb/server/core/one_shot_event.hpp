#pragma once

#include <coroutine>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/base/held_mutexes.hpp"
#include "sluice/smb/server/core/cross_loop_post.hpp"
#include "sluice/sync/atomics.hpp"

namespace sluice::smb::server {

template <class T, class Atomics = sync::real_atomics>
class event_wakes;

/// A one-shot notification with a value: one coroutine waits for it, and another part of the server
/// sets it. The first value counts; later ones are ignored, so a canceller need not know which came
/// first. An event only wakes: the resumed coroutine asks the monitor for the outcome.
///
/// The waiter is resumed by its loop, never inside set().
///
/// Invariants:
///   1. `word_` holds state and value. It goes from empty to set, or from empty to waiting to set;
///   only reset() leads back. So one setter wins.
///   2. The setter that replaces *waiting* posts the event, once, and only this post
///   resumes the waiter. So the event exists until then, and this setter may post after it
///   has unlocked a mutex.
///   3. Any other setter does not touch the event after its access to `word_`.
/// Atomic: any thread calls set() and is_set(). wait(), reset() and the destructor
/// are for the loop given.
/// Lifetime: a setter finds the event under the mutex of a monitor; the waiter leaves that
/// monitor, under the same mutex, before it destroys the event. It is not destroyed while its
/// coroutine waits (ENSURE).
/// Allocates: nothing. T: at most four bytes. Atomics: sync::real_atomics; for one thread, as in
/// loop_event, owned_by_loop.
template <class T, class Atomics>
class basic_one_shot_event final : private io::posted_item {
    static_assert(std::is_trivially_copyable_v<T> and sizeof(T) <= sizeof(std::uint32_t));

public:
    explicit basic_one_shot_event(io::io_multiplexer& loop) noexcept : loop_(loop) {}
    ~basic_one_shot_event() {
        ENSURE(not waiter_, "an event is destroyed after its waiter has been resumed");
    }

    /// Sets it, and has its loop resume the waiter.
    void set(T value) noexcept {
        if (set_only(value)) post();
    }
    /// Sets it. True: the caller calls post(), once, perhaps after it has unlocked a mutex.
    [[nodiscard]] bool set_only(T value) noexcept {
        std::uint64_t before = empty;
        const std::uint64_t after = word_of(value);
        // release: what precedes set() is visible to a caller that finds it set; pairs
        // with the acquires in word(). acquire: the handle of the waiter; pairs with the
        // release in begin_wait().
        if (word_.compare_exchange_strong(before, after, std::memory_order_release,
                                          std::memory_order_relaxed))
            return false;
        return before == waiting and word_.compare_exchange_strong(before, after, std::memory_order_acq_rel,
                                                                   std::memory_order_relaxed);
    }
    void post() noexcept { cross_loop_post(loop_, *this); }

    [[nodiscard]] bool is_set() const noexcept { return is_set(word()); }
    /// Returns std::nullopt while it is not set.
    [[nodiscard]] std::optional<T> value() const noexcept {
        const std::uint64_t now = word();
        return is_set(now) ? std::optional(value_in(now)) : std::nullopt;
    }

    /// `co_await e.wait()`. Suspends: until set. One waiter at a time.
    [[nodiscard]] auto wait() noexcept {
        struct awaiter {
            basic_one_shot_event& what;
            [[nodiscard]] bool await_ready() const noexcept { return what.is_set(); }
            [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiter) const noexcept {
                held_mutexes::ensure_none();
                return what.begin_wait(waiter);
            }
            [[nodiscard]] T await_resume() const noexcept { return value_in(what.word()); }
        };
        return awaiter{*this};
    }

    /// Makes it wait again. No coroutine waits for it, and no other thread sets it.
    void reset() noexcept {
        ENSURE(not waiter_, "an event is reset after its waiter has been resumed");
        word_.store(empty, std::memory_order_relaxed);
    }

private:
    template <class U, class A>
    friend class event_wakes;

    // The low half of `word_`; the high half is the value, once it is set.
    static constexpr std::uint64_t empty = 0;
    static constexpr std::uint64_t waiting = 1;
    static constexpr std::uint64_t set_bit = 2;

    [[nodiscard]] static std::uint64_t word_of(T value) noexcept {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        return std::uint64_t{bits} << 32 | set_bit;
    }
    [[nodiscard]] static bool is_set(std::uint64_t word) noexcept { return (word & set_bit) != 0; }
    [[nodiscard]] static T value_in(std::uint64_t word) noexcept {
        const auto bits = static_cast<std::uint32_t>(word >> 32);
        T value{};
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    // acquire: pairs with the release in set_only().
    [[nodiscard]] std::uint64_t word() const noexcept { return word_.load(std::memory_order_acquire); }

    // Returns false if it is set already.
    [[nodiscard]] bool begin_wait(std::coroutine_handle<> waiter) noexcept {
        ENSURE(not waiter_, "one coroutine waits for an event");
        waiter_ = waiter;
        std::uint64_t before = empty;
        // release: the handle, for invoke(); pairs with the acquire in set_only().
        const bool waits = word_.compare_exchange_strong(before, waiting, std::memory_order_release,
                                                         std::memory_order_relaxed);
        if (not waits) waiter_ = nullptr;
        return waits;
    }
    void invoke() noexcept override { std::exchange(waiter_, nullptr).resume(); }

    io::io_multiplexer& loop_;
    typename Atomics::template atomic<std::uint64_t> word_{empty};
    std::coroutine_handle<> waiter_;              // the loop's
    basic_one_shot_event* next_woken_ = nullptr;  // belongs to the winner until it posts; else null
};

/// Atomics for data of a single thread: plain memory.
struct owned_by_loop {
    template <class T>
    class atomic {
    public:
        explicit atomic(T value) noexcept : value_(value) {}
        [[nodiscard]] T load(std::memory_order) const noexcept { return value_; }
        void store(T value, std::memory_order) noexcept { value_ = value; }
        bool compare_exchange_strong(T& expected, T fresh, std::memory_order, std::memory_order) noexcept {
            if (value_ != expected) {
                expected = value_;
                return false;
            }
            value_ = fresh;
            return true;
        }

    private:
        T value_;
    };
};

template <class T>
using one_shot_event = basic_one_shot_event<T, sync::real_atomics>;
/// Loop-owned: an event that only its loop's thread sets.
template <class T>
using loop_event = basic_one_shot_event<T, owned_by_loop>;

/// Sets events under the mutex of a monitor and posts them, in this order, when it is destroyed:
/// declared before the lock_guard, so that no post is made with the mutex held.
/// Allocates: nothing. T, Atomics: as of the events.
template <class T, class Atomics>
class event_wakes {
public:
    event_wakes() noexcept = default;
    event_wakes(const event_wakes&) = delete;
    event_wakes& operator=(const event_wakes&) = delete;
    ~event_wakes() {
        // An event may be destroyed as soon as it is posted.
        while (basic_one_shot_event<T, Atomics>* const one = first_) {
            first_ = std::exchange(one->next_woken_, nullptr);
            one->post();
        }
    }

    void set(basic_one_shot_event<T, Atomics>& one, T value) noexcept {
        if (not one.set_only(value)) return;
        *end_ = &one;
        end_ = &one.next_woken_;
    }

private:
    basic_one_shot_event<T, Atomics>* first_ = nullptr;
    basic_one_shot_event<T, Atomics>** end_ = &first_;
};

}  // namespace sluice::smb::server

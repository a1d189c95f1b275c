#pragma once

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/base/held_mutexes.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/smb/server/core/loop_activity.hpp"

namespace sluice::smb::server {

/// What all loops of a server share is looked at and changed by the thread that holds this: sessions, trees,
/// opens, locks, leases. One latch for all of it, held for the short time a command computes, and never while
/// it waits: see `unlatched` below, and docs/decisions/0010-several-loops-one-latch.md.
///
/// A thread may take it again while it has it; it is free when given back as often. Whoever finds it taken
/// looks again for some microseconds before the thread sleeps, for a wake-up from another core costs more
/// than most holders take.
/// Thread safety: any thread. Allocates: nothing. Blocks: while another thread has it.
class server_latch {
public:
    server_latch() noexcept = default;
    server_latch(const server_latch&) = delete;
    server_latch& operator=(const server_latch&) = delete;
    ~server_latch() { ENSURE(state_.load(std::memory_order_relaxed) == free, "nobody holds what goes"); }

    void lock() noexcept {
        if (is_mine()) {
            ++depth_;
            return;
        }
        held_mutexes::ensure_none();  // the latch is outside all mutexes
        std::uint32_t expected = free;
        // acquire: what the holder before has changed; pairs with the release in unlock().
        if (not state_.compare_exchange_strong(expected, taken, std::memory_order_acquire,
                                               std::memory_order_relaxed))
            lock_slowly();
        // relaxed: others only compare it with a mark that is never theirs.
        owner_.store(&thread_mark_, std::memory_order_relaxed);
        depth_ = 1;
    }
    void unlock() noexcept {
        ENSURE(is_mine(), "the latch is given back by who has it");
        if (--depth_ != 0) return;
        owner_.store(nullptr, std::memory_order_relaxed);
        // release: what this holder has changed; pairs with the acquires in lock() and lock_slowly().
        if (state_.exchange(free, std::memory_order_release) == awaited) wake_next();
        if (after_release != nullptr) [[unlikely]]
            after_release();
    }
    /// The same for what calls or waits next: nobody further up the stack may have it as well.
    void unlock_entirely() noexcept {
        ENSURE(is_mine() and depth_ == 1, "nothing calls a file system, or waits, with the latch");
        unlock();
    }
    /// Whether the calling thread has it. Any thread.
    [[nodiscard]] bool is_mine() const noexcept {
        return owner_.load(std::memory_order_relaxed) == &thread_mark_;
    }

    /// For a simulation of several loops: called by each thread that has released a latch, as other loops may
    /// run there. Set before the threads begin; null otherwise.
    static inline constinit void (*after_release)() noexcept = nullptr;

    /// How often a thread has slept for it.
    [[nodiscard]] std::uint64_t sleeps() const noexcept { return sleeps_.load(std::memory_order_relaxed); }

    /// Has the latch while it exists. In a coroutine, it is given back at `co_await unlatched(…)`, and had
    /// again after it.
    class hold {
    public:
        explicit hold(server_latch& of) noexcept : of_(of) { of_.lock(); }
        hold(const hold&) = delete;
        hold& operator=(const hold&) = delete;
        ~hold() { of_.unlock(); }

    private:
        server_latch& of_;
    };
    /// Does without the latch while it exists, for what is long and needs nothing of the server: a signature.
    /// What was looked at before is to be looked at again. Nothing may suspend meanwhile.
    class pause {
    public:
        explicit pause(server_latch& of) noexcept : of_(of) { of_.unlock(); }
        pause(const pause&) = delete;
        pause& operator=(const pause&) = delete;
        ~pause() { of_.lock(); }

    private:
        server_latch& of_;
    };

private:
    static constexpr std::uint32_t free = 0;
    static constexpr std::uint32_t taken = 1;
    static constexpr std::uint32_t awaited = 2;  // taken, and somebody may sleep

    void lock_slowly() noexcept;
    void wake_next() noexcept;

    static inline thread_local constinit char thread_mark_ = 0;  // its address is the thread

    std::atomic<std::uint32_t> state_{free};
    std::atomic<const char*> owner_{nullptr};
    unsigned depth_ = 0;  // the owner's
    std::atomic<std::uint64_t> sleeps_{0};
};

/// What `unlatched` makes.
template <class Awaiter>
class [[nodiscard]] unlatched_awaiter {
public:
    unlatched_awaiter(server_latch& latch, Awaiter what) noexcept : latch_(latch), what_(std::move(what)) {}
    unlatched_awaiter(const unlatched_awaiter&) = delete;
    unlatched_awaiter& operator=(const unlatched_awaiter&) = delete;

    [[nodiscard]] bool await_ready() noexcept { return what_.await_ready(); }
    // The waiter is noted with the latch, or whoever brings about what it waits for might miss it; what it
    // waits for begins without.
    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        held_mutexes::ensure_none();
        is_given_back_ = true;
        work_ = loop_activity::current();
        if constexpr (std::is_void_v<decltype(what_.await_suspend(waiter))>) {
            what_.await_suspend(waiter);
            latch_.unlock_entirely();
        } else {
            const auto next = what_.await_suspend(waiter);
            latch_.unlock_entirely();
            return next;
        }
    }
    [[nodiscard]] decltype(auto) await_resume() noexcept {
        if (is_given_back_) {
            loop_activity::begin(work_);  // others may have been served since then
            latch_.lock();
        }
        return what_.await_resume();
    }

private:
    server_latch& latch_;
    Awaiter what_;
    bool is_given_back_ = false;
    std::optional<loop_work> work_;
};

/// `co_await unlatched(latch, e.wait())`, `co_await unlatched(latch, std::move(reading))`: waits for an
/// event, or runs a task, without the latch, which the caller holds, once, before and after. Everything that
/// was looked at before may have changed then. Only on a coroutine's own loop, where it also goes on.
template <class T>
[[nodiscard]] auto unlatched(server_latch& latch, io::task<T>&& work) noexcept {
    using awaiter = decltype(std::move(work).operator co_await());
    return unlatched_awaiter<awaiter>(latch, std::move(work).operator co_await());
}
template <class Awaiter>
    requires requires(Awaiter& what) { what.await_ready(); }
[[nodiscard]] auto unlatched(server_latch& latch, Awaiter what) noexcept {
    return unlatched_awaiter<Awaiter>(latch, std::move(what));
}

/// Runs `work` with the latch, which `work` releases while it waits. It begins at once; or from the loop, if
/// the caller holds the latch. `latch` and `loop` outlive it.
[[nodiscard]] io::task<void> latched(server_latch& latch, io::io_multiplexer& loop,
                                     io::task<void> work) noexcept;

/// Lets time pass: what is awaited as `unlatched`. False if it was cut short.
[[nodiscard]] io::task<bool> pass(io::io_multiplexer& loop, deadline until) noexcept;
/// Goes on from the loop, once what runs now has ended: for what must be said after the reply under way.
[[nodiscard]] io::task<void> next_turn(io::io_multiplexer& loop) noexcept;

}  // namespace sluice::smb::server

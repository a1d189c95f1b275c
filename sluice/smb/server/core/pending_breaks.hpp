#pragma once

#include <cstdint>
#include <utility>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/smb/server/core/loop_wait.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/sync/atomics.hpp"

namespace sluice::smb::server {

/// Breaks that were decided, but that the loops of their connections have not passed to the kernel
/// yet.
///
/// A reply that is made after a break was decided may depend on that: the file is gone, or data
/// were written. A client with two connections must not receive the reply on one before the break
/// on the other. So no loop sends a reply made since then while there are pending breaks. Breaks
/// are rare, hence one count of all of them rather than an order among them: a reply may wait for a
/// break that does not concern it, for as long as a loop takes to turn.
///
/// Invariant: a waiter that has found breaks is in the list before the end of the last break checks
/// the list, because the waiter counts them again under the mutex of the list.
/// Monitor: any thread; `mutex_` guards the waiters, and the count is atomic. begin() is called in
/// the critical section that makes the decision visible. Allocates: nothing. Atomics, Mutex:
/// sync::real_atomics and the mutex of a leaf, or what explores their interleavings.
template <class Atomics, class Mutex>
class basic_pending_breaks {
public:
    basic_pending_breaks() noexcept = default;
    basic_pending_breaks(const basic_pending_breaks&) = delete;
    basic_pending_breaks& operator=(const basic_pending_breaks&) = delete;
    ~basic_pending_breaks() { ENSURE(not any(), "every break is sent before the server is destroyed"); }

    // relaxed: a caller that sees the decision sees the count, by the mutex that makes
    // the decision visible.
    void begin() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
    void end() noexcept;

    // acquire: what a loop did before it ended the last break; pairs with the release in end().
    [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
    /// Waits until there was none. Suspends. On the caller's loop.
    [[nodiscard]] io::task<void> none_left(io::io_multiplexer& loop) noexcept;

private:
    struct waiter {
        explicit waiter(io::io_multiplexer& loop) noexcept : all_gone(loop) {}
        basic_one_shot_event<bool, Atomics> all_gone;
        list_hook<waiter> link;
    };

    // False: there is no break to wait for.
    [[nodiscard]] bool enter(waiter& fresh) noexcept {
        const lock_guard held(mutex_);
        if (not any()) return false;
        waiters_.push_back(fresh);
        return true;
    }

    typename Atomics::template atomic<std::uint32_t> count_{0};
    Mutex mutex_;
    intrusive_list<waiter, &waiter::link> waiters_ SLUICE_GUARDED_BY(mutex_);
};

template <class Atomics, class Mutex>
void basic_pending_breaks<Atomics, Mutex>::end() noexcept {
    // release: pairs with any(). The count falls before the list is read: a later waiter finds no
    // break.
    const std::uint32_t before = count_.fetch_sub(1, std::memory_order_acq_rel);
    ENSURE(before != 0, "a break ends once");
    if (before != 1) return;
    event_wakes<bool, Atomics> woken;
    const lock_guard held(mutex_);
    if (any()) return;  // begun since: a waiter may wait for that one, whose end finds the list
    while (waiter* const one = waiters_.pop_front())
        woken.set(one->all_gone, true);
}

template <class Atomics, class Mutex>
io::task<void> basic_pending_breaks<Atomics, Mutex>::none_left(io::io_multiplexer& loop) noexcept {
    if (not any()) co_return;
    waiter mine(loop);  // in the list until the last break ends: this is not cancelled
    if (not enter(mine)) co_return;
    (void)co_await within_work(mine.all_gone.wait());
}

using pending_breaks = basic_pending_breaks<sync::real_atomics, ranked_mutex<lock_rank::leaf>>;

/// One of the pending breaks: counts from its construction, in the critical section of the
/// decision, until it is destroyed. Move-only; empty after a move, or for a server with one loop.
/// Lifetime: `of` outlives it.
/// Thread safety: a value of its owner, on any thread that holds no leaf mutex when it is
/// destroyed.
class pending_break {
public:
    pending_break() noexcept = default;
    explicit pending_break(pending_breaks& of) noexcept : of_(&of) { of.begin(); }
    pending_break(pending_break&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    pending_break& operator=(pending_break&& other) noexcept {
        if (this != &other) {
            end();
            of_ = std::exchange(other.of_, nullptr);
        }
        return *this;
    }
    ~pending_break() { end(); }
    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

private:
    void end() noexcept {
        if (of_ != nullptr) std::exchange(of_, nullptr)->end();
    }

    pending_breaks* of_ = nullptr;
};

}  // namespace sluice::smb::server

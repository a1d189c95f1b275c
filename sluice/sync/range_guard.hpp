#pragma once

#include <cstdint>
#include <utility>

#include "sluice/base/deadline.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/sync/completions.hpp"
#include "sluice/sync/lock_args.hpp"
#include "sluice/sync/lock_node.hpp"

// The guards and requests of range_lock.hpp.

namespace sluice::sync {

template <class Atomics>
class basic_range_lock;

template <class Atomics>
class basic_range_request;

/// A lock that is held, or none. Its destructor releases the lock.
///
/// Contains all state that the lock needs for it: the lock allocates nothing for a range. Thread
/// safety: one thread at a time; any thread may release it. The lock outlives it.
template <class Atomics>
class basic_range_guard {
public:
    basic_range_guard() noexcept = default;
    /// Waits like `lock.lock(wanted)`, for a guard that is constructed in its final place: to move
    /// a guard that holds a range, the lock must search for it. Blocks: until it is granted.
    basic_range_guard(basic_range_lock<Atomics>& lock, const lock_args& wanted) noexcept {
        lock.lock_into(*this, wanted, deadline());
    }
    /// Complexity: constant. Blocks: briefly, while another thread changes the same lock.
    basic_range_guard(basic_range_guard&& other) noexcept { take(other); }
    basic_range_guard& operator=(basic_range_guard&& other) noexcept {
        if (this == &other) return *this;
        unlock();
        take(other);
        return *this;
    }
    ~basic_range_guard() {
        if (lock_ != nullptr) lock_->unlock(node_);
    }

    [[nodiscard]] explicit operator bool() const noexcept { return lock_ != nullptr; }
    [[nodiscard]] const byte_range& where() const noexcept { return node_.where(); }

    /// Releases the lock, and wakes the waiters that waited for nothing else. A second call does
    /// nothing. Complexity: O(log n) expected in held and waiting ranges for each request that
    /// watches this one (fair_set.hpp): one, if all request this range exclusively.
    void unlock() noexcept {
        if (lock_ != nullptr) std::exchange(lock_, nullptr)->unlock(node_);
    }
    /// Makes an exclusive lock shared. The guard holds a range.
    void downgrade() noexcept { lock_->downgrade(node_); }
    /// Makes a shared lock exclusive if no other guard holds or awaits any of it; otherwise returns
    /// false and leaves it shared. Never waits: two threads that did would wait for each other.
    [[nodiscard]] bool try_upgrade() noexcept { return lock_->try_upgrade(node_); }
    /// Releases all except `kept`, which is within the held range.
    void shrink(const byte_range& kept) noexcept {
        ENSURE(where().covers(kept), "the kept range is within the held one");
        lock_->shrink(node_, kept);
    }
    /// Moves the bytes from `at` on to `rest`, which holds nothing, in one step. `at` is one of the
    /// bytes, not the first.
    void split(std::uint64_t at, basic_range_guard& rest) noexcept;

private:
    friend class basic_range_lock<Atomics>;
    friend class basic_range_request<Atomics>;

    void take(basic_range_guard& other) noexcept {
        if (other.lock_ == nullptr) return;
        lock_ = std::exchange(other.lock_, nullptr);
        lock_->relocate(other.node_, node_);
    }

    basic_range_lock<Atomics>* lock_ = nullptr;
    lock_node<Atomics> node_;
};

/// A lock request without a thread: see basic_range_lock::lock_async(). It is not moved, and exists
/// until completed() is called. Thread safety: as a guard.
template <class Atomics>
class basic_range_request {
public:
    basic_range_request() noexcept = default;
    basic_range_request(const basic_range_request&) = delete;
    basic_range_request& operator=(const basic_range_request&) = delete;

    /// Returns the lock, once it is granted, or an empty guard after a cancel.
    [[nodiscard]] basic_range_guard<Atomics> take() noexcept { return std::move(guard_); }

protected:
    ~basic_range_request() {
        ENSURE(guard_.node_.state.load(std::memory_order_relaxed) < lock_node<Atomics>::waiting,
               "a request lives until it is completed");
    }

    /// Calls completed() for a request that does not wait, like that of one that did: now, or after
    /// the completion that this thread runs has returned.
    void complete(bool is_granted) noexcept {
        guard_.node_.request = this;
        completions<Atomics>::of_this_thread().run(
            guard_.node_, is_granted ? lock_node<Atomics>::granted : lock_node<Atomics>::cancelled);
    }

private:
    friend class basic_range_lock<Atomics>;
    friend class completions<Atomics>;

    /// Called once, when a wait ends: on the thread that ended it, with no mutex held, as the
    /// last access to this object. It may use locks, release ranges and start requests; completions
    /// that it causes nest up to a bound (completions.hpp). It should not wait, because that may
    /// depend on other requests that this thread has yet to complete.
    virtual void completed(bool is_granted) noexcept = 0;

    void complete_now(bool is_granted) noexcept {
        if (not is_granted) guard_.lock_ = nullptr;
        guard_.node_.state.store(is_granted ? lock_node<Atomics>::granted : lock_node<Atomics>::cancelled,
                                 std::memory_order_relaxed);
        completed(is_granted);
    }

    basic_range_guard<Atomics> guard_;
};

template <class Atomics>
void basic_range_guard<Atomics>::split(std::uint64_t at, basic_range_guard& rest) noexcept {
    ENSURE(lock_ != nullptr and not rest.lock_, "a held range is split into an empty guard");
    const byte_range whole = where();
    ENSURE(not whole.is_empty() and whole.first() < at and at <= whole.last(), "both parts have bytes");
    lock_->split(node_, byte_range::between({.first = whole.first(), .last = at - 1}), rest.node_,
                 byte_range::between({.first = at, .last = whole.last()}));
    rest.lock_ = lock_;
}

}  // namespace sluice::sync

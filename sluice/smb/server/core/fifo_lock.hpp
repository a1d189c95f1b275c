#pragma once

#include <cstdint>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

/// A lock for coroutines, granted in order of arrival. Most users hold it exclusively; shared
/// holders are granted together, but do not overtake a waiter that has arrived before them.
///
/// A lock request has its own event: a coroutine whose lock() returns false waits for that, without
/// a mutex, and then calls is_held_by(): it may have been woken by an interrupt of its SMB request.
/// Whatever the result, it calls unlock() in the end.
///
/// Invariants:
///   1. There is one exclusive holder, or any number of shared ones.
///   2. A request in front of the queue is there because of the holders; so the queue is
///   empty if there is none.
///   3. Requests are granted in the order in which they were queued.
///   4. `holders_` counts the held requests, which are all of one kind.
/// Monitor: any thread; `mutex_` guards the lock and its requests. Allocates: nothing. Complexity:
/// constant, and linear in the requests that are granted.
class fifo_lock {
public:
    /// A holder or waiter. Lifetime: `granted` and the lock outlive it; it is destroyed
    /// after unlock() (ENSURE).
    class lock_request {
    public:
        explicit lock_request(one_shot_event<wire::nt_status>& granted) noexcept : granted_(granted) {}
        ~lock_request() {
            ENSURE(state_ == state::outside, "a request in a lock is released before it is destroyed");
        }

    private:
        friend class fifo_lock;
        enum class state : std::uint8_t { outside, queued, held };
        one_shot_event<wire::nt_status>& granted_;
        state state_ = state::outside;
        bool is_shared_ = false;
        list_hook<lock_request> link_;  // while queued
    };

    fifo_lock() noexcept = default;
    fifo_lock(const fifo_lock&) = delete;
    fifo_lock& operator=(const fifo_lock&) = delete;
    ~fifo_lock() { ENSURE(holders_ == 0, "a lock is released before it is destroyed"); }

    /// Returns whether `by` holds it; else `by` is queued, and its event is set once it holds it.
    [[nodiscard]] bool lock(lock_request& by) noexcept { return acquire(by, false); }
    [[nodiscard]] bool lock_shared(lock_request& by) noexcept { return acquire(by, true); }
    /// Releases it, or leaves the queue. Nothing happens if `by` does neither hold nor wait.
    void unlock(lock_request& by) noexcept;
    [[nodiscard]] bool is_held_by(const lock_request& by) const noexcept;

private:
    [[nodiscard]] bool acquire(lock_request& by, bool is_shared) noexcept;
    [[nodiscard]] bool admits(const lock_request& by) const noexcept SLUICE_REQUIRES(mutex_) {
        return holders_ == 0 or (by.is_shared_ and not is_exclusive_);
    }
    void grant(lock_request& to) noexcept SLUICE_REQUIRES(mutex_);
    void grant_queued(event_wakes<wire::nt_status>& woken) noexcept SLUICE_REQUIRES(mutex_);

    mutable ranked_mutex<lock_rank::leaf> mutex_;  // guards the requests, too
    std::uint32_t holders_ SLUICE_GUARDED_BY(mutex_) = 0;
    bool is_exclusive_ SLUICE_GUARDED_BY(mutex_) = false;
    intrusive_list<lock_request, &lock_request::link_> queue_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server

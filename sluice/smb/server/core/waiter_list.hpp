#pragma once

#include "sluice/base/intrusive_list.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

class waiter_list;

/// A coroutine's entry in a waiter list of a monitor: names the event that the coroutine waits on.
///
/// Lifetime: `woken` outlives it. It must have left its list before it is destroyed
/// (ENSURE); `waiting`, below, does that. Thread safety: part of the monitor whose list it
/// is in, under its mutex.
class waiter {
public:
    explicit waiter(one_shot_event<wire::nt_status>& woken) noexcept : woken_(woken) {}

    /// Leaves the list that it is in, if any. Complexity: constant.
    inline void leave() noexcept;
    /// Whether it has ever been in a list. For the coroutine that it belongs to, which adds
    /// it: without a mutex.
    [[nodiscard]] bool has_waited() const noexcept { return has_waited_; }

private:
    friend class waiter_list;
    one_shot_event<wire::nt_status>& woken_;
    waiter_list* in_ = nullptr;
    bool has_waited_ = false;
    list_hook<waiter> link_;
};

/// The coroutines that a monitor wakes when its state has changed. Waking is not a result: a woken
/// coroutine calls the monitor again.
///
/// Invariant: `in_` of each element is this list. Thread safety: part of a
/// monitor, under its mutex.
/// Allocates: nothing.
class waiter_list {
public:
    /// Appends a waiter that is in no list.
    void add(waiter& one) noexcept {
        ENSURE(one.in_ == nullptr, "a waiter is in one list");
        one.in_ = this;
        one.has_waited_ = true;
        waiters_.push_back(one);
    }
    /// Empties the list and sets every event to success. Complexity: linear.
    void wake_all(event_wakes<wire::nt_status>& woken) noexcept {
        while (waiter* const one = waiters_.pop_front()) {
            one->in_ = nullptr;
            woken.set(one->woken_, wire::nt_status::success);
        }
    }
    /// The same, and posts them at once.
    void wake_all() noexcept {
        event_wakes<wire::nt_status> woken;
        wake_all(woken);
    }
    [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }

private:
    friend class waiter;
    intrusive_list<waiter, &waiter::link_> waiters_;
};

inline void waiter::leave() noexcept {
    if (waiter_list* const in = in_) {
        in_ = nullptr;
        in->waiters_.erase(*this);
    }
}

/// A waiter that leaves its monitor when it is destroyed, whatever woke its coroutine: forget() of
/// the monitor locks the mutex. Lifetime: monitor and event outlive it.
template <class Monitor>
class waiting {
public:
    waiting(Monitor& at, one_shot_event<wire::nt_status>& woken) noexcept : at_(at), place_(woken) {}
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;
    ~waiting() {
        if (place_.has_waited()) at_.forget(place_);
    }

    [[nodiscard]] waiter& place() noexcept { return place_; }

private:
    Monitor& at_;
    waiter place_;
};

}  // namespace sluice::smb::server

#include "sluice/smb/server/core/fifo_lock.hpp"

#include <utility>

namespace sluice::smb::server {

bool fifo_lock::acquire(lock_request& by, bool is_shared) noexcept {
    const lock_guard held(mutex_);
    ENSURE(by.state_ == lock_request::state::outside, "a request holds or waits once");
    by.is_shared_ = is_shared;
    if (queue_.empty() and admits(by)) {
        grant(by);
        return true;
    }
    by.state_ = lock_request::state::queued;
    queue_.push_back(by);
    ENSURE(holders_ != 0, "a request is queued because of the holders");
    return false;
}

void fifo_lock::unlock(lock_request& by) noexcept {
    event_wakes<wire::nt_status> woken;
    const lock_guard held(mutex_);
    switch (std::exchange(by.state_, lock_request::state::outside)) {
        case lock_request::state::outside:
            return;
        case lock_request::state::queued:
            queue_.erase(by);  // the requests after it may be shared, like the holders
            break;
        case lock_request::state::held:
            ENSURE(holders_ != 0, "a held request is counted among the holders");
            ENSURE(by.is_shared_ != is_exclusive_, "the holders of a lock are of one kind");
            if (--holders_ == 0) is_exclusive_ = false;
            break;
    }
    grant_queued(woken);
    ENSURE(queue_.empty() or holders_ != 0, "the queue is empty if there is no holder");
}

bool fifo_lock::is_held_by(const lock_request& by) const noexcept {
    const lock_guard held(mutex_);
    ENSURE(by.state_ != lock_request::state::held or holders_ != 0,
           "a held request is counted among the holders");
    return by.state_ == lock_request::state::held;
}

void fifo_lock::grant(lock_request& to) noexcept {
    ENSURE(not is_exclusive_, "an exclusive holder is alone");
    to.state_ = lock_request::state::held;
    ++holders_;
    is_exclusive_ = not to.is_shared_;
}

void fifo_lock::grant_queued(event_wakes<wire::nt_status>& woken) noexcept {
    for (lock_request* next = queue_.front(); next != nullptr and admits(*next); next = queue_.front()) {
        ENSURE(next->state_ == lock_request::state::queued, "a request in the queue waits");
        queue_.erase(*next);
        grant(*next);
        woken.set(next->granted_, wire::nt_status::success);
    }
}

}  // namespace sluice::smb::server

#pragma once

#include "sluice/base/ensure.hpp"
#include "sluice/base/intrusive_list.hpp"

// Internal to io.

namespace sluice::io {

/// Decides which of the threads that run a multiplexer waits in the kernel, and which of the others
/// is woken. It is separate from the multiplexer, so that a test can explore every order of events.
/// `Signal` is a condition variable outside tests.
///
/// One thread leads: it waits in the kernel for all. The others follow: each waits to be woken.
///
/// Thread safety: all members are guarded by the multiplexer's lock.
///
/// Invariants:
///   1. At most one thread leads. It holds the lock except while it is asleep.
///   2. A thread begins to follow only while another leads.
///   3. `woken_followers_` counts the followers that were woken and have not held the lock since.
///      Each looks for work, and wakes another one if there is more.
template <class Signal>
class leadership {
public:
    /// A thread that follows; on its stack.
    struct follower {
        Signal signal{};
        bool is_woken = false;  // and no longer in the list
        list_hook<follower> link{};
    };

    [[nodiscard]] bool has_leader() const noexcept { return has_leader_; }
    /// Returns whether the leader is in the kernel, or about to be.
    [[nodiscard]] bool is_asleep() const noexcept { return is_asleep_; }

    void lead() noexcept {
        ENSURE(not has_leader_, "two threads lead");
        has_leader_ = true;
    }
    void stop_leading() noexcept { has_leader_ = false; }
    void fall_asleep() noexcept { is_asleep_ = true; }
    void wake_up() noexcept { is_asleep_ = false; }

    /// Begins to follow; then the thread waits for the signal until `is_woken`, or its own time.
    void follow(follower& self) noexcept {
        ENSURE(has_leader_, "a thread follows none");
        // The last thread to follow is the first to be woken: its caches are warm.
        waiting_.push_front(self);
    }
    /// Once the thread has the lock again.
    void stop_following(follower& self) noexcept {
        if (self.is_woken) {
            --woken_followers_;
        } else {
            waiting_.erase(self);
        }
    }

    /// Makes one follower look for work. One that is already on its way suffices. Returns false if
    /// there is none.
    bool wake_one() noexcept { return woken_followers_ != 0 or wake_another(); }
    /// The same, whether or not one is on its way.
    bool wake_another() noexcept {
        follower* const next = waiting_.pop_front();
        if (next == nullptr) return false;
        next->is_woken = true;
        ++woken_followers_;
        // Under the lock: once its thread holds that, the node may be gone.
        next->signal.notify_one();
        return true;
    }
    /// Makes a follower look for work that this thread leaves to others, if there is more, or no
    /// leader to find it.
    void share_work(bool has_more) noexcept {
        if (has_more or not has_leader_) (void)wake_one();
    }
    /// Makes a thread check: a follower, or else the leader, by `wake_leader`.
    template <class WakeLeader>
    void notify_one(WakeLeader&& wake_leader) noexcept {
        if (not wake_one() and is_asleep_) wake_leader();
    }
    /// Before a thread stops running: others look for work instead. `must_check`: there is work, or
    /// they must detect that there will be none.
    template <class WakeLeader>
    void hand_off(bool must_check, WakeLeader&& wake_leader) noexcept {
        if (not has_leader_ or must_check) notify_one(wake_leader);
    }

private:
    intrusive_list<follower, &follower::link> waiting_;
    bool has_leader_ = false;
    bool is_asleep_ = false;
    int woken_followers_ = 0;
};

}  // namespace sluice::io

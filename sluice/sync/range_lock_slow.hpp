#pragma once

#include <algorithm>
#include <utility>

#include "sluice/sync/range_lock.hpp"

// The members of basic_range_lock for contended ranges: range_lock.hpp documents them and their
// invariants. range_lock_slow.cpp needs them, and so does every lock with other atomics.

namespace sluice::sync {

template <class Atomics>
void basic_range_lock<Atomics>::begin_holding() noexcept {
    mutex_.lock();
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (word != in_set and table_of(word) == nullptr) {
        // acquire: pairs with the release of try_lock_word(), for the node, and of unlock().
        if (not word_.compare_exchange_weak(word, in_set, std::memory_order_acquire,
                                            std::memory_order_relaxed))
            continue;
        if (word != idle) set_.admit(*reinterpret_cast<node*>(word));
        return;
    }
}

template <class Atomics>
void basic_range_lock<Atomics>::end_holding() noexcept {
    if (set_.is_empty() and current() == nullptr) {
        if (contention_ != 0) --contention_;
        // release: pairs with the acquire of try_lock_word().
        word_.store(idle, std::memory_order_release);
    }
    mutex_.unlock();
}

// Returns whether the range is held.
template <class Atomics>
bool basic_range_lock<Atomics>::take(node& fresh, deadline until) noexcept {
    placed how = placed::refused;
    fresh.request = nullptr;
    {
        const holding all(*this);
        how = place(fresh, not until.is_zero());
    }
    return how == placed::held or (how == placed::waiting and wait(fresh, end_of(until)));
}

template <class Atomics>
auto basic_range_lock<Atomics>::place(node& fresh, bool may_wait) noexcept -> placed {
    if (fresh.where().is_nowhere()) return placed::held;
    if (current() != nullptr and place_in_table(fresh)) return placed::held;
    const bool has_company = current() == nullptr and not set_.is_empty();
    if (set_.enter(fresh, may_wait)) {
        if (has_company and contention_limit_ != never_spreads and ++contention_ >= contention_limit_)
            spread(tuning::buckets_log2_first);
        return placed::held;
    }
    if (may_wait) {
        fresh.state.store(node::waiting, std::memory_order_relaxed);
        return placed::waiting;
    }
    unmark(fresh);
    return placed::refused;
}

// Returns whether the range is held. If not, all nodes that may conflict are in the set, and later
// requests will find it there.
template <class Atomics>
bool basic_range_lock<Atomics>::place_in_table(node& fresh) noexcept {
    auto how = current()->enter(fresh);
    if (how == table::entering::crowded and relieve(*current())) how = current()->enter(fresh);
    if (how == table::entering::entered) return true;
    table& in_use = *current();
    if (in_use.is_wide(fresh.where()) and ++wide_requests_ > tuning::wide_per_check_max) {
        retire_table(in_use);
        return false;
    }
    in_use.mark(fresh.where());
    fresh.is_marked = true;
    in_use.gather(fresh.args(), set_);
    return false;
}

template <class Atomics>
void basic_range_lock<Atomics>::unmark(node& one) noexcept {
    if (not std::exchange(one.is_marked, false)) return;
    current()->unmark(one.where());
}

// Removes a node that is held or still waits, wherever it is.
template <class Atomics>
void basic_range_lock<Atomics>::release(node& held, ended& over) noexcept {
    if (table* const in_use = current(); in_use != nullptr) (void)in_use->leave(held);
    unmark(held);
    if (held.is_in_set()) set_.leave(held, over);
}

template <class Atomics>
void basic_range_lock<Atomics>::unlock_slow_path(node& held) noexcept {
    ended over;
    {
        const holding all(*this);
        ENSURE(not held.is_in_set() or not held.is_waiting(), "a range is released that was never granted");
        release(held, over);
    }
    notify_granted(over);
}

// Creates a table, or uses the one set aside, if it is no smaller.
template <class Atomics>
void basic_range_lock<Atomics>::spread(unsigned buckets_log2) noexcept {
    contention_ = 0;
    if (tables_ == nullptr or tables_->buckets_log2() < buckets_log2) {
        table* const made = table::make(buckets_log2, tables_);
        if (made != nullptr) tables_ = made;
        if (tables_ == nullptr) return;
    }
    tables_->open(set_);
    // release: pairs with the acquire of try_lock_word() and unlock().
    word_.store(reinterpret_cast<std::uintptr_t>(tables_) | table_tag, std::memory_order_release);
}

// Raises the limit for the next time, so that a lock that alternates between the two forms pays
// ever less often.
template <class Atomics>
void basic_range_lock<Atomics>::retire_table(table& from) noexcept {
    constexpr std::uint32_t contention_limit_max = 1U << 20;
    from.close(set_);
    word_.store(in_set, std::memory_order_relaxed);
    contention_limit_ = std::min(contention_limit_ * 2, contention_limit_max);
    single_thread_checks_ = 0;
    wide_requests_ = 0;
}

// Returns whether there are more buckets than before. More buckets help only if all of them are
// full.
template <class Atomics>
bool basic_range_lock<Atomics>::relieve(table& crowded) noexcept {
    if (++full_bucket_requests_ < tuning::full_bucket_requests_max) return false;
    full_bucket_requests_ = 0;
    const unsigned buckets_log2 = crowded.buckets_log2();
    if (buckets_log2 >= tuning::buckets_log2_max or crowded.entries() >> buckets_log2 < 2) return false;
    crowded.close(set_);
    spread(std::min(buckets_log2 + 2, tuning::buckets_log2_max));
    return true;
}

// Checks whether buckets are still useful: they are not if one thread holds one range at a time.
template <class Atomics>
void basic_range_lock<Atomics>::look() noexcept {
    static thread_local constexpr char here = 0;
    const holding all(*this);
    table* const in_use = current();
    if (in_use == nullptr) return;
    wide_requests_ = 0;
    const bool is_alone = last_checker_ == &here and set_.is_empty() and in_use->entries() == 0;
    last_checker_ = &here;
    single_thread_checks_ = is_alone ? single_thread_checks_ + 1 : 0;
    if (single_thread_checks_ >= tuning::single_thread_checks_max) retire_table(*in_use);
}

template <class Atomics>
std::size_t basic_range_lock<Atomics>::bytes_allocated() noexcept {
    const holding all(*this);
    std::size_t bytes = 0;
    for (const table* one = tables_; one != nullptr; one = one->older)
        bytes += one->bytes();
    return bytes;
}

// `how` is granted or cancelled. A node may be destroyed as soon as its state has that value, or
// its request is completed.
template <class Atomics>
void basic_range_lock<Atomics>::notify(ended& over, std::uint32_t how) noexcept {
    while (node* const one = over.pop()) {
        if (one->request != nullptr) {
            completions<Atomics>::of_this_thread().run(*one, how);
        } else {
            auto& state = one->state;
            // release: pairs with the acquire of the waiter; writes made under the range are
            // visible.
            if (state.exchange(how, std::memory_order_release) == node::asleep) Atomics::wake_one(state);
        }
    }
}

template <class Atomics>
auto basic_range_lock<Atomics>::end_of(deadline until) noexcept -> time_point {
    if (until.is_none()) return time_point::max();
    return until.steady_end(Atomics::now(), deadline::system_clock::now());
}

// Waits until another thread has ended the wait. Returns whether it was granted.
template <class Atomics>
bool basic_range_lock<Atomics>::await_outcome(node& waiting) noexcept {
    for (;;) {
        // acquire: pairs with the release of notify().
        const std::uint32_t state = waiting.state.load(std::memory_order_acquire);
        if (state < node::waiting) return state == node::granted;
        Atomics::wait(waiting.state, node::asleep, time_point::max());
    }
}

template <class Atomics>
bool basic_range_lock<Atomics>::wait(node& waiting, time_point until) noexcept {
    completions<Atomics>::of_this_thread().run_queued();
    std::uint32_t state = node::waiting;
    for (unsigned round = 0; round != Atomics::spins_max; ++round) {
        // acquire: pairs with the release of notify().
        state = waiting.state.load(std::memory_order_acquire);
        if (state != node::waiting) return state == node::granted;
        Atomics::back_off(round);
    }
    // acquire, if it fails: pairs with the release of notify().
    if (not waiting.state.compare_exchange_strong(state, node::asleep, std::memory_order_relaxed,
                                                  std::memory_order_acquire))
        return state == node::granted;
    for (;;) {
        Atomics::wait(waiting.state, node::asleep, until);
        // acquire: pairs with the release of notify().
        state = waiting.state.load(std::memory_order_acquire);
        if (state != node::asleep) return state == node::granted;
        if (until != time_point::max() and Atomics::now() >= until) return cancel(waiting);
    }
}

// Returns true if it was granted in the meantime.
template <class Atomics>
bool basic_range_lock<Atomics>::cancel(node& waiting) noexcept {
    ended over;
    bool still_waits = false;
    {
        const holding all(*this);
        still_waits = waiting.is_in_set() and waiting.is_waiting();
        if (still_waits) release(waiting, over);
    }
    if (not still_waits) return await_outcome(waiting);  // another thread is about to notify it
    waiting.state.store(node::cancelled, std::memory_order_relaxed);
    notify_granted(over);
    return false;
}

template <class Atomics>
bool basic_range_lock<Atomics>::try_lock_all(std::span<const lock_args> wanted,
                                             std::span<guard> guards) noexcept {
    ENSURE(wanted.size() == guards.size(), "one guard for each range");
    ended over;
    std::size_t count = 0;
    {
        const holding all(*this);
        for (; count != wanted.size(); ++count) {
            ENSURE(not guards[count], "a guard that takes a lock holds none");
            guards[count].node_.describe(wanted[count]);
            if (place(guards[count].node_, false) != placed::held) break;
        }
        if (count != wanted.size())
            for (guard& each : guards.first(count))
                release(each.node_, over);
    }
    notify_granted(over);
    if (count != wanted.size()) return false;
    for (guard& each : guards)
        each.lock_ = this;
    return true;
}

template <class Atomics>
bool basic_range_lock<Atomics>::cancel(request& waiting) noexcept {
    node& one = waiting.guard_.node_;
    ended granted;
    ended cancelled;
    bool still_waited = false;
    {
        const holding all(*this);
        still_waited = set_.cancel(one, granted, cancelled);
        if (still_waited) unmark(one);
    }
    notify_granted(granted);
    notify(cancelled, node::cancelled);
    return still_waited;
}

template <class Atomics>
std::size_t basic_range_lock<Atomics>::cancel_all(const void* owner) noexcept {
    ended granted;
    ended cancelled;
    std::size_t count = 0;
    {
        const holding all(*this);
        count = set_.cancel_all(owner, granted, cancelled);
        for (node* one = cancelled.first(); one != nullptr; one = one->next)
            unmark(*one);
    }
    notify_granted(granted);
    notify(cancelled, node::cancelled);
    return count;
}

// Moves a held node to the set, where it can be changed.
template <class Atomics>
void basic_range_lock<Atomics>::bring(node& held) noexcept {
    if (table* const in_use = current(); in_use != nullptr) in_use->bring(held, set_);
}

template <class Atomics>
void basic_range_lock<Atomics>::downgrade(node& held) noexcept {
    if (held.where().is_nowhere()) return;
    ended over;
    {
        const holding all(*this);
        bring(held);
        set_.downgrade(held, over);
    }
    notify_granted(over);
}

template <class Atomics>
bool basic_range_lock<Atomics>::try_upgrade(node& held) noexcept {
    if (held.where().is_nowhere()) return true;
    const holding all(*this);
    bring(held);
    if (table* const in_use = current(); in_use != nullptr)
        in_use->gather({.where = held.where(), .mode = lock_mode::exclusive}, set_);
    return set_.try_upgrade(held);
}

template <class Atomics>
void basic_range_lock<Atomics>::shrink(node& held, const byte_range& kept) noexcept {
    ended over;
    {
        const holding all(*this);
        bring(held);
        const byte_range before = held.where();
        if (table* const in_use = current(); in_use != nullptr) {
            in_use->mark(kept);
            in_use->unmark(before);
        }
        set_.shrink(held, kept, over);
    }
    notify_granted(over);
}

template <class Atomics>
void basic_range_lock<Atomics>::split(node& held, const byte_range& kept, node& rest,
                                      const byte_range& rest_where) noexcept {
    ended over;
    {
        const holding all(*this);
        bring(held);
        if (table* const in_use = current(); in_use != nullptr) {
            in_use->mark(kept);
            in_use->mark(rest_where);
            in_use->unmark(held.where());
            rest.is_marked = true;
        }
        set_.split(held, kept, rest, rest_where, over);
    }
    notify_granted(over);
}

}  // namespace sluice::sync

#pragma once

#include "sluice/sync/range_lock.hpp"

// The members of the templates in range_lock.hpp, which says what they do and which invariants they keep.

namespace sluice::sync {

template <class Atomics>
std::uint32_t basic_range_lock<Atomics>::count_blockers(const lock_args& wanted) const noexcept {
    std::uint32_t count = 0;
    visit_conflicts(wanted, [&](const node&) {
        ++count;
        return true;
    });
    return count;
}

template <class Atomics>
void basic_range_lock<Atomics>::enter(node& fresh, const lock_args& wanted, std::uint32_t blockers) noexcept {
    fresh.owner = wanted.owner;
    fresh.is_cancelled = false;
    fresh.blockers = blockers;
    if (blockers != 0) fresh.state.store(node::waiting, std::memory_order_relaxed);
    if (wanted.where.is_nowhere()) return;  // in nobody's way, so there is nothing to remember
    set_.insert(
        fresh,
        {.where = wanted.where, .number = ++arrivals_, .is_writer = wanted.mode == lock_mode::exclusive});
}

template <class Atomics>
void basic_range_lock<Atomics>::unblock(node& behind, ended_waits& ended) noexcept {
    ENSURE(behind.blockers != 0, "who is blocked by something counts it");
    if (--behind.blockers == 0 and not behind.is_cancelled) ended.add(behind);
}

template <class Atomics>
void basic_range_lock<Atomics>::leave(node& leaving, ended_waits& ended) noexcept {
    if (not leaving.is_in_set()) return;
    visit_blocked(leaving, [&](node& behind) { unblock(behind, ended); });
    set_.erase(leaving);
}

// A node may be gone as soon as its state is settled, or its request completed.
template <class Atomics>
void basic_range_lock<Atomics>::tell(ended_waits& ended) noexcept {
    for (node* one = ended.first; one != nullptr;) {
        node* const next = one->next;
        if (request* const by = one->request; by != nullptr) {
            const bool is_granted = not one->is_cancelled;
            if (not is_granted) by->guard_.lock_ = nullptr;
            one->state.store(node::settled, std::memory_order_relaxed);
            by->completed(is_granted);
        } else {
            auto& state = one->state;
            // release: pairs with the acquire of who waits; what was done under the range is seen.
            if (state.exchange(node::settled, std::memory_order_release) == node::asleep)
                Atomics::wake_one(state);
        }
        one = next;
    }
    ended.first = nullptr;
}

template <class Atomics>
auto basic_range_lock<Atomics>::end_of(deadline until) noexcept -> time_point {
    if (until.is_none()) return time_point::max();
    return until.steady_end(Atomics::now(), deadline::system_clock::now());
}

template <class Atomics>
auto basic_range_lock<Atomics>::try_lock(const lock_args& wanted, deadline until) noexcept -> guard {
    guard made;
    latch_.lock();
    const std::uint32_t blockers = count_blockers(wanted);
    const bool is_refused = blockers != 0 and until.is_zero();
    if (not is_refused) enter(made.node_, wanted, blockers);
    latch_.unlock();
    if (is_refused or (blockers != 0 and not wait(made.node_, end_of(until)))) return made;
    made.lock_ = this;
    made.where_ = wanted.where;
    return made;
}

// Until somebody has ended the wait; acquire: pairs with the release of tell().
template <class Atomics>
void basic_range_lock<Atomics>::settle(node& waiting) noexcept {
    while (waiting.state.load(std::memory_order_acquire) != node::settled)
        Atomics::wait(waiting.state, node::asleep, time_point::max());
}

template <class Atomics>
bool basic_range_lock<Atomics>::wait(node& waiting, time_point until) noexcept {
    for (int spin = 0; spin != Atomics::spins_max; ++spin) {
        // acquire: pairs with the release of tell().
        if (waiting.state.load(std::memory_order_acquire) == node::settled) return not waiting.is_cancelled;
        Atomics::relax();
    }
    std::uint32_t expected = node::waiting;
    // acquire, if it fails: pairs with the release of tell().
    if (not waiting.state.compare_exchange_strong(expected, node::asleep, std::memory_order_relaxed,
                                                  std::memory_order_acquire))
        return not waiting.is_cancelled;
    for (;;) {
        Atomics::wait(waiting.state, node::asleep, until);
        // acquire: pairs with the release of tell().
        if (waiting.state.load(std::memory_order_acquire) == node::settled) return not waiting.is_cancelled;
        if (until != time_point::max() and Atomics::now() >= until) return give_up(waiting);
    }
}

// True if it was granted meanwhile.
template <class Atomics>
bool basic_range_lock<Atomics>::give_up(node& waiting) noexcept {
    ended_waits ended;
    latch_.lock();
    const bool still_waits = waiting.blockers != 0 and not waiting.is_cancelled;
    if (still_waits) leave(waiting, ended);
    latch_.unlock();
    if (still_waits) {
        waiting.blockers = 0;
        waiting.state.store(node::settled, std::memory_order_relaxed);
        tell(ended);
        return false;
    }
    settle(waiting);  // somebody is about to tell it
    return not waiting.is_cancelled;
}

template <class Atomics>
void basic_range_lock<Atomics>::unlock(node& held) noexcept {
    ended_waits ended;
    latch_.lock();
    ENSURE(held.blockers == 0, "what is given back was granted");
    leave(held, ended);
    latch_.unlock();
    tell(ended);
}

template <class Atomics>
bool basic_range_lock<Atomics>::try_lock_all(std::span<const lock_args> wanted,
                                             std::span<guard> guards) noexcept {
    ENSURE(wanted.size() == guards.size(), "a guard for each range");
    const std::lock_guard holding(latch_);
    std::size_t count = 0;
    while (count != wanted.size() and count_blockers(wanted[count]) == 0) {
        ENSURE(not guards[count], "a guard that takes a lock holds none");
        enter(guards[count].node_, wanted[count], 0);
        ++count;
    }
    const bool has_all = count == wanted.size();
    for (std::size_t i = 0; i != count; ++i) {
        if (has_all) {
            guards[i].lock_ = this;
            guards[i].where_ = wanted[i].where;
        } else if (guards[i].node_.is_in_set()) {
            set_.erase(guards[i].node_);  // nobody has come behind it
        }
    }
    return has_all;
}

template <class Atomics>
bool basic_range_lock<Atomics>::lock_async(request& by, const lock_args& wanted) noexcept {
    ENSURE(not by.guard_, "a request asks for one lock at a time");
    node& fresh = by.guard_.node_;
    by.guard_.lock_ = this;
    by.guard_.where_ = wanted.where;
    latch_.lock();
    const std::uint32_t blockers = count_blockers(wanted);
    enter(fresh, wanted, blockers);
    latch_.unlock();  // from here on, unless it is granted, it may be completed and gone
    return blockers == 0;
}

template <class Atomics>
bool basic_range_lock<Atomics>::cancel(request& waiting) noexcept {
    node& one = waiting.guard_.node_;
    ended_waits granted;
    ended_waits cancelled;
    latch_.lock();
    const bool still_waits = one.is_in_set() and one.blockers != 0;
    if (still_waits) {
        one.is_cancelled = true;
        leave(one, granted);
        one.blockers = 0;
        cancelled.add(one);
    }
    latch_.unlock();
    tell(granted);
    tell(cancelled);
    return still_waits;
}

template <class Atomics>
std::size_t basic_range_lock<Atomics>::cancel_all(const void* owner) noexcept {
    ended_waits granted;
    ended_waits cancelled;
    std::size_t count = 0;
    latch_.lock();
    set_.for_each([&](interval_node& each) {
        node& one = node_of(each);
        if (one.owner != owner or one.blockers == 0) return;
        one.is_cancelled = true;  // so that none is granted when another leaves
        cancelled.add(one);
        ++count;
    });
    for (node* one = cancelled.first; one != nullptr; one = one->next) {
        leave(*one, granted);
        one->blockers = 0;
    }
    latch_.unlock();
    tell(granted);
    tell(cancelled);
    return count;
}

template <class Atomics>
void basic_range_lock<Atomics>::downgrade(node& held) noexcept {
    ended_waits ended;
    latch_.lock();
    if (held.is_in_set() and held.is_writer()) {
        visit_blocked(held, [&](node& behind) {
            if (not behind.is_writer()) unblock(behind, ended);
        });
        set_.set_writer(held, false);
    }
    latch_.unlock();
    tell(ended);
}

template <class Atomics>
bool basic_range_lock<Atomics>::try_upgrade(node& held) noexcept {
    const std::lock_guard holding(latch_);
    if (not held.is_in_set()) return true;
    const bool is_alone = set_.for_each_overlap(held.where(), interval_set::visiting::all,
                                                [&](const interval_node& one) { return &one == &held; });
    if (is_alone) set_.set_writer(held, true);
    return is_alone;
}

template <class Atomics>
void basic_range_lock<Atomics>::shrink(node& held, const byte_range& kept) noexcept {
    ended_waits ended;
    latch_.lock();
    visit_blocked(held, [&](node& behind) {
        if (not behind.where().overlaps(kept)) unblock(behind, ended);
    });
    const interval_set::entry smaller{.where = kept, .number = held.number(), .is_writer = held.is_writer()};
    set_.erase(held);
    set_.insert(held, smaller);
    latch_.unlock();
    tell(ended);
}

// A request that waits for both parts from now on counts both; one between them, without bytes, neither.
template <class Atomics>
void basic_range_lock<Atomics>::split(node& held, const byte_range& kept, node& rest,
                                      const byte_range& rest_where) noexcept {
    ended_waits ended;
    latch_.lock();
    visit_blocked(held, [&](node& behind) {
        const bool waits_for_kept = behind.where().overlaps(kept);
        const bool waits_for_rest = behind.where().overlaps(rest_where);
        if (waits_for_kept and waits_for_rest)
            ++behind.blockers;
        else if (not waits_for_kept and not waits_for_rest)
            unblock(behind, ended);
    });
    const std::uint64_t number = held.number();
    const bool is_writer = held.is_writer();
    set_.erase(held);
    set_.insert(held, {.where = kept, .number = number, .is_writer = is_writer});
    set_.insert(rest, {.where = rest_where, .number = number, .is_writer = is_writer});
    rest.owner = held.owner;
    latch_.unlock();
    tell(ended);
}

template <class Atomics>
void basic_range_lock<Atomics>::relocate(node& from, node& to) noexcept {
    const std::lock_guard holding(latch_);
    to.owner = from.owner;
    if (from.is_in_set()) set_.relocate(from, to);
}

template <class Atomics>
void basic_range_guard<Atomics>::split(std::uint64_t at, basic_range_guard& rest) noexcept {
    ENSURE(lock_ != nullptr and not rest.lock_, "what is held is split, into a guard that holds nothing");
    ENSURE(not where_.is_empty() and where_.first() < at and at <= where_.last(), "both parts have bytes");
    const byte_range kept = byte_range::between({.first = where_.first(), .last = at - 1});
    const byte_range rest_where = byte_range::between({.first = at, .last = where_.last()});
    lock_->split(node_, kept, rest.node_, rest_where);
    where_ = kept;
    rest.lock_ = lock_;
    rest.where_ = rest_where;
}

template <class Atomics>
auto basic_range_lock<Atomics>::co_lock(const lock_args& wanted) noexcept {
    class awaiter final : public request {
    public:
        awaiter(basic_range_lock& lock, const lock_args& args) noexcept : lock_(lock), wanted_(args) {}

        [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
        [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiter) noexcept {
            waiter_ = waiter;
            return not lock_.lock_async(*this, wanted_);
        }
        [[nodiscard]] guard await_resume() noexcept { return this->take(); }

    private:
        void completed(bool) noexcept override { waiter_.resume(); }

        basic_range_lock& lock_;
        lock_args wanted_;
        std::coroutine_handle<> waiter_;
    };
    return awaiter(*this, wanted);
}

}  // namespace sluice::sync

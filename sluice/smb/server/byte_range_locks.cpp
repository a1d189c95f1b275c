#include "sluice/smb/server/byte_range_locks.hpp"

#include <algorithm>

namespace sluice::smb::server {

namespace {

using range = byte_range_locks::range;

// The last byte of a range that has bytes; ranges that reach past 2^64 have been refused before.
[[nodiscard]] std::uint64_t last_of(range r) noexcept {
    return r.offset + (r.length - 1);
}

[[nodiscard]] bool overlap(range a, range b) noexcept {
    // A range without bytes lies between two: it is in the way of what covers both of them.
    if (a.length == 0 and b.length == 0) return false;
    if (a.length == 0) return b.offset < a.offset and a.offset <= last_of(b);
    if (b.length == 0) return a.offset < b.offset and b.offset <= last_of(a);
    return a.offset <= last_of(b) and b.offset <= last_of(a);
}

}  // namespace

bool byte_range_locks::try_lock(const lock& wanted) {
    for (const lock& held : locks_)
        if ((held.is_exclusive or wanted.is_exclusive) and overlap(held.where, wanted.where)) return false;
    locks_.push_back(wanted);
    return true;
}

void byte_range_locks::enqueue(waiter& waiting) {
    waiters_.push_back(&waiting);
}

void byte_range_locks::forget(waiter& waiting) noexcept {
    std::erase(waiters_, &waiting);
}

bool byte_range_locks::unlock(const open& owner, range where) noexcept {
    const auto found = std::ranges::find_if(locks_.rbegin(), locks_.rend(), [&](const lock& held) {
        return held.owner == &owner and held.where.offset == where.offset and
               held.where.length == where.length;
    });
    if (found == locks_.rend()) return false;
    locks_.erase(std::next(found).base());
    serve_waiters();
    return true;
}

void byte_range_locks::release_all(const open& owner) noexcept {
    std::erase_if(locks_, [&](const lock& held) { return held.owner == &owner; });
    std::vector<waiter*> ended;
    std::erase_if(waiters_, [&](waiter* waiting) {
        if (waiting->owner != &owner) return false;
        ended.push_back(waiting);
        return true;
    });
    for (waiter* waiting : ended)
        waiting->granted->set(wire::nt_status::range_not_locked);
    serve_waiters();
}

bool byte_range_locks::allows_read(const open& who, range where) const noexcept {
    return std::ranges::none_of(locks_, [&](const lock& held) {
        return held.is_exclusive and held.owner != &who and overlap(held.where, where);
    });
}

bool byte_range_locks::allows_write(const open& who, range where) const noexcept {
    return std::ranges::none_of(locks_, [&](const lock& held) {
        return not(held.is_exclusive and held.owner == &who) and overlap(held.where, where);
    });
}

std::size_t byte_range_locks::held_by(const open& owner) const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(locks_, [&](const lock& held) { return held.owner == &owner; }));
}

void byte_range_locks::serve_waiters() noexcept {
    std::erase_if(waiters_, [&](waiter* waiting) {
        if (not try_lock(
                {.owner = waiting->owner, .where = waiting->where, .is_exclusive = waiting->is_exclusive}))
            return false;
        waiting->granted->set(wire::nt_status::success);
        return true;
    });
}

}  // namespace sluice::smb::server

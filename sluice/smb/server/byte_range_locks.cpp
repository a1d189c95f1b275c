#include "sluice/smb/server/byte_range_locks.hpp"

#include <algorithm>

namespace sluice::smb::server {

namespace {

using range = byte_range_locks::range;
using lock = byte_range_locks::lock;

// Of a range that has bytes.
[[nodiscard]] std::uint64_t last_of(range r) noexcept {
    return r.offset + (r.length - 1);
}

[[nodiscard]] bool overlap(range a, range b) noexcept {
    if (a.length == 0 and b.length == 0) return false;
    if (a.length == 0) return b.offset < a.offset and a.offset <= last_of(b);
    if (b.length == 0) return a.offset < b.offset and b.offset <= last_of(a);
    return a.offset <= last_of(b) and b.offset <= last_of(a);
}

[[nodiscard]] bool conflicts(const lock& held, const lock& wanted) noexcept {
    if (not overlap(held.where, wanted.where)) return false;
    if (wanted.is_exclusive) return true;
    return held.is_exclusive and held.owner != wanted.owner;
}

[[nodiscard]] bool is_exactly(const lock& held, const open& owner, range where) noexcept {
    return held.owner == &owner and held.where.offset == where.offset and held.where.length == where.length;
}

}  // namespace

bool byte_range_locks::try_lock(const lock& wanted) {
    ENSURE(is_lockable(wanted.where), "ranges beyond 2^64 are refused before");
    if (std::ranges::any_of(locks_, [&](const lock& held) { return conflicts(held, wanted); })) return false;
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
    auto found = std::ranges::find_if(
        locks_, [&](const lock& held) { return held.is_exclusive and is_exactly(held, owner, where); });
    if (found == locks_.end())
        found =
            std::ranges::find_if(locks_, [&](const lock& held) { return is_exactly(held, owner, where); });
    if (found == locks_.end()) return false;
    locks_.erase(found);
    serve_waiters();
    return true;
}

void byte_range_locks::undo_last(const open& owner) noexcept {
    ENSURE(not locks_.empty() and locks_.back().owner == &owner, "only a lock just taken can be undone");
    locks_.pop_back();
}

void byte_range_locks::release_all(const open& owner) noexcept {
    std::erase_if(locks_, [&](const lock& held) { return held.owner == &owner; });
    std::erase_if(waiters_, [&](waiter* waiting) {
        if (waiting->wanted.owner != &owner) return false;
        waiting->granted->set(wire::nt_status::range_not_locked);
        return true;
    });
    serve_waiters();
}

bool byte_range_locks::allows_read(const open& who, range where) const noexcept {
    if (where.length == 0) return true;
    return std::ranges::none_of(locks_, [&](const lock& held) {
        return held.is_exclusive and held.owner != &who and overlap(held.where, where);
    });
}

bool byte_range_locks::allows_write(const open& who, range where) const noexcept {
    if (where.length == 0) return true;
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
        // Who was cancelled has not come to forget yet; a lock granted to it would be nobody's.
        if (waiting->granted->is_set() or not try_lock(waiting->wanted)) return false;
        waiting->granted->set(wire::nt_status::success);
        return true;
    });
}

}  // namespace sluice::smb::server

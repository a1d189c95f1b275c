#include "sluice/smb/server/byte_range_locks.hpp"

#include <algorithm>

namespace sluice::smb::server {

namespace {

// What is read or written may be said to reach past the last byte; what does is only what is there.
[[nodiscard]] sync::byte_range bytes_at(byte_range_locks::range where) noexcept {
    return sync::byte_range::of({.offset = where.offset, .length = where.length})
        .value_or(sync::byte_range::from(where.offset));
}

}  // namespace

sync::lock_args byte_range_locks::args_of(const lock& wanted) noexcept {
    ENSURE(is_lockable(wanted.where), "ranges beyond 2^64 are refused before");
    return {.where = bytes_at(wanted.where),
            .mode = wanted.is_exclusive ? sync::lock_mode::exclusive : sync::lock_mode::shared,
            .owner = wanted.owner};
}

void byte_range_locks::keep(const lock& taken, sync::range_guard&& guard) {
    const place at{
        .offset = taken.where.offset, .length = taken.where.length, .is_shared = not taken.is_exclusive};
    opens_[taken.owner].held.emplace(at, std::move(guard));
    ++held_count_;
}

bool byte_range_locks::try_lock(const lock& wanted) {
    sync::range_guard guard = ranges_.try_lock(args_of(wanted));
    if (not guard) return false;
    keep(wanted, std::move(guard));
    return true;
}

bool byte_range_locks::try_lock_all(std::span<const lock> wanted) {
    std::vector<sync::lock_args> args;
    args.reserve(wanted.size());
    std::ranges::transform(wanted, std::back_inserter(args), args_of);
    std::vector<sync::range_guard> guards(wanted.size());
    if (not ranges_.try_lock_all(args, guards)) return false;
    for (std::size_t i = 0; i != wanted.size(); ++i)
        keep(wanted[i], std::move(guards[i]));
    return true;
}

void byte_range_locks::enqueue(waiter& waiting) {
    ++opens_[waiting.wanted.owner].waiting;
    waiters_.push_back(&waiting);
}

void byte_range_locks::forget(waiter& waiting) noexcept {
    if (std::erase(waiters_, &waiting) != 0) --opens_[waiting.wanted.owner].waiting;
}

bool byte_range_locks::unlock(const open& owner, range where) noexcept {
    const auto of = opens_.find(&owner);
    if (of == opens_.end()) return false;
    auto& held = of->second.held;
    const auto first =
        held.lower_bound(place{.offset = where.offset, .length = where.length, .is_shared = false});
    if (first == held.end() or first->at.offset != where.offset or first->at.length != where.length)
        return false;
    held.erase(first);
    --held_count_;
    serve_waiters(bytes_at(where));
    return true;
}

void byte_range_locks::release_all(const open& owner) noexcept {
    std::erase_if(waiters_, [&](waiter* waiting) {
        if (waiting->wanted.owner != &owner) return false;
        waiting->granted->set(wire::nt_status::range_not_locked);
        return true;
    });
    const auto of = opens_.find(&owner);
    if (of == opens_.end()) return;
    held_count_ -= of->second.held.size();
    opens_.erase(of);
    serve_waiters(sync::byte_range::whole());
}

bool byte_range_locks::allows_read(const open& who, range where) noexcept {
    if (where.length == 0 or held_count_ == 0) return true;
    bool is_free = true;
    ranges_.for_each_conflict({.where = bytes_at(where), .mode = sync::lock_mode::shared, .owner = &who},
                              [&](const sync::lock_conflict& one) { return is_free = not one.is_held; });
    return is_free;
}

bool byte_range_locks::allows_write(const open& who, range where) noexcept {
    if (where.length == 0 or held_count_ == 0) return true;
    bool is_free = true;
    ranges_.for_each_conflict({.where = bytes_at(where), .mode = sync::lock_mode::exclusive, .owner = &who},
                              [&](const sync::lock_conflict& one) {
                                  const bool is_own =
                                      one.mode == sync::lock_mode::exclusive and one.owner == &who;
                                  return is_free = not one.is_held or is_own;
                              });
    return is_free;
}

std::size_t byte_range_locks::held_by(const open& owner) const noexcept {
    const auto of = opens_.find(&owner);
    return of == opens_.end() ? 0 : of->second.held.size();
}

std::size_t byte_range_locks::claims_of(const open& owner) const noexcept {
    const auto of = opens_.find(&owner);
    return of == opens_.end() ? 0 : of->second.held.size() + of->second.waiting;
}

// Most go on waiting: all they may cost is a look that ends at the first thing in the way. Conflicts are not
// counted for each pair beforehand, since one client can have many wait for many.
void byte_range_locks::serve_waiters(const sync::byte_range& freed) noexcept {
    std::erase_if(waiters_, [&](waiter* waiting) {
        // Who was cancelled has not come to forget yet; a lock granted to it would be nobody's.
        if (waiting->granted->is_set()) return false;
        const sync::lock_args wanted = args_of(waiting->wanted);
        if (not wanted.where.overlaps(freed) or ranges_.first_conflict(wanted)) return false;
        if (not try_lock(waiting->wanted)) return false;
        --opens_[waiting->wanted.owner].waiting;
        waiting->granted->set(wire::nt_status::success);
        return true;
    });
}

}  // namespace sluice::smb::server

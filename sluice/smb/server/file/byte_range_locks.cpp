#include "sluice/smb/server/file/byte_range_locks.hpp"

#include <algorithm>
#include <iterator>

namespace sluice::smb::server {

namespace {

// A READ or WRITE may name a range that reaches past the last byte; only bytes that exist count.
[[nodiscard]] sync::byte_range bytes_at(byte_range_locks::range where) noexcept {
    return sync::byte_range::of({.offset = where.offset, .length = where.length})
        .value_or(sync::byte_range::from(where.offset));
}

// Returns the range as other servers see it: to them, all bytes after a certain one are that one.
[[nodiscard]] sync::byte_range as_other_servers_see(const sync::byte_range& where) noexcept {
    return sync::byte_range::between(
        {std::min(where.first(), peer_byte_last), std::min(where.last(), peer_byte_last)});
}

struct segment {
    sync::byte_range where;
    peer_lock lock;
};

// A range, as other servers see it, as a row of stretches, each locked as strongly as the
// strongest lock there.
[[nodiscard]] std::vector<segment> segments_of(sync::range_lock& held, const sync::byte_range& seen) {
    struct edge {
        std::uint64_t at;
        int shared;  // how many more from here on
        int exclusive;
    };
    const sync::byte_range whole = seen.last() < peer_byte_last ? seen : sync::byte_range::from(seen.first());
    std::vector<edge> edges;
    held.for_each_conflict(
        {.where = whole, .mode = sync::lock_mode::exclusive, .owner = nullptr},
        [&](const sync::lock_conflict& one) {
            if (one.where.is_empty()) return true;
            const int is_shared = one.mode == sync::lock_mode::shared ? 1 : 0;
            const sync::byte_range at = as_other_servers_see(one.where);
            edges.push_back({std::max(at.first(), seen.first()), is_shared, 1 - is_shared});
            if (at.last() < seen.last()) edges.push_back({at.last() + 1, -is_shared, is_shared - 1});
            return true;
        });
    std::ranges::sort(edges, {}, &edge::at);

    std::vector<segment> row;
    edge now{.at = seen.first(), .shared = 0, .exclusive = 0};
    const auto end_at = [&](std::uint64_t last) {
        ENSURE(now.shared >= 0 and now.exclusive >= 0, "a lock ends after it has begun");
        const peer_lock weaker = now.shared != 0 ? peer_lock::shared : peer_lock::free;
        const peer_lock lock = now.exclusive != 0 ? peer_lock::exclusive : weaker;
        row.push_back({sync::byte_range::between({now.at, last}), lock});
    };
    for (const edge& next : edges) {
        if (next.at != now.at) end_at(next.at - 1);
        now = {next.at, now.shared + next.shared, now.exclusive + next.exclusive};
    }
    end_at(seen.last());
    return row;
}

}  // namespace

sync::lock_args byte_range_locks::args_of(const lock& wanted) noexcept {
    ENSURE(is_lockable(wanted.where), "ranges beyond 2^64 are refused before");
    return {.where = bytes_at(wanted.where),
            .mode = wanted.is_exclusive ? sync::lock_mode::exclusive : sync::lock_mode::shared,
            .owner = wanted.owner};
}

void byte_range_locks::keep(const lock& taken, sync::range_guard&& guard) {
    ENSURE(static_cast<bool>(guard), "a lock that an open keeps is held");
    const place at{
        .offset = taken.where.offset, .length = taken.where.length, .is_shared = not taken.is_exclusive};
    opens_[taken.owner].held.emplace(at, std::move(guard));
    ++held_count_;
    publish();
}

bool byte_range_locks::try_lock(const lock& wanted) {
    sync::range_guard guard = ranges_.try_lock(args_of(wanted));
    if (not guard) return false;
    keep(wanted, std::move(guard));
    if (peers_ == nullptr or publish_to_peers(bytes_at(wanted.where))) return true;
    drop(wanted);
    return false;
}

// Drops a lock that other servers do not allow.
void byte_range_locks::drop(const lock& taken) noexcept {
    auto& held = opens_[taken.owner].held;
    const auto found = held.find(place{
        .offset = taken.where.offset, .length = taken.where.length, .is_shared = not taken.is_exclusive});
    ENSURE(found != held.end() and held_count_ != 0, "a lock that is taken back is held and counted");
    held.erase(found);
    --held_count_;
    publish();
    (void)publish_to_peers(bytes_at(taken.where));
}

bool byte_range_locks::try_lock_all(std::span<const lock> wanted) {
    std::vector<sync::lock_args> args;
    args.reserve(wanted.size());
    std::ranges::transform(wanted, std::back_inserter(args), args_of);
    std::vector<sync::range_guard> guards(wanted.size());
    if (not ranges_.try_lock_all(args, guards)) return false;
    for (std::size_t i = 0; i != wanted.size(); ++i)
        keep(wanted[i], std::move(guards[i]));
    const auto is_published = [this](const lock& one) { return publish_to_peers(bytes_at(one.where)); };
    if (peers_ == nullptr or std::ranges::all_of(wanted, is_published)) return true;
    for (const lock& one : wanted)
        drop(one);
    return false;
}

void byte_range_locks::enqueue(waiter& waiting) {
    ENSURE(not waiting.granted->is_set(), "a lock that is waited for has no outcome yet");
    ++opens_[waiting.wanted.owner].waiting;
    waiters_.push_back(&waiting);
}

void byte_range_locks::forget(waiter& waiting) noexcept {
    if (std::erase(waiters_, &waiting) == 0) return;
    std::size_t& count = opens_[waiting.wanted.owner].waiting;
    ENSURE(count != 0, "a lock that waits is counted for its open");
    --count;
}

bool byte_range_locks::unlock(const open& owner, range where) noexcept {
    const auto of = opens_.find(&owner);
    if (of == opens_.end()) return false;
    auto& held = of->second.held;
    const auto first =
        held.lower_bound(place{.offset = where.offset, .length = where.length, .is_shared = false});
    if (first == held.end() or first->at.offset != where.offset or first->at.length != where.length)
        return false;
    ENSURE(held_count_ >= held.size(), "the locks of an open are among those of the file");
    held.erase(first);
    --held_count_;
    publish();
    if (peers_ != nullptr) (void)publish_to_peers(bytes_at(where));
    serve_waiters(bytes_at(where));
    return true;
}

void byte_range_locks::release_all(const open& owner) noexcept {
    const std::size_t waited = std::erase_if(waiters_, [&](waiter* waiting) {
        if (waiting->wanted.owner != &owner) return false;
        waiting->granted->set(wire::nt_status::range_not_locked);
        return true;
    });
    std::erase(late_grants_, &owner);
    const auto of = opens_.find(&owner);
    ENSURE(waited == (of == opens_.end() ? 0 : of->second.waiting),
           "a lock that waits is counted for its open");
    if (of == opens_.end()) return;
    std::vector<range> freed;
    if (peers_ != nullptr)
        for (const held_lock& one : of->second.held)
            freed.push_back({.offset = one.at.offset, .length = one.at.length});
    ENSURE(held_count_ >= of->second.held.size(), "the locks of an open are among those of the file");
    held_count_ -= of->second.held.size();
    publish();
    opens_.erase(of);
    for (const range& where : freed)
        (void)publish_to_peers(bytes_at(where));
    serve_waiters(sync::byte_range::whole());
}

bool byte_range_locks::allows_read(const open& who, range where) noexcept {
    if (where.length == 0) return true;
    if (peers_ != nullptr and
        not peers_->is_lockable(as_other_servers_see(bytes_at(where)), peer_lock::shared))
        return false;
    if (held_count_ == 0) return true;
    bool is_free = true;
    ranges_.for_each_conflict({.where = bytes_at(where), .mode = sync::lock_mode::shared, .owner = &who},
                              [&](const sync::lock_conflict& one) { return is_free = not one.is_held; });
    return is_free;
}

bool byte_range_locks::allows_write(const open& who, range where) noexcept {
    if (where.length == 0) return true;
    if (peers_ != nullptr and
        not peers_->is_lockable(as_other_servers_see(bytes_at(where)), peer_lock::exclusive))
        return false;
    if (held_count_ == 0) return true;
    bool is_free = true;
    ranges_.for_each_conflict({.where = bytes_at(where), .mode = sync::lock_mode::exclusive, .owner = &who},
                              [&](const sync::lock_conflict& one) {
                                  const bool is_own =
                                      one.mode == sync::lock_mode::exclusive and one.owner == &who;
                                  return is_free = not one.is_held or is_own;
                              });
    return is_free;
}

// Publishes the current locks of a range to other servers. Returns false if some of their locks
// conflict. Several segments are not set in one step: if two servers request parts of them at the
// same time, both may be refused.
bool byte_range_locks::publish_to_peers(const sync::byte_range& where) noexcept {
    if (where.is_empty()) return true;
    return std::ranges::all_of(segments_of(ranges_, as_other_servers_see(where)),
                               [this](const segment& one) { return peers_->lock(one.where, one.lock); });
}

std::size_t byte_range_locks::held_by(const open& owner) const noexcept {
    const auto of = opens_.find(&owner);
    return of == opens_.end() ? 0 : of->second.held.size();
}

std::size_t byte_range_locks::claims_of(const open& owner) const noexcept {
    const auto of = opens_.find(&owner);
    return of == opens_.end() ? 0 : of->second.held.size() + of->second.waiting;
}

std::vector<locked_range> byte_range_locks::first_of(const open& owner, std::size_t count_max) const {
    std::vector<locked_range> found;
    const auto of = opens_.find(&owner);
    if (of == opens_.end()) return found;
    for (const held_lock& held : of->second.held) {
        if (found.size() == count_max) break;
        found.push_back(
            {.offset = held.at.offset, .length = held.at.length, .is_exclusive = not held.at.is_shared});
    }
    return found;
}

// Most waiters keep waiting, so each may only cost a check that ends at the first conflict.
// Conflicts are not counted for each pair beforehand, because one client can create many waiters
// for many locks.
void byte_range_locks::serve_waiters(const sync::byte_range& freed) noexcept {
    std::erase_if(waiters_, [&](waiter* waiting) {
        // A cancelled waiter has not called forget() yet; a lock granted to it would have no owner.
        if (waiting->granted->is_set()) return false;
        const sequence& numbered = waiting->numbered;
        // The client has repeated a request that waited, and the first one has the lock now.
        const bool is_repeated = numbered.in != nullptr and numbered.in->has(numbered.index, numbered.number);
        const sync::lock_args wanted = args_of(waiting->wanted);
        if (not is_repeated) {
            if (not wanted.where.overlaps(freed) or ranges_.first_conflict(wanted)) return false;
            if (not try_lock(waiting->wanted)) return false;
        }
        std::size_t& count = opens_[waiting->wanted.owner].waiting;
        ENSURE(count != 0, "a lock that waits is counted for its open");
        --count;
        waiting->is_held = true;
        // A client that does not get the reply repeats the request, which must find this.
        if (numbered.in != nullptr) numbered.in->record(numbered.index, numbered.number);
        if (notes_late_grants_) late_grants_.push_back(waiting->wanted.owner);
        waiting->granted->set(wire::nt_status::success);
        return true;
    });
}

}  // namespace sluice::smb::server

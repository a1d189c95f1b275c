// The caching that a new open is granted ([MS-FSA] 2.1.5.18), and its fields in the reply.

#include <algorithm>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"

namespace sluice::smb::server {

using wire::lease_state;
using wire::oplock_level;

namespace {

// The properties of a file's other opens that limit the caching of a new one.
struct others {
    bool cache_handles = false;
    bool cache_writes = false;
    bool have_oplocks = false;
    bool forbid_writing = false;  // each write would have to break another's cache
    bool are_writing = false;     // the content is changing: data read now may be stale at once
};

[[nodiscard]] others others_than(const open& fresh, const lease* own) {
    others found;
    for (const open* one : fresh.file->opens()) {
        ENSURE(one->file == fresh.file, "an open in the list of a file is of that file");
        const lease* const theirs = one->lease.get();
        if (one == &fresh or (own != nullptr and theirs == own)) continue;
        found.are_writing |= one->pending_writes != 0;
        const bool has_oplock =
            theirs != nullptr and theirs->is_oplock() and theirs->held() != lease_state::none;
        const bool has_lease = theirs != nullptr and not theirs->is_oplock();
        if (theirs != nullptr) {
            found.cache_handles |= wire::has(theirs->held(), lease_state::handle);
            found.cache_writes |= wire::has(theirs->held(), lease_state::write);
        }
        found.have_oplocks |= has_oplock;
        found.forbid_writing |= has_oplock or has_lease or not is_for_attributes(one->access);
    }
    return found;
}

// Returns a valid combination: none without read caching.
[[nodiscard]] lease_state sensible(lease_state requested) noexcept {
    constexpr lease_state known = lease_state::read | lease_state::handle | lease_state::write;
    return wire::has(requested, lease_state::read) ? requested & known : lease_state::none;
}

[[nodiscard]] lease_state grantable(const open& fresh, const others& rest, lease_state requested,
                                    wire::create_action action) noexcept {
    // Other servers cannot break a client's caching, so no client may cache anything.
    if (fresh.file->peers() != nullptr) return lease_state::none;
    // Only an open for attributes can exist next to one that caches writes; data it reads may be
    // stale.
    if (rest.cache_writes) return lease_state::none;
    // A write in progress has broken the caches that there were; no new one begins before it ends.
    if (rest.are_writing) return lease_state::none;
    lease_state state = sensible(requested);
    // Reads from a cache would see through locks.
    if (action != wire::create_action::overwritten and not fresh.file->locks().is_empty())
        state = without(state, lease_state::read | lease_state::handle);
    if (rest.forbid_writing) state = without(state, lease_state::write);
    ENSURE(wire::has(requested, state), "no more is granted than was requested");
    return sensible(state);
}

void grant_oplock(const request& r, open& fresh, const wire::create_args& args, wire::create_action action) {
    const others rest = others_than(fresh, nullptr);
    lease_state state = grantable(fresh, rest, state_of(args.oplock_level), action);
    if (rest.cache_handles) state = lease_state::none;
    ENSURE(wire::has(state, state_of(level_of(state))), "a state that is not a level becomes a lower level");
    state = state_of(level_of(state));
    if (state == lease_state::none) return;
    fresh.lease = r.host().leases.make(lease::kind::oplock, lease::identity{}, state, std::uint16_t{0});
    fresh.lease->opens.push_back(&fresh);
}

void grant_lease(request& r, open& fresh, const wire::create_args& args, wire::create_action action) {
    const wire::lease& asked = *args.contexts.lease;
    std::shared_ptr<lease> held = find_lease(r, args);
    const others rest = others_than(fresh, held.get());
    lease_state state = grantable(fresh, rest, asked.state, action);
    if (rest.have_oplocks) state = without(state, lease_state::handle);
    if (held != nullptr) {
        held->raise(sensible(asked.state), state);
    } else {
        const auto kind = asked.v2 ? lease::kind::lease_v2 : lease::kind::lease_v1;
        const std::uint16_t epoch = asked.v2 ? asked.v2->epoch : std::uint16_t{0};
        const lease::identity who{.client = r.connection().agreed.client, .key = asked.key};
        held = r.host().leases.make(kind, who, state, epoch);
        r.host().leases.add(held);
    }
    if (asked.v2 and wire::has(asked.flags, wire::lease_flags::parent_key_set))
        held->parent_key = asked.v2->parent_key;
    ENSURE(not held->is_oplock() and held->who().key == asked.key, "a key names a lease");
    held->opens.push_back(&fresh);
    fresh.lease = std::move(held);
}

}  // namespace

std::shared_ptr<lease> find_lease(const request& r, const wire::create_args& args) noexcept {
    if (args.oplock_level != oplock_level::lease or not args.contexts.lease) return nullptr;
    std::shared_ptr<lease> found =
        r.host().leases.find({.client = r.connection().agreed.client, .key = args.contexts.lease->key});
    ENSURE(found == nullptr or (not found->is_oplock() and not found->opens.empty()),
           "a lease is in the table until its last open ends");
    return found;
}

void grant_caching(request& r, open& fresh, const wire::create_args& args, wire::create_reply& reply) {
    ENSURE(
        fresh.lease == nullptr and fresh.entry.is_inside() and fresh.entry.state() == entry_state::committed,
        "an open caches nothing before it is committed");
    // Directories get no leases: the server does not announce them, and clients watch directories instead.
    if (not fresh.is_directory()) {
        const bool wants_lease = args.oplock_level == oplock_level::lease and args.contexts.lease and
                                 r.connection().agreed.is_at_least(wire::dialect::smb_2_1);
        if (wants_lease) {
            grant_lease(r, fresh, args, reply.action);
        } else {
            grant_oplock(r, fresh, args, reply.action);
        }
    }
    encode_caching(fresh, reply);
}

void encode_caching(const open& one, wire::create_reply& reply) noexcept {
    reply.oplock_level = oplock_level::none;
    if (one.lease == nullptr) return;
    const lease& held = *one.lease;
    if (held.is_oplock()) {
        reply.oplock_level = level_of(held.held());
        return;
    }
    reply.oplock_level = oplock_level::lease;
    wire::lease told{.key = held.who().key, .state = held.held()};
    if (held.is_breaking()) told.flags |= wire::lease_flags::break_in_progress;
    if (held.has_epoch()) {
        told.v2.emplace(wire::lease_v2_part{.parent_key = {}, .epoch = held.epoch()});
        if (held.parent_key) {
            told.flags |= wire::lease_flags::parent_key_set;
            told.v2->parent_key = *held.parent_key;
        }
    }
    reply.contexts.lease = told;
}

}  // namespace sluice::smb::server

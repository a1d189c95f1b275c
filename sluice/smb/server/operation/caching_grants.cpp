// The caching that a new open is granted ([MS-FSA] 2.1.5.18), and its fields in the reply.

#include <algorithm>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"

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

// Except those of the same cache. Clients that choose one key share one cache: Microsoft's suite
// requires that all of them may cache writes (Leasing_FileLeasingV2_SameLeaseKey).
[[nodiscard]] others others_than(const file_section& held, const open& fresh, const lease* own,
                                 const std::optional<cache_identity>& cache) {
    others found;
    for (const open* one : fresh.file->opens(held)) {
        ENSURE(one->file == fresh.file, "an open in the list of a file is of that file");
        const open_in_file& place = one->in_file(held);
        const lease* const theirs = place.lease.get();
        if (one == &fresh or (own != nullptr and theirs == own)) continue;
        if (theirs != nullptr and cache and is_of_cache(held, *theirs, *cache)) continue;
        found.are_writing |= place.pending_writes != 0;
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

[[nodiscard]] lease_state grantable(const file_section& held, const open& fresh, const others& rest,
                                    lease_state requested, wire::create_action action) noexcept {
    // Other servers cannot break a client's caching, so no client may cache anything.
    if (fresh.file->has_peers()) return lease_state::none;
    // Only an open for attributes can exist next to one that caches writes; data it reads may be
    // stale.
    if (rest.cache_writes) return lease_state::none;
    // A write in progress has broken the caches that there were; no new one begins before it ends.
    if (rest.are_writing) return lease_state::none;
    lease_state state = sensible(requested);
    // Reads from a cache would see through locks.
    if (action != wire::create_action::overwritten and not fresh.file->locks(held).is_empty())
        state = without(state, lease_state::read | lease_state::handle);
    // A client that caches writes reports success to its program at once. The server refuses them
    // in the past, and the program must notice that.
    if (rest.forbid_writing or fresh.is_past()) state = without(state, lease_state::write);
    ENSURE(wire::has(requested, state), "no more is granted than was requested");
    return sensible(state);
}

void grant_oplock(const file_section& held, const request& r, open& fresh, lease_state requested,
                  wire::create_action action) {
    const others rest = others_than(held, fresh, nullptr, std::nullopt);
    lease_state state = grantable(held, fresh, rest, requested, action);
    if (rest.cache_handles) state = lease_state::none;
    ENSURE(wire::has(state, state_of(level_of(state))), "a state that is not a level becomes a lower level");
    state = state_of(level_of(state));
    if (state == lease_state::none) return;
    std::shared_ptr<lease>& granted = fresh.in_file(held).lease;
    granted =
        r.host().leases.make(fresh.file, lease::kind::oplock, lease::identity{}, state, std::uint16_t{0});
    granted->opens.push_back(&fresh);
}

// Null if the key has a lease by now, of another file, by a CREATE at the same time: a key
// stands for one file.
[[nodiscard]] std::shared_ptr<lease> make_lease(request& r, const open& fresh, const wire::lease& asked,
                                                lease_state granted) {
    const lease::identity who{.client = r.connection().agreed.client, .key = asked.key};
    const auto kind = asked.v2 ? lease::kind::lease_v2 : lease::kind::lease_v1;
    const std::uint16_t epoch = asked.v2 ? asked.v2->epoch : std::uint16_t{0};
    std::shared_ptr<lease> made = r.host().leases.make(fresh.file, kind, who, granted, epoch);
    return r.host().leases.add(made) ? made : nullptr;
}

void raise(const file_section& held, lease& known, lease_state requested, lease_state grantable) noexcept {
    ENSURE(held.is_of(*known.file), "a lease is raised in the section of its file");
    known.raise(requested, grantable);
    record_lease(held, known);
}

void grant_lease(const file_section& held, request& r, open& fresh, const wire::create_args& args,
                 bool may_cache, wire::create_action action) {
    const wire::lease& asked = *args.contexts.lease;
    lease_state requested = may_cache ? asked.state : lease_state::none;
    if (fresh.is_directory()) requested = without(requested, lease_state::write);
    std::shared_ptr<lease> known = find_lease(r, args);
    if (known != nullptr and (known->file != fresh.file or known->opens.empty())) return;
    const others rest = others_than(held, fresh, known.get(), cache_of(r, args));
    lease_state state = grantable(held, fresh, rest, requested, action);
    if (rest.have_oplocks) state = without(state, lease_state::handle);
    const bool is_new = known == nullptr;
    if (is_new) known = make_lease(r, fresh, asked, state);
    if (known == nullptr) return;
    if (asked.v2 and wire::has(asked.flags, wire::lease_flags::parent_key_set))
        known->parent_key = asked.v2->parent_key;
    if (not is_new and known->parked) record_lease(held, *known);
    if (not is_new and not known->parked) raise(held, *known, sensible(requested), state);
    ENSURE(not known->is_oplock() and known->who().key == asked.key, "a key names a lease");
    known->opens.push_back(&fresh);
    fresh.in_file(held).lease = std::move(known);
}

// Changes in the directory are noticed, and break its leases.
[[nodiscard]] bool is_watched(const file_section& held, const open& fresh) noexcept {
    const directory_watch* const watch = fresh.in_file(held).directory_watch.get();
    return watch != nullptr and watch->is_active() and fresh.through->has_live_feed();
}

}  // namespace

bool wants_directory_lease(const request& r, const wire::create_args& args) noexcept {
    const bool is_announced =
        wire::has(r.connection().agreed.capabilities, wire::capabilities::directory_leasing);
    return is_announced and args.oplock_level == oplock_level::lease and args.contexts.lease and
           args.contexts.lease->v2 and wire::has(args.contexts.lease->state, lease_state::read);
}

std::shared_ptr<lease> find_lease(const request& r, const wire::create_args& args) noexcept {
    if (args.oplock_level != oplock_level::lease or not args.contexts.lease) return nullptr;
    return r.host().leases.find({.client = r.connection().agreed.client, .key = args.contexts.lease->key});
}

std::optional<cache_identity> cache_of(const request& r, const wire::create_args& args) noexcept {
    if (args.oplock_level != oplock_level::lease or not args.contexts.lease) return std::nullopt;
    return cache_identity{.key = args.contexts.lease->key, .user = &r.session->admitted.client};
}

bool is_of_cache(const file_section& held, const lease& of, const cache_identity& cache) noexcept {
    ENSURE(held.is_of(*of.file), "the leases of one file are compared");
    if (of.is_oplock() or of.opens.empty() or of.who().key != cache.key) return false;
    // A client may hold opens of several users with one key.
    return *cache.user and cache.user->is_user() and std::ranges::all_of(of.opens, [&](const open* one) {
        return one->counted.client() == *cache.user;
    });
}

bool caches_handle(const file_section& held, const open& one) noexcept {
    const lease* const its = one.in_file(held).lease.get();
    return its != nullptr and wire::has(its->held(), lease_state::handle);
}

caching_reply grant_caching(const file_section& held, request& r, open& fresh, const wire::create_args& args,
                            bool may_cache, wire::create_action action) {
    open_in_file& place = fresh.in_file(held);
    ENSURE(
        place.lease == nullptr and place.entry.is_inside() and place.entry.state() == entry_state::committed,
        "an open caches nothing before it is committed");
    const bool may_be_cached =
        not fresh.is_directory() or (wants_directory_lease(r, args) and is_watched(held, fresh));
    if (may_be_cached) {
        const bool wants_lease = args.oplock_level == oplock_level::lease and args.contexts.lease and
                                 r.connection().agreed.is_at_least(wire::dialect::smb_2_1);
        if (wants_lease)
            grant_lease(held, r, fresh, args, may_cache, action);
        else if (may_cache)
            grant_oplock(held, r, fresh, state_of(args.oplock_level), action);
    }
    record_grant(held, r, fresh);
    return caching_of(held, fresh);
}

void record_grant(const file_section& held, request& r, open& one) {
    const std::shared_ptr<lease>& its = one.in_file(held).lease;
    // A lease without a state can be requested, too. Nothing is to be broken then.
    if (its == nullptr or its->held() == lease_state::none) return;
    ENSURE(not r.grants, "a reply grants the caching of one open");
    ++its->unsent_grants;
    r.grants.emplace(r.host(), its);
}

caching_reply caching_of(const file_section& held, const open& one) noexcept {
    const open_in_file& place = one.in_file(held);
    if (place.lease == nullptr) return {};
    const lease& granted = *place.lease;
    const bool has_handle = wire::has(granted.held(), lease_state::handle);
    if (granted.is_oplock())
        return {.level = level_of(granted.held()), .lease = {}, .has_handle = has_handle};
    wire::lease reported{.key = granted.who().key, .state = granted.held()};
    if (granted.is_breaking()) reported.flags |= wire::lease_flags::break_in_progress;
    if (granted.has_epoch()) {
        reported.v2.emplace(wire::lease_v2_part{.parent_key = {}, .epoch = granted.epoch()});
        if (granted.parent_key) {
            reported.flags |= wire::lease_flags::parent_key_set;
            reported.v2->parent_key = *granted.parent_key;
        }
    }
    return {.level = oplock_level::lease, .lease = reported, .has_handle = has_handle};
}

}  // namespace sluice::smb::server

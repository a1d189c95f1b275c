#include "sluice/smb/server/file/lease.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

using wire::lease_state;
using wire::nt_status;
using wire::oplock_level;

void lease::raise(lease_state requested, lease_state grantable) noexcept {
    ENSURE(wire::has(requested, grantable), "no more is granted than was requested");
    const bool adds = wire::has(requested, held_) and requested != held_;
    if (is_breaking_ or not adds or grantable != requested) return;
    held_ = grantable;
    ++epoch_;
}

std::optional<break_notice> lease::ask(lease_state keep) noexcept {
    if (is_breaking_) {
        ENSURE(wire::has(held_, asked_) and asked_ != held_, "a break leaves its holder less than it holds");
        // An oplock has no second step: the rest is requested once it has answered.
        if (not is_oplock()) wanted_ &= keep;
        return std::nullopt;
    }
    const lease_state to = held_ & keep;
    if (to == held_) return std::nullopt;
    const lease_state from = held_;
    ++epoch_;
    // A client that only caches reads has nothing to write back, and need not answer ([MS-SMB2]
    // 3.3.4.7).
    if (from == lease_state::read) {
        held_ = lease_state::none;
        return break_notice{.from = from, .to = to, .needs_answer = false};
    }
    is_breaking_ = true;
    asked_ = to;
    wanted_ = to;
    return break_notice{.from = from, .to = to, .needs_answer = true};
}

lease::answer lease::acknowledge(lease_state kept) noexcept {
    if (not is_breaking_) return {.status = nt_status::unsuccessful};
    ENSURE(wire::has(held_, asked_) and asked_ != held_, "a break leaves its holder less than it holds");
    if (not wire::has(asked_, kept)) return {.status = nt_status::request_not_accepted};
    held_ = kept;
    is_breaking_ = false;
    if (wire::has(wanted_, held_)) return {};

    // More was requested during the break. Clients give up caching in steps: read caching goes
    // last.
    if (held_ == lease_state::read) {
        held_ = lease_state::none;
        return {.next = break_notice{.from = lease_state::read, .to = lease_state::none}};
    }
    is_breaking_ = true;
    asked_ = (wanted_ | lease_state::read) & held_;
    if (asked_ == held_) asked_ = wanted_ & held_;
    ENSURE(asked_ != held_, "each step of a break takes something");
    return {.next = break_notice{.from = held_, .to = asked_, .needs_answer = true}};
}

void lease::time_out() noexcept {
    held_ = lease_state::none;
    is_breaking_ = false;
}

void lease::yield(lease_state keep) noexcept {
    lease_state left = state_after_breaks() & keep;
    if (not wire::has(left, lease_state::read)) left = lease_state::none;
    if (is_oplock()) left = state_of(level_of(left));
    if (left != held_) ++epoch_;
    ENSURE(wire::has(held_, left), "a client that is away gains nothing");
    held_ = left;
    is_breaking_ = false;
}

lease_state state_of(oplock_level level) noexcept {
    switch (level) {
        case oplock_level::level_2:
            return lease_state::read;
        case oplock_level::exclusive:
            return lease_state::read | lease_state::write;
        case oplock_level::batch:
            return lease_state::read | lease_state::write | lease_state::handle;
        case oplock_level::none:
        case oplock_level::lease:
            break;
    }
    return lease_state::none;
}

oplock_level level_of(lease_state state) noexcept {
    if (not wire::has(state, lease_state::read)) return oplock_level::none;
    if (not wire::has(state, lease_state::write)) return oplock_level::level_2;
    return wire::has(state, lease_state::handle) ? oplock_level::batch : oplock_level::exclusive;
}

}  // namespace sluice::smb::server

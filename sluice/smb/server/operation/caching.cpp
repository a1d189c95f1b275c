#include "sluice/smb/server/operation/caching.hpp"

#include <algorithm>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/lease_breaks.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::create_action;
using wire::lease_state;
using wire::nt_status;
using wire::oplock_level;

namespace {

constexpr access_mask attribute_rights =
    access_mask::read_attributes | access_mask::write_attributes | access_mask::synchronize;

// Each lease of a file once.
[[nodiscard]] std::vector<std::shared_ptr<lease>> leases_of(const file_section& held, file_state& file) {
    std::vector<std::shared_ptr<lease>> all;
    for (const open* one : file.opens(held)) {
        const std::shared_ptr<lease>& its = one->in_file(held).lease;
        if (its == nullptr) continue;
        ENSURE(its->file.get() == &file and not its->opens.empty(),
               "a lease is of one file, and ends with the last open that has it");
        if (std::ranges::find(all, its) == all.end()) all.push_back(its);
    }
    return all;
}

// The state that a conflicting open leaves a holder, and the bits whose loss the open must wait
// for.
struct demand {
    lease_state keep = lease_state::none;
    lease_state awaited = lease_state::none;
};

[[nodiscard]] demand demand_on(const lease& holder, const caching_intent& intent) noexcept {
    // A holder that violates sharing has to close the file; one that only caches writes, to write
    // them back.
    const lease_state awaited = intent.violates_sharing ? lease_state::handle : lease_state::write;
    lease_state keep = without(holder.held(), awaited);
    if (intent.overwrites and not intent.violates_sharing) keep = lease_state::none;
    // An oplock knows level II, or nothing.
    if (holder.is_oplock() and keep != holder.held()) keep &= lease_state::read;
    return {.keep = keep, .awaited = awaited};
}

// Returns whether the open has to wait for the holder.
[[nodiscard]] bool break_conflicting_caches(const file_section& held, server_context& host,
                                            const std::shared_ptr<lease>& holder,
                                            const caching_intent& intent, decided_breaks& breaks) {
    ENSURE(held.is_of(*holder->file), "the leases of a file are broken in its section");
    if (holder == intent.own or (intent.cache and is_of_cache(held, *holder, *intent.cache))) return false;
    // Unlike oplocks, leases are not broken for reading the security descriptor either.
    const bool only_reads_attributes =
        not intent.overwrites and is_for_attributes(without(intent.access, access_mask::read_control));
    if (only_reads_attributes and not holder->is_oplock()) return false;
    const demand on = demand_on(*holder, intent);
    const lease_state had = holder->held();
    const bool was_breaking = holder->is_breaking();
    if (on.keep == had) return was_breaking;
    breaks.add(held, host, holder, on.keep);
    return has_any(had, on.awaited) or (was_breaking and intent.has_waited);
}

[[nodiscard]] bool is_own(const file_section& held, const lease& holder, const open* by) noexcept {
    if (by == nullptr) return false;
    const lease* const its = by->in_file(held).lease.get();
    if (its == nullptr or its == &holder) return its == &holder;
    return not its->is_oplock() and
           is_of_cache(held, holder, {.key = its->who().key, .user = &by->counted.client()});
}

}  // namespace

bool is_for_attributes(access_mask access) noexcept {
    return without(access, attribute_rights) == access_mask::none;
}

io::task<caching_outcome> caching_wait::wait(request& r) noexcept {
    const nt_status outcome = co_await r.pend(changed_);
    co_return outcome == nt_status::success ? caching_outcome::waited : caching_outcome::cancelled;
}

caching_outcome decide_breaks_for_open(const file_section& held, request& r, file_state& file,
                                       const caching_intent& intent, decided_breaks& breaks) noexcept {
    if (is_for_attributes(intent.access) and not intent.overwrites) return caching_outcome::clear;
    // An open that has ended still conflicts until its last WRITEs have ended.
    const bool ended_opens_conflict = intent.violates_sharing or intent.takes_over;
    bool is_blocked = ended_opens_conflict and std::ranges::any_of(file.opens(held), &open::has_ended);
    for (const std::shared_ptr<lease>& holder : leases_of(held, file))
        is_blocked |= break_conflicting_caches(held, r.host(), holder, intent, breaks);
    return is_blocked ? caching_outcome::blocked : caching_outcome::clear;
}

void end_read_caching(const file_section& held, server_context& host, file_state& file, const open* by,
                      decided_breaks& breaks) noexcept {
    ENSURE(by == nullptr or by->file.get() == &file, "the content of a file changes through an open of it");
    // While one holder caches writes, no other caches reads.
    if (by != nullptr)
        if (const lease* const its = by->in_file(held).lease.get();
            its != nullptr and wire::has(its->held(), lease_state::write))
            return;
    for (const std::shared_ptr<lease>& holder : leases_of(held, file)) {
        if (not wire::has(holder->held(), lease_state::read)) continue;
        // A level II oplock ends by its own open's writes, too; a lease does not
        // ([MS-FSA] 2.1.4.12).
        if (is_own(held, *holder, by) and not holder->is_oplock()) continue;
        breaks.add(held, host, holder, lease_state::none);
    }
}

void end_directory_caching(const file_section& held, server_context& host, file_state& directory,
                           const std::optional<cache_identity>& except, decided_breaks& breaks) noexcept {
    for (const std::shared_ptr<lease>& holder : leases_of(held, directory)) {
        if (holder->is_oplock() or (except and is_of_cache(held, *holder, *except))) continue;
        breaks.add(held, host, holder, lease_state::none);
    }
}

void end_handle_caching(const file_section& held, server_context& host, file_state& file, const open* by,
                        decided_breaks& breaks) noexcept {
    ENSURE(by == nullptr or held.is_of(*by->file), "a file is renamed or removed through an open of it");
    for (const std::shared_ptr<lease>& holder : leases_of(held, file)) {
        if (is_own(held, *holder, by)) continue;
        if (not wire::has(holder->held(), lease_state::handle)) continue;
        const lease_state kept_by_oplock = lease_state::read;
        breaks.add(held, host, holder,
                   holder->is_oplock() ? kept_by_oplock : without(holder->held(), lease_state::handle));
    }
}

bool others_cache_handle(const file_section& held, file_state& file, const open* by) noexcept {
    ENSURE(by == nullptr or held.is_of(*by->file), "a file is renamed or removed through an open of it");
    return std::ranges::any_of(file.opens(held), [&](const open* one) {
        const lease* const its = one->in_file(held).lease.get();
        return its != nullptr and not is_own(held, *its, by) and wire::has(its->held(), lease_state::handle);
    });
}

io::task<caching_outcome> break_caches_for_name_change(request& r, file_state& file,
                                                       const open* by) noexcept {
    caching_outcome so_far = caching_outcome::clear;
    for (unsigned waits = 0; waits != limits::caching_waits_max; ++waits) {
        decided_breaks breaks;
        std::optional<caching_wait> waiting;
        {
            const file_section held(file);
            end_handle_caching(held, r.host(), file, by, breaks);
            if (others_cache_handle(held, file, by)) waiting.emplace(held, r, file);
        }
        (void)breaks.send(r.host());
        if (not waiting) co_return so_far;
        io::task<caching_outcome> waiting_task = waiting->wait(r);
        so_far = co_await std::move(waiting_task);
        if (so_far == caching_outcome::cancelled) co_return so_far;
    }
    co_return caching_outcome::exhausted;
}

}  // namespace sluice::smb::server

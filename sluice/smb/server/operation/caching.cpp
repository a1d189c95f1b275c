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

// Each lease of a file once; copies of the pointers, since asking may end opens.
[[nodiscard]] std::vector<std::shared_ptr<lease>> leases_of(file_state& file) {
    std::vector<std::shared_ptr<lease>> all;
    for (const open* one : file.opens()) {
        if (one->lease == nullptr) continue;
        ENSURE(not one->lease->opens.empty(), "a lease ends with the last open that has it");
        if (std::ranges::find(all, one->lease) == all.end()) all.push_back(one->lease);
    }
    return all;
}

// Registered with the file for as long as it is waited for.
class caching_wait {
public:
    caching_wait(request& r, file_state& file) : changed(r.loop()), file_(file) {
        file_.caching_waiters().push_back(&changed);
    }
    caching_wait(const caching_wait&) = delete;
    caching_wait& operator=(const caching_wait&) = delete;
    ~caching_wait() { std::erase(file_.caching_waiters(), &changed); }

    event<nt_status> changed;

private:
    file_state& file_;
};

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

enum class way : std::uint8_t { clear, changed, blocked };

[[nodiscard]] way break_conflicting_caches(server_context& host, const std::shared_ptr<lease>& holder,
                                           const caching_intent& intent) {
    if (holder == intent.own) return way::clear;
    // Unlike oplocks, leases are not broken for reading the security descriptor either.
    const bool only_looks =
        not intent.overwrites and is_for_attributes(without(intent.access, access_mask::read_control));
    if (only_looks and not holder->is_oplock()) return way::clear;
    const demand on = demand_on(*holder, intent);
    const lease_state held = holder->held();
    const bool was_breaking = holder->is_breaking();
    if (on.keep == held) return was_breaking ? way::blocked : way::clear;
    ask_to_give_up(host, holder, on.keep);
    if (holder->opens.empty()) return way::changed;
    const bool blocks = has_any(held, on.awaited) or (was_breaking and intent.has_waited);
    return blocks ? way::blocked : way::clear;
}

}  // namespace

bool is_for_attributes(access_mask access) noexcept {
    return without(access, attribute_rights) == access_mask::none;
}

io::task<caching_outcome> wait_for_caching(request& r, file_state& file) noexcept {
    caching_wait waiting(r, file);
    const nt_status outcome = co_await r.pend(waiting.changed);
    co_return outcome == nt_status::success ? caching_outcome::waited : caching_outcome::cancelled;
}

caching_outcome ask_for_way(request& r, file_state& file, const caching_intent& intent) noexcept {
    ENSURE(r.host().latch().is_mine(), "leases are read under the latch");
    if (is_for_attributes(intent.access) and not intent.overwrites) return caching_outcome::clear;
    // An open that has ended still conflicts until its last WRITEs have ended.
    const bool minds_ended = intent.violates_sharing or intent.takes_over;
    bool is_blocked = minds_ended and std::ranges::any_of(file.opens(), &open::is_closed);
    bool has_changed = false;
    for (const std::shared_ptr<lease>& holder : leases_of(file)) {
        const way next = break_conflicting_caches(r.host(), holder, intent);
        is_blocked |= next == way::blocked;
        has_changed |= next == way::changed;
    }
    if (has_changed) return caching_outcome::waited;
    return is_blocked ? caching_outcome::blocked : caching_outcome::clear;
}

void end_read_caching(server_context& host, file_state& file, const open* by) noexcept {
    ENSURE(by == nullptr or by->file.get() == &file, "the content of a file changes through an open of it");
    // While one holder caches writes, no other caches reads.
    if (by != nullptr and by->lease != nullptr and wire::has(by->lease->held(), lease_state::write)) return;
    for (const std::shared_ptr<lease>& holder : leases_of(file)) {
        if (not wire::has(holder->held(), lease_state::read)) continue;
        // A level II oplock ends by its own open's writes, too; a lease does not ([MS-FSA] 2.1.4.12).
        const bool is_own = by != nullptr and by->lease == holder;
        if (is_own and not holder->is_oplock()) continue;
        ask_to_give_up(host, holder, lease_state::none);
    }
}

void end_handle_caching(server_context& host, file_state& file, const open* by) noexcept {
    ENSURE(host.latch().is_mine(), "leases are read under the latch");
    for (const std::shared_ptr<lease>& holder : leases_of(file)) {
        if (by != nullptr and by->lease == holder) continue;
        if (not wire::has(holder->held(), lease_state::handle)) continue;
        const lease_state kept_by_oplock = lease_state::read;
        ask_to_give_up(host, holder,
                       holder->is_oplock() ? kept_by_oplock : without(holder->held(), lease_state::handle));
    }
}

io::task<caching_outcome> break_caches_for_name_change(request& r, file_state& file,
                                                       const open* by) noexcept {
    caching_outcome so_far = caching_outcome::clear;
    for (unsigned waits = 0; waits != limits::caching_waits_max; ++waits) {
        end_handle_caching(r.host(), file, by);
        const auto caches_handle = [by](const std::shared_ptr<lease>& holder) {
            const bool is_own = by != nullptr and by->lease == holder;
            return not is_own and wire::has(holder->held(), lease_state::handle);
        };
        if (std::ranges::none_of(leases_of(file), caches_handle)) co_return so_far;
        io::task<caching_outcome> waiting = wait_for_caching(r, file);
        so_far = co_await std::move(waiting);
        if (so_far == caching_outcome::cancelled) co_return so_far;
    }
    co_return caching_outcome::exhausted;
}

void end_caching(server_context& host, open& ending) noexcept {
    ENSURE(ending.is_closed, "an open caches until it has ended");
    leave_lease(host, ending);
    if (ending.file != nullptr) ending.file->wake_caching_waiters();
}

}  // namespace sluice::smb::server

// The end of a CREATE: an open that has joined its file is prepared, given to its
// session, and committed.

#include <algorithm>

#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/create_operation.hpp"
#include "sluice/smb/server/operation/directory_caching.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::smb::server {

using wire::create_action;
using wire::create_disposition;
using wire::create_options;
using wire::nt_status;

namespace {

// One that another server has moved, to a recycle bin perhaps, has no links: the client has asked
// for the name that it had.
[[nodiscard]] std::expected<vfs::metadata, nt_status> status_by_name(vfs::node& node) noexcept {
    auto status = asked_status(node);
    if (status and status->links != 0 and vfs::has_lost_name(node)) status->links = 0;
    return status;
}

}  // namespace

io::task<create_operation::step> create_operation::complete(create_round& round) noexcept {
    ENSURE(fresh_->file == file_ and fresh_->phase() == open_phase::making,
           "an open is completed after it has joined");
    if (action_ != create_action::created) {
        is_status_current_ = r_.host().files.changed_files() == changed_files_;
        if (round.has_removals()) {
            const auto status = co_await r_.call(*fresh_, [&] { return status_by_name(*fresh_->node); });
            if (not status or status->links == 0) co_return step::again;
        }
    }
    if (peer_servers* const peers = r_.host().peers()) {
        const step settled = co_await check_peer_servers(*peers);
        if (settled == step::waited) {
            leave();
            round.release();
            const deadline until(std::min(limits::peer_pause_min * (1 << std::min(peer_attempts_, 10U)),
                                          limits::peer_pause_max));
            io::task<bool> pausing = pass(r_.loop(), until);
            (void)co_await within_work(std::move(pausing));
        }
        if (settled != step::done) co_return settled;
    }
    status_ = co_await prepare();
    if (status_ == nt_status::success and r_.interrupted()) status_ = *r_.interrupted();
    if (status_ == nt_status::success) status_ = register_open();
    if (status_ != nt_status::success) co_return step::failed;
    co_return co_await commit();
}

// A change of the file that has ended since its status was asked for would leave the client with a
// cache of the status from before. So this asks again, until there is none; after several times,
// the client may not cache.
io::task<create_operation::step> create_operation::commit() noexcept {
    ENSURE(fresh_->file == file_, "an open commits in the file that it has joined");
    for (unsigned asked = 0; asked != limits::open_attempts_max; ++asked) {
        if (const auto done = try_commit(true)) co_return *done;
        begin_facts();
        auto known =
            co_await r_.call(*fresh_, [&] { return facts_for_reply(r_.accessor(), *fresh_->node, args_); });
        if (not known) co_return fail(known.error());
        facts_ = *known;
        file_->show_change_time(facts_.status);
    }
    co_return *try_commit(false);
}

// The facts about the file are asked for now.
void create_operation::begin_facts() noexcept {
    ENSURE(not is_committed_ and fresh_->file == file_, "the facts are asked for before the reply has them");
    facts_changes_ = file_->ended_changes();
    facts_names_ = r_.host().names_of(volume_, is_beyond_mount_).changes();
}

// Whether a change has ended since the facts were asked for. A directory's times change with its
// names; whose names have changed is not known, only that some in its file system have.
bool create_operation::are_facts_outdated() const noexcept {
    ENSURE(fresh_ != nullptr and fresh_->file == file_, "the facts are those of the open's file");
    if (file_->ended_changes() != facts_changes_) return true;
    return fresh_->is_directory() and r_.host().names_of(volume_, is_beyond_mount_).changes() != facts_names_;
}

// Returns std::nullopt if the facts are outdated.
std::optional<create_operation::step> create_operation::try_commit(bool may_cache) noexcept {
    const file_section held(*file_);
    if (may_cache and are_facts_outdated()) return std::nullopt;
    // Its session or its tree has ended; the interrupt may not have arrived yet.
    const bool has_session = r_.session->state() != session::phase::gone;
    const nt_status ended = has_session ? nt_status::network_name_deleted : nt_status::user_session_deleted;
    if (not fresh_->go_live()) return fail(r_.interrupted().value_or(ended));
    open_in_file& place = fresh_->in_file(held);
    ENSURE(not is_committed_ and place.pending_writes == 0,
           "a CREATE commits once, after it has emptied the file");
    file_->protocol(held).commit(place.entry, {.access = granted_, .share = args_.share_access});
    place.deletes_on_close = wants(create_options::delete_on_close);
    claim_.keep(terms_of({.access = granted_, .share = args_.share_access}).up);
    place.claim = std::move(claim_);
    place.claim_to_base = std::move(claim_to_base_);
    caching_ = grant_caching(held, r_, *fresh_, args_, may_cache, action_);
    is_committed_ = true;
    return step::done;
}

// One attempt to claim the file among other servers.
result<share_mode_lock_byte> create_operation::claim(peer_servers& peers) {
    const file_section held(*file_);
    file_state* const base = file_->base.get();
    if (base == nullptr) return file_->peers_among(held, peers).claim(terms_of_file(wanted()), claim_);
    const result<share_mode_lock_byte> at_base =
        base->peers_among(held, peers).claim(terms_of_stream_at_file(wanted()), claim_to_base_);
    if (not at_base or *at_base != share_mode_lock_byte::none) return at_base;
    return file_->peers_among(held, peers).claim(terms_of(wanted()), claim_);
}

// A server holds the entity of the file for microseconds; only a stopped process holds it longer.
io::task<create_operation::step> create_operation::check_peer_servers(peer_servers& peers) noexcept {
    for (;;) {
        const result<share_mode_lock_byte> conflicting = claim(peers);
        const bool is_busy =
            not conflicting and conflicting.error() == std::errc::resource_unavailable_try_again;
        if (not is_busy and not conflicting) co_return fail(nt_status::insufficient_resources);
        if (not is_busy and *conflicting != share_mode_lock_byte::none)
            co_return fail(wire::has(*conflicting, share_mode_lock_byte::goes)
                               ? nt_status::delete_pending
                               : nt_status::sharing_violation);
        if (not is_busy) break;
        if (++peer_attempts_ == limits::peer_attempts_max or r_.interrupted())
            co_return fail(r_.interrupted().value_or(nt_status::sharing_violation));
        if (action_ != create_action::created) co_return step::waited;
        // A file that exists already cannot be created again.
        const deadline until(limits::peer_pause_min);
        io::task<bool> pausing = pass(r_.loop(), until);
        (void)co_await within_work(std::move(pausing));
    }
    ENSURE(static_cast<bool>(claim_), "a file that no other server denies is claimed");
    // Another server may have removed it before we had our lock bytes; from now on none will.
    const auto status = co_await r_.call(*fresh_, [&] { return status_by_name(*fresh_->node); });
    if (status) found_.status = *status;
    co_return status and status->links == 0 ? step::again : step::done;
}

io::task<nt_status> create_operation::prepare() noexcept {
    const bool empties = overwrites() and action_ != create_action::created;
    ENSURE(file_ == fresh_->file, "a CREATE prepares the file that it has joined");
    ENSURE(empties == emptying_.has_value(), "an open that is going to empty the file is a writer of it");
    preparation how{.overwrites = empties,
                    .is_stream = not name_.stream.empty(),
                    .data = data_access_of(granted_),
                    .as_found = {}};
    // An open for writing has the right, but not the means: WRITE fails.
    if (fresh_->is_past()) how.data.write = false;
    if (fresh_->is_directory()) {
        io::task<void> watching = watch_for_lease(r_, *fresh_, args_);
        co_await std::move(watching);
    }
    {
        const file_section held(*file_);
        const std::uint64_t names_at_lookup = facts_names_;
        begin_facts();
        const bool has_other_names = fresh_->is_directory() and facts_names_ != names_at_lookup;
        if (is_status_current_ and not has_other_names and not file_->may_have_changed(held))
            how.as_found = found_.status;
    }
    const auto call = [&] { return prepare_node(r_.accessor(), args_, *fresh_->node, how); };
    std::expected<reply_facts, nt_status> known = std::unexpected(nt_status::success);
    if (empties) {
        // The streams of the file are removed with its content.
        const auto waits = co_await r_.call(*fresh_, [&] { return waits_of_overwrite(*fresh_->node); });
        own_change seen(r_.host());
        const auto overwrite = [&] {
            seen.begin(*fresh_->node);
            auto done = call();
            seen.end(done.has_value(), fresh_->node.get());
            return done;
        };
        if (waits)
            known = co_await call_in_turn(r_, *fresh_, overwrite, *waits);
        else
            known = std::unexpected(waits.error());
        if (known) seen.break_leases(*fresh_);
        emptying_.reset();
        facts_changes_ += 2;  // its own
        action_ = args_.disposition == create_disposition::supersede ? create_action::superseded
                                                                     : create_action::overwritten;
    } else {
        known = co_await r_.call(*fresh_, call);
    }
    if (not known) co_return known.error();
    facts_ = *known;
    file_->show_change_time(facts_.status);
    co_return nt_status::success;
}

nt_status create_operation::register_open() noexcept {
    session& by = *r_.session;
    open& one = *fresh_;
    ENSURE(one.phase() == open_phase::making and one.through == r_.files().target,
           "an open is of the share of its request");
    one.action = action_;
    open::disconnect_state none;
    const auto admitted = by.admit(one.id.volatile_part.value(), fresh_, *r_.tree, [&]() noexcept {
        return one.attach(by, r_.tree, r_.channel.get(), none);
    });
    switch (admitted) {
        case session::admission_result::admitted:
            break;
        case session::admission_result::too_many:
            return refuse_open(r_);
        case session::admission_result::gone:
        case session::admission_result::refused:
            return r_.interrupted().value_or(nt_status::user_session_deleted);
    }
    r_.compound().file = one.id;
    return nt_status::success;
}

}  // namespace sluice::smb::server

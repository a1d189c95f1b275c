#include "sluice/smb/server/operation/opening.hpp"

#include <algorithm>

#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/app_takeover.hpp"
#include "sluice/smb/server/operation/file_removal.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::create_action;
using wire::create_disposition;
using wire::create_options;
using wire::nt_status;
using verdict = open_protocol::verdict;

namespace {

// The options that FileModeInformation reports ([MS-FSCC] 2.4).
constexpr create_options shown_as_mode =
    create_options::write_through | create_options::sequential_only |
    create_options::no_intermediate_buffering | create_options::synchronous_io_alert |
    create_options::synchronous_io_nonalert | create_options::delete_on_close;

[[nodiscard]] vfs::data_access data_of(access_mask access) noexcept {
    return {.read = wire::has_any(access, access_mask::read_data | access_mask::execute),
            .write = wire::has_any(access, access_mask::write_data | access_mask::append_data)};
}

// The name that a CREATE makes visible. Without the directory, whose key takes a call of its own to find:
// CREATEs of one name in two directories may wait for each other.
[[nodiscard]] name_key key_of_new(const file_name& name) {
    const std::uint64_t stream = name.stream.empty() ? 0 : vfs::stream_number(name.stream);
    return {vfs::file_key{}, vfs::split_path(name.path).name, stream};
}

}  // namespace

opening::opening(request& r, const wire::create_args& args, file_name name) noexcept
    : r_(r),
      args_(args),
      name_(std::move(name)),
      volume_(r.tree->volume()),
      // A name to create is often new. Creating it finds it in any case, so the first look is at the exact
      // name.
      match_(may_create() ? vfs::name_match::exact : vfs::name_match::any_case) {}

opening::~opening() {
    ENSURE(r_.host().latch().is_mine(), "a CREATE ends under the latch");
    if (not is_kept_) undo();
    discard_found();
}

// Closing descriptors may block.
void opening::discard_found() noexcept {
    const auto discard = [this](vfs::node_ptr node) {
        if (node == nullptr) return;
        vfs::fs_domain& domain = node->domain();
        domain.discard(std::move(node), r_.tree->target);
    };
    discard(std::move(found_.node));
    if (found_.directory) discard(std::move(found_.directory->node));
    found_ = {};
}

// --- rounds
// ------------------------------------------------------------------------------------------------------

io::task<nt_status> opening::run() noexcept {
    unsigned attempts = 0;
    unsigned waits = 0;
    while (attempts != limits::open_attempts_max and waits != limits::caching_waits_max) {
        const step next = co_await attempt();
        if (next == step::done) co_return nt_status::success;
        if (next == step::failed) co_return status_;
        ++(next == step::waited ? waits : attempts);
    }
    // Other clients keep changing what this name means, or take the caching rights again each time.
    co_return status_ == nt_status::success ? nt_status::sharing_violation : status_;
}

io::task<opening::step> opening::attempt() noexcept {
    // While others gave way the session may have ended, and an open must not be left with it.
    if (r_.interrupted()) co_return fail(*r_.interrupted());
    ENSURE(fresh_ == nullptr and not emptying_, "a round begins without an open");
    create_round round(r_.host().names_of(volume_, is_beyond_mount_), r_.loop());
    if (not round.enter()) {
        (void)co_await r_.wait(round.entered());
        if (not round.is_inside()) co_return fail(*r_.interrupted());
    }
    step next = co_await look_up(round);
    const bool is_there = found_.node != nullptr and not found_.is_stream_missing;
    if (next == step::done) next = co_await (is_there ? use_existing(round) : create(round));
    if (next == step::done) next = co_await complete(round);
    if (next != step::done) leave();
    co_return next;
}

opening::step opening::fail(nt_status why) noexcept {
    ENSURE(why != nt_status::success, "a failed CREATE has an error status");
    status_ = why;
    return step::failed;
}

// Releases the round, and waits for another request. `woken` is in one of that request's waiter lists.
io::task<opening::step> opening::wait_for(create_round& round, event<nt_status>& woken) noexcept {
    ENSURE(fresh_ == nullptr, "a CREATE that waits for another request has no open");
    round.release();
    (void)co_await r_.wait(woken);
    co_return r_.interrupted() ? fail(*r_.interrupted()) : step::waited;
}

// The exact name is missing, and cannot be created. The name may exist in another case, and then that
// decides.
bool opening::looks_in_any_case() noexcept {
    const bool may_exist = match_ == vfs::name_match::exact and found_.node == nullptr;
    if (not may_exist) return false;
    match_ = vfs::name_match::any_case;
    return true;
}

io::task<opening::step> opening::look_up(create_round& round) noexcept {
    claim_.cancel();
    claim_to_base_.cancel();
    discard_found();
    file_.reset();
    base_.reset();
    action_ = create_action::opened;
    status_ = nt_status::success;
    lookup_request asked{
        .path = name_.path,
        .stream = name_.stream,
        .links = wants(create_options::open_reparse_point) ? vfs::follow_links::no : vfs::follow_links::yes,
        .match = match_,
        .may_create = may_create(),
        .needs_rights = args_.disposition != create_disposition::create or not name_.stream.empty()};
    if (name_.stream.empty()) {
        asked.soon = data_of(wire::mapped_for_files(args_.desired_access));
        asked.soon.write = asked.soon.write or overwrites();
    }
    round.begin_lookup();
    changed_files_ = r_.host().files.changed_files();
    vfs::fs_domain& domain = is_beyond_mount_ ? *volume_.crossing_domain() : volume_.domain();
    auto found = co_await r_.call(domain, [&] { return server::look_up(r_.accessor(), asked); });
    if (not found and found.error() == crosses_mount and not is_beyond_mount_ and
        volume_.crossing_domain() != nullptr) {
        is_beyond_mount_ = true;  // the next round is one of that file system
        co_return step::again;
    }
    if (not found) {
        status_ = found.error();
        co_return looks_in_any_case() ? step::again : step::failed;
    }
    found_ = *std::move(found);
    status_ = check_lease_key();
    if (status_ == nt_status::success) co_return step::done;
    co_return looks_in_any_case() ? step::again : step::failed;
}

// --- a file that exists
// ------------------------------------------------------------------------------------------

io::task<opening::step> opening::use_existing(create_round& round) noexcept {
    status_ = check_existing();
    if (status_ == nt_status::success) status_ = authorise();
    if (status_ != nt_status::success) co_return step::failed;
    const step taken = take_over_from_instances();
    if (taken != step::done) co_return taken;
    file_ = r_.host().files.of(found_.node->key());
    ENSURE(file_->key() == found_.node->key(), "a state is found by its key");
    pending_creates& creates = round.names().creates();
    if (creates.has_any() and file_->protocol().entries().empty()) {
        // Its creator may not have joined yet.
        const name_key name = key_of_new(name_);
        event<nt_status> woken(r_.loop());
        pending_create_waiting waiting(creates, name, woken);
        if (creates.is_pending(name, waiting.place())) co_return co_await wait_for(round, woken);
    }
    co_return co_await join(round);
}

opening::step opening::take_over_from_instances() noexcept {
    const std::optional<app_instance> instance = app_instance_in(r_, args_.contexts);
    if (not instance or not wire::has(found_.allowed, wire::file_generic_read)) return step::done;
    switch (take_over_file(r_, *instance, *found_.node)) {
        case take_over::none:
            return step::done;
        case take_over::ended:
            return step::again;
        case take_over::refused:
            break;
    }
    return fail(nt_status::file_forced_closed);
}

// Returns the access needed while the open is made: overwriting needs more than the open is
// granted.
sharing opening::wanted() const noexcept {
    const bool empties = overwrites() and action_ != create_action::created;
    return {.access = empties ? granted_ | access_mask::write_data : granted_, .share = args_.share_access};
}

io::task<opening::step> opening::join(create_round& round) noexcept {
    open_protocol& protocol = file_->protocol();
    const verdict found = protocol.check(wanted());
    const caching_intent intent{
        .access = granted_,
        .overwrites = overwrites(),
        .violates_sharing = found == verdict::sharing_violation,
        .has_waited = has_waited_,
        .takes_over = app_instance_in(r_, args_.contexts).has_value(),
        .own = find_lease(r_, args_),
    };
    const caching_outcome way = ask_for_way(r_, *file_, intent);
    if (way == caching_outcome::waited) co_return step::waited;  // opens have ended
    if (way == caching_outcome::blocked) co_return co_await break_conflicting_caches(round);
    if (protocol.check(wanted()) != found) co_return step::again;  // opens without a client have ended
    switch (found) {
        case verdict::granted:
            break;
        case verdict::gone:
            co_return step::again;
        case verdict::delete_pending:
            co_return fail(nt_status::delete_pending);
        case verdict::sharing_violation:
            co_return fail(nt_status::sharing_violation);
        case verdict::blocked: {
            share_entry none;
            event<nt_status> woken(r_.loop());
            waiting<open_protocol> blocked(protocol, woken);
            (void)protocol.join(none, wanted(), blocked.place());
            co_return co_await wait_for(round, woken);
        }
    }
    status_ = begin_open();
    if (status_ != nt_status::success) co_return step::failed;
    take_node();
    event<nt_status> unused(r_.loop());
    waiting<open_protocol> granted(protocol, unused);
    const verdict joined = protocol.join(fresh_->entry, wanted(), granted.place());
    ENSURE(joined == verdict::granted, "nothing has changed since it was asked");
    fresh_->enter_file();
    if (overwrites()) emptying_.emplace(*fresh_);
    co_return step::done;
}

// Waits until those who cache the file have given it up.
io::task<opening::step> opening::break_conflicting_caches(create_round& round) noexcept {
    ENSURE(fresh_ == nullptr, "a CREATE that waits for a client has no open");
    const std::shared_ptr<file_state> file = file_;
    round.release();
    const caching_outcome outcome = co_await wait_for_caching(r_, *file);
    if (outcome == caching_outcome::cancelled or r_.interrupted()) co_return fail(r_.wait_failure_status());
    has_waited_ = true;
    co_return step::waited;
}

// --- a new file
// --------------------------------------------------------------------------------------------------

bool opening::makes_directory() const noexcept {
    return wants(create_options::directory_file) or name_.names_directory_index;
}

// Begins a lookup in any case, or fails with the reason why nothing is created.
opening::step opening::refused_creation(nt_status why) noexcept {
    status_ = why;
    return looks_in_any_case() ? step::again : step::failed;
}

io::task<opening::step> opening::create(create_round& round) noexcept {
    if (const nt_status refused = check_creation(); refused != nt_status::success)
        co_return refused_creation(refused);
    pending_creates& creates = round.names().creates();
    const name_key name = key_of_new(name_);
    {
        event<nt_status> woken(r_.loop());
        pending_create_waiting waiting(creates, name, woken);
        round.pending().emplace(name);
        if (not creates.begin(*round.pending(), waiting.place())) co_return co_await wait_for(round, woken);
    }
    if (found_.directory) {
        const auto directory = r_.host().files.of(found_.directory->node->key());
        event<nt_status> woken(r_.loop());
        waiting<open_protocol> blocked(directory->protocol(), woken);
        switch (directory->protocol().begin_directory_change(blocked.place())) {
            case verdict::granted:
                round.holds_change_of(directory);
                break;
            case verdict::blocked:
                co_return co_await wait_for(round, woken);
            case verdict::gone:
                co_return step::again;
            default:
                co_return fail(nt_status::delete_pending);
        }
    }
    // Before the file exists, because the client may be at its limit.
    status_ = begin_open();
    if (status_ != nt_status::success) co_return step::failed;
    const vfs::path_parts parts = vfs::split_path(name_.path);
    const creation wanted{.directory = found_.directory ? &*found_.directory : nullptr,
                          .file = found_.node.get(),
                          .name = parts.name,
                          .stream = name_.stream,
                          .is_directory = makes_directory()};
    vfs::fs_domain& domain = (found_.directory ? *found_.directory->node : *found_.node).domain();
    auto made = co_await r_.call(domain, [&] { return create_node(r_.accessor(), args_, wanted); });
    ENSURE(not fresh_->is_closed and fresh_->session == nullptr,
           "an open that is being made is its CREATE's");
    if (not made) {
        if (refused_creation(made.error()) == step::again) co_return step::again;
        if (status_ != nt_status::object_name_collision or args_.disposition == create_disposition::create)
            co_return step::failed;
        // Another process may have created it since the lookup: then it exists, and is opened as such. But
        // behind a link whose target is missing, nothing can be created.
        const nt_status there = co_await r_.call(domain, [&] {
            return is_link(volume_, name_.path) ? nt_status::object_name_not_found : nt_status::success;
        });
        co_return there == nt_status::success ? step::again : fail(there);  // as FILE_OPEN says
    }
    action_ = create_action::created;
    is_status_current_ = made->status.has_value();  // no other open has joined it
    if (made->status) found_.status = *made->status;
    found_.node = std::move(made->node);
    found_.is_stream_missing = false;
    grant_to_creator();
    take_node();
    const step joined = co_await join_created();
    if (joined == step::done) round.release_name();
    co_return joined;
}

void opening::grant_to_creator() noexcept {
    granted_ = wire::mapped_for_files(args_.desired_access);
    if (wire::has(granted_, access_mask::maximum_allowed))
        granted_ = without(granted_, access_mask::maximum_allowed) | wire::file_all_access;
    granted_ &= r_.tree->access_max;
}

// The key of a new file may still be that of a file whose removal has just ended: then it waits for the file
// table to forget that one.
io::task<opening::step> opening::join_created() noexcept {
    for (unsigned waits = 0; waits != limits::caching_waits_max; ++waits) {
        file_ = r_.host().files.of(fresh_->node->key());
        event<nt_status> woken(r_.loop());
        waiting<open_protocol> blocked(file_->protocol(), woken);
        const verdict found = file_->protocol().join(fresh_->entry, wanted(), blocked.place());
        if (found == verdict::granted) {
            fresh_->file = file_;
            ENSURE(file_->key() == fresh_->node->key(), "a state is found by its key");
            fresh_->enter_file();
            co_return step::done;
        }
        const bool is_removing = file_->protocol().phase() == delete_phase::removing;
        if (found == verdict::blocked) {
            (void)co_await r_.wait(woken);
        } else if (is_removing or found == verdict::gone) {
            const deadline until(std::chrono::milliseconds(1));
            io::task<bool> pausing = pass(r_.loop(), until);
            (void)co_await unlatched(r_.host().latch(), std::move(pausing));
        } else {
            co_return fail(found == verdict::delete_pending ? nt_status::delete_pending
                                                            : nt_status::sharing_violation);
        }
        if (r_.interrupted()) co_return fail(*r_.interrupted());
    }
    co_return fail(nt_status::sharing_violation);
}

// --- an open that has joined
// -------------------------------------------------------------------------------------

io::task<opening::step> opening::complete(create_round& round) noexcept {
    ENSURE(fresh_->entry.is_inside() and fresh_->entry.state() == entry_state::joining,
           "an open is completed after it has joined");
    if (action_ != create_action::created) {
        is_status_current_ = r_.host().files.changed_files() == changed_files_;
        if (round.has_removals()) {
            const auto status = co_await r_.call(*fresh_, [&] { return asked_status(*fresh_->node); });
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
            (void)co_await unlatched(r_.host().latch(), std::move(pausing));
        }
        if (settled != step::done) co_return settled;
    }
    status_ = co_await prepare();
    if (status_ == nt_status::success and r_.interrupted()) status_ = *r_.interrupted();
    if (status_ == nt_status::success) status_ = register_open();
    if (status_ != nt_status::success) co_return step::failed;
    fresh_->file->protocol().commit(fresh_->entry, {.access = granted_, .share = args_.share_access});
    co_return step::done;
}

// One attempt to claim the file among other servers.
result<share_mode_lock_byte> opening::claim(peer_servers& peers) {
    if (file_->key().stream == 0) return file_->peers_among(peers).claim(terms_of_file(wanted()), claim_);
    base_ = r_.host().files.of(file_->key().whole_file());
    const result<share_mode_lock_byte> at_base =
        base_->peers_among(peers).claim(terms_of_stream_at_file(wanted()), claim_to_base_);
    if (not at_base or *at_base != share_mode_lock_byte::none) return at_base;
    return file_->peers_among(peers).claim(terms_of(wanted()), claim_);
}

// A server has the sign of the file to itself for microseconds; only a stopped process has it longer.
io::task<opening::step> opening::check_peer_servers(peer_servers& peers) noexcept {
    for (;;) {
        const result<share_mode_lock_byte> in_the_way = claim(peers);
        const bool is_busy =
            not in_the_way and in_the_way.error() == std::errc::resource_unavailable_try_again;
        if (not is_busy and not in_the_way) co_return fail(nt_status::insufficient_resources);
        if (not is_busy and *in_the_way != share_mode_lock_byte::none)
            co_return fail(wire::has(*in_the_way, share_mode_lock_byte::goes) ? nt_status::delete_pending
                                                                              : nt_status::sharing_violation);
        if (not is_busy) break;
        if (++peer_attempts_ == limits::peer_attempts_max or r_.interrupted())
            co_return fail(r_.interrupted().value_or(nt_status::sharing_violation));
        if (action_ != create_action::created) co_return step::waited;
        // A file that exists already cannot be created again.
        const deadline until(limits::peer_pause_min);
        io::task<bool> pausing = pass(r_.loop(), until);
        (void)co_await unlatched(r_.host().latch(), std::move(pausing));
    }
    ENSURE(static_cast<bool>(claim_), "a file that no other server denies is claimed");
    // Another server may have removed it before we had our sign up; from now on none will.
    const auto status = co_await r_.call(*fresh_, [&] { return asked_status(*fresh_->node); });
    if (status) found_.status = *status;
    co_return status and status->links == 0 ? step::again : step::done;
}

io::task<nt_status> opening::prepare() noexcept {
    const bool empties = overwrites() and action_ != create_action::created;
    ENSURE(file_ == fresh_->file, "a CREATE prepares the file that it has joined");
    ENSURE(empties == emptying_.has_value(), "an open that is going to empty the file is a writer of it");
    preparation how{.overwrites = empties,
                    .is_stream = not name_.stream.empty(),
                    .data = data_of(granted_),
                    .as_found = {}};
    if (is_status_current_ and not file_->may_have_changed()) how.as_found = found_.status;
    std::uint32_t ended_before = file_->ended_changes();
    const auto call = [&] { return prepare_node(r_.accessor(), args_, *fresh_->node, how); };
    std::expected<reply_facts, nt_status> known = std::unexpected(nt_status::success);
    if (empties) {
        known = co_await call_in_turn(r_, *fresh_, call);
        emptying_.reset();
        ended_before += 2;  // its own
        action_ = args_.disposition == create_disposition::supersede ? create_action::superseded
                                                                     : create_action::overwritten;
    } else {
        known = co_await r_.call(*fresh_, call);
    }
    // If a change has ended in between, ask again: the client may cache the size and the times.
    for (unsigned i = 0; known and ended_before != file_->ended_changes() and i != limits::open_attempts_max;
         ++i) {
        ended_before = file_->ended_changes();
        known =
            co_await r_.call(*fresh_, [&] { return facts_for_reply(r_.accessor(), *fresh_->node, args_); });
    }
    if (not known) co_return known.error();
    facts_ = *known;
    file_->change_times().show_in(facts_.status, file_->key());
    co_return nt_status::success;
}

// The open that is to become the client's. It has an ID, but no session.
nt_status opening::begin_open() noexcept {
    ENSURE(fresh_ == nullptr, "a round creates one open");
    fresh_ = r_.host().opens.make(r_.session->admitted.client, r_.connection().home().number);
    if (fresh_ == nullptr) return nt_status::too_many_opened_files;
    fresh_->tree = r_.tree;
    fresh_->share_access = args_.share_access;
    return nt_status::success;
}

void opening::take_node() noexcept {
    fresh_->node = std::move(found_.node);
    fresh_->file = file_;
    fresh_->access = granted_;
}

nt_status opening::register_open() noexcept {
    session& by = *r_.session;
    if (by.opens.size() >= limits::opens_per_session_max) {
        r_.host().rejections.add(limit::opens_per_session, by.user.name);
        return nt_status::too_many_opened_files;
    }
    open& one = *fresh_;
    ENSURE(one.session == nullptr and not one.is_closed, "an open is given to its session once");
    ENSURE(one.tree == r_.tree, "an open is of the tree of its request");
    one.session = &by;
    one.made_on = r_.channel.get();
    one.create_options = args_.options;
    one.mode = bits_of(args_.options & shown_as_mode);
    one.deletes_on_close = wants(create_options::delete_on_close);
    one.client = r_.connection().agreed.client;
    one.instance = app_instance_in(r_, args_.contexts);
    claim_.keep(terms_of({.access = granted_, .share = args_.share_access}).up);
    one.claim = std::move(claim_);
    one.claim_to_base = std::move(claim_to_base_);
    ENSURE(by.opens.emplace(one.id.volatile_part.value(), fresh_).second,
           "an open comes to its session once");
    r_.compound().file = one.id;
    return nt_status::success;
}

// The round has failed, or begins again: the open goes, and with it the file that was created for it.
void opening::leave() noexcept {
    emptying_.reset();
    const std::shared_ptr<open> leaving = std::exchange(fresh_, nullptr);
    const bool has_created = action_ == create_action::created;
    if (leaving != nullptr) {
        leave_uncommitted(r_.host(), leaving, has_created);
    }
    action_ = create_action::opened;
}

void opening::undo() noexcept {
    if (fresh_ == nullptr) return;
    ENSURE(not fresh_->is_closed and fresh_->session == r_.session.get(),
           "nothing suspends between the commit and keep()");
    // Ending it must not remove a file that was there before.
    fresh_->deletes_on_close = action_ == create_action::created and file_->opens().size() == 1;
    (void)end_open(r_.host(), *fresh_);
    r_.compound().file.reset();
}

bool opening::wants(create_options option) const noexcept {
    return wire::has(args_.options, option);
}

bool opening::may_create() const noexcept {
    return args_.disposition != create_disposition::open and
           args_.disposition != create_disposition::overwrite;
}

bool opening::overwrites() const noexcept {
    return args_.disposition == create_disposition::overwrite or
           args_.disposition == create_disposition::overwrite_if or
           args_.disposition == create_disposition::supersede;
}

}  // namespace sluice::smb::server

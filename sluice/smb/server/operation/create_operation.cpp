#include "sluice/smb/server/operation/create_operation.hpp"

#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/app_takeover.hpp"
#include "sluice/smb/server/operation/file_removal.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::create_action;
using wire::create_disposition;
using wire::create_options;
using wire::nt_status;
using verdict = open_protocol::verdict;

namespace {

[[nodiscard]] bool has_no_entries(file_state& file) noexcept {
    const file_section held(file);
    return file.protocol(held).entries().empty();
}

// The name that a CREATE makes visible. Without the directory, whose key takes a call of its own to
// find: CREATEs of one name in two directories may wait for each other.
[[nodiscard]] name_key key_of_new(const file_name& name) {
    const std::uint64_t stream = name.stream.empty() ? 0 : vfs::stream_number(name.stream);
    return {vfs::file_key{}, vfs::split_path(name.path).name, stream};
}

}  // namespace

create_operation::create_operation(request& r, const wire::create_args& args, file_name name) noexcept
    : r_(r),
      args_(args),
      name_(std::move(name)),
      volume_(r.files().volume()),
      // A name to create is often new. Creating it finds it in any case, so the first look
      // is at the exact name.
      match_(may_create() ? vfs::name_match::exact : vfs::name_match::any_case) {}

create_operation::~create_operation() {
    ENSURE(r_.loop().is_owner(), "a CREATE ends on its loop");
    if (not is_kept_) undo();
    cancel_claims();
    discard_found();
}

void create_operation::cancel_claims() noexcept {
    if (file_ == nullptr or not(claim_ or claim_to_base_)) return;
    const file_section held(*file_);
    ENSURE(file_->peers(held) != nullptr, "a claim is to a file of several servers");
    claim_.cancel();
    claim_to_base_.cancel();
}

// Closing descriptors may block.
void create_operation::discard_found() noexcept {
    const auto discard = [this](vfs::node_ptr node) {
        if (node == nullptr) return;
        vfs::fs_domain& domain = node->domain();
        domain.discard(std::move(node), r_.files().target);
    };
    discard(std::move(found_.node));
    if (found_.directory) discard(std::move(found_.directory->node));
    found_ = {};
}

// --- rounds
// -------------------------------------------------------------------------------------------------

io::task<nt_status> create_operation::run() noexcept {
    status_ = check_share();
    if (status_ != nt_status::success) co_return status_;
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

io::task<create_operation::step> create_operation::attempt() noexcept {
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

create_operation::step create_operation::fail(nt_status why) noexcept {
    ENSURE(why != nt_status::success, "a failed CREATE has an error status");
    status_ = why;
    return step::failed;
}

// Releases the round, and waits for another request. `woken` is in one of that
// request's waiter lists.
io::task<create_operation::step> create_operation::wait_for(create_round& round,
                                                            one_shot_event<nt_status>& woken) noexcept {
    ENSURE(fresh_ == nullptr, "a CREATE that waits for another request has no open");
    round.release();
    (void)co_await r_.wait(woken);
    co_return r_.interrupted() ? fail(*r_.interrupted()) : step::waited;
}

// The exact name is missing, and cannot be created. The name may exist in another case,
// and then that decides.
bool create_operation::matches_any_case() noexcept {
    const bool may_exist = match_ == vfs::name_match::exact and found_.node == nullptr;
    if (not may_exist) return false;
    match_ = vfs::name_match::any_case;
    return true;
}

io::task<create_operation::step> create_operation::look_up(create_round& round) noexcept {
    cancel_claims();
    discard_found();
    file_.reset();
    action_ = create_action::opened;
    status_ = nt_status::success;
    lookup_request asked{
        .path = name_.path,
        .stream = name_.stream,
        .links = links(),
        .match = match_,
        .may_create = may_create(),
        .needs_rights = args_.disposition != create_disposition::create or not name_.stream.empty()};
    if (name_.stream.empty()) {
        asked.soon = data_access_of(desired());
        asked.soon.write = (asked.soon.write and r_.past == nullptr) or overwrites();
    }
    round.begin_lookup();
    changed_files_ = r_.host().files.changed_files();
    facts_names_ = round.names().changes();
    auto found = co_await r_.call(domain_of_lookup(), [&] { return server::look_up(r_.accessor(), asked); });
    if (not found and found.error() == crosses_mount and not is_beyond_mount_ and
        volume_.crossing_domain() != nullptr) {
        is_beyond_mount_ = true;  // the next round is one of that file system
        co_return step::again;
    }
    if (not found) {
        status_ = found.error();
        co_return matches_any_case() ? step::again : step::failed;
    }
    found_ = *std::move(found);
    status_ = check_lease_key();
    if (status_ == nt_status::success) co_return step::done;
    co_return matches_any_case() ? step::again : step::failed;
}

// --- a file that exists
// ------------------------------------------------------------------------------------------

// A file that is going to be removed refuses this CREATE. But one whose own CREATE has failed has
// never existed for others: waits until it is gone.
io::task<create_operation::step> create_operation::refused_by_removal(create_round& round) noexcept {
    ENSURE(status_ == nt_status::delete_pending and found_.node != nullptr, "a file that exists refuses");
    const std::shared_ptr<file_state> file = r_.host().files.find(found_.node->key());
    if (file == nullptr) co_return step::again;
    one_shot_event<nt_status> woken(r_.loop());
    waiting<file_state> blocked(*file, woken);
    if (file->is_undone(blocked.place())) co_return co_await wait_for(round, woken);
    co_return file->is_delete_pending() ? step::failed : step::again;
}

io::task<create_operation::step> create_operation::use_existing(create_round& round) noexcept {
    status_ = check_existing();
    if (status_ == nt_status::delete_pending) co_return co_await refused_by_removal(round);
    if (status_ == nt_status::success) status_ = authorise();
    if (status_ != nt_status::success) co_return step::failed;
    const step taken = take_over_from_instances();
    if (taken != step::done) co_return taken;
    file_ = r_.host().files.of(found_.node->key());
    pending_creates& creates = round.names().creates();
    if (creates.has_any() and has_no_entries(*file_)) {
        // Its creator may not have joined yet.
        const name_key name = key_of_new(name_);
        one_shot_event<nt_status> woken(r_.loop());
        pending_create_waiting waiting(creates, name, woken);
        if (creates.is_pending(name, waiting.place())) co_return co_await wait_for(round, woken);
    }
    co_return co_await join(round);
}

create_operation::step create_operation::take_over_from_instances() noexcept {
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
sharing create_operation::wanted() const noexcept {
    const bool empties = overwrites() and action_ != create_action::created;
    return {.access = empties ? granted_ | access_mask::write_data : granted_, .share = args_.share_access};
}

// Returns the next step after a verdict of the protocol; std::nullopt for `granted` and `blocked`.
std::optional<create_operation::step> create_operation::step_of(verdict found) noexcept {
    switch (found) {
        case verdict::granted:
        case verdict::blocked:
            break;
        case verdict::gone:
            return step::again;
        case verdict::delete_pending:
            return fail(nt_status::delete_pending);
        case verdict::sharing_violation:
            return fail(nt_status::sharing_violation);
    }
    return std::nullopt;
}

io::task<create_operation::step> create_operation::join(create_round& round) noexcept {
    // Before the section, because the client may be at its limit, which is logged.
    status_ = begin_open();
    if (status_ != nt_status::success) co_return step::failed;
    take_node();
    ENSURE(fresh_->file == file_ and not emptying_, "an open joins the file that was found");
    decided_breaks breaks;
    std::optional<caching_wait> for_caching;
    one_shot_event<nt_status> woken(r_.loop());
    waiting<file_state> blocked(*file_, woken);
    verdict found = verdict::granted;
    bool is_in_grace = false;
    {
        const file_section held(*file_);
        open_protocol& protocol = file_->protocol(held);
        const bool ends_streams =
            file_->base == nullptr and (overwrites() or wire::has(granted_, access_mask::delete_object));
        is_in_grace = server::is_in_grace(held, *file_) or
                      (ends_streams and has_stream_in_grace(held, r_.host(), *file_));
        found = protocol.check(wanted());
        const caching_intent intent{
            .access = granted_,
            .overwrites = overwrites(),
            .violates_sharing = found == verdict::sharing_violation,
            .has_waited = has_waited_,
            .takes_over = app_instance_in(r_, args_.contexts).has_value(),
            .own = find_lease(r_, args_),
            .cache = cache_of(r_, args_),
        };
        if (is_in_grace) {
            found = verdict::sharing_violation;
        } else if (decide_breaks_for_open(held, r_, *file_, intent, breaks) == caching_outcome::blocked) {
            for_caching.emplace(held, r_, *file_);
        } else {
            found = protocol.join(fresh_->in_file(held).entry, wanted(), blocked.place());
            if (found == verdict::granted) {
                fresh_->enter_file(held);
                if (overwrites()) emptying_.emplace(held, *fresh_);
            }
        }
    }
    const bool has_ended_any = breaks.send(r_.host());
    if (not for_caching and found == verdict::granted) co_return step::done;
    leave();
    if (is_in_grace) co_return fail(status_in_grace());
    if (for_caching) {
        if (has_ended_any) co_return step::waited;
        co_return co_await wait_for_caching(round, *for_caching);
    }
    if (has_ended_any) co_return step::again;
    if (const auto next = step_of(found)) co_return *next;
    co_return co_await wait_for(round, woken);
}

// Older dialects do not know that a client may come back.
nt_status create_operation::status_in_grace() const noexcept {
    const bool knows = r_.connection().agreed.is_at_least(wire::dialect::smb_3_0);
    return knows ? nt_status::file_not_available : nt_status::sharing_violation;
}

// Waits until those who cache the file have given it up.
io::task<create_operation::step> create_operation::wait_for_caching(create_round& round,
                                                                    caching_wait& blocked) noexcept {
    ENSURE(fresh_ == nullptr, "a CREATE that waits for a client has no open");
    const std::shared_ptr<file_state> held = file_;  // while `blocked` is in its list
    round.release();
    const caching_outcome outcome = co_await blocked.wait(r_);
    if (outcome == caching_outcome::cancelled or r_.interrupted()) co_return fail(r_.wait_failure_status());
    has_waited_ = true;
    co_return step::waited;
}

// --- a new file
// -------------------------------------------------------------------------------------------------

bool create_operation::makes_directory() const noexcept {
    return wants(create_options::directory_file) or name_.names_directory_index;
}

// Begins a lookup in any case, or fails with the reason why nothing is created.
create_operation::step create_operation::refused_creation(nt_status why) noexcept {
    status_ = why;
    return matches_any_case() ? step::again : step::failed;
}

io::task<create_operation::step> create_operation::create(create_round& round) noexcept {
    if (const nt_status refused = check_creation(); refused != nt_status::success) {
        status_ = refused;
        if (refused == nt_status::delete_pending and found_.is_stream_missing)
            co_return co_await refused_by_removal(round);
        co_return refused_creation(refused);
    }
    pending_creates& creates = round.names().creates();
    const name_key name = key_of_new(name_);
    {
        one_shot_event<nt_status> woken(r_.loop());
        pending_create_waiting waiting(creates, name, woken);
        round.pending().emplace(name);
        if (not creates.begin(*round.pending(), waiting.place())) co_return co_await wait_for(round, woken);
    }
    if (found_.directory) {
        const auto directory = r_.host().files.of(found_.directory->node->key());
        one_shot_event<nt_status> woken(r_.loop());
        waiting<file_state> blocked(*directory, woken);
        verdict found = verdict::granted;
        {
            const file_section held(*directory);
            found = directory->protocol(held).begin_directory_change(blocked.place());
        }
        if (const auto next = step_of(found)) co_return *next;
        if (found == verdict::blocked) co_return co_await wait_for(round, woken);
        round.holds_change_of(directory);
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
    facts_names_ = round.names().changes() + 1;  // with this creation
    // A stream may be created in the store, and its file may be a copy.
    const auto waits = name_.stream.empty() ? vfs::waits_for_calls::no : vfs::waits_for_calls::yes;
    own_change seen(r_.host());
    auto made = co_await r_.call(domain, [&] { return create_seen(wanted, seen); }, waits);
    ENSURE(fresh_->phase() == open_phase::making and not fresh_->has_session(),
           "an open that is being made is its CREATE's");
    if (not made) {
        if (refused_creation(made.error()) == step::again) co_return step::again;
        if (status_ != nt_status::object_name_collision or args_.disposition == create_disposition::create)
            co_return step::failed;
        // Another process has created it since the lookup: then it exists, and is opened as such.
        co_return step::again;
    }
    action_ = create_action::created;
    seen.break_leases(*fresh_);
    round.names().record_change();
    is_status_current_ = made->status.has_value();  // no other open has joined it
    if (made->status) found_.status = *made->status;
    found_.node = std::move(made->node);
    found_.is_stream_missing = false;
    granted_ = creator_rights();
    take_node();
    const step joined = co_await join_created();
    if (joined == step::done) round.release_name();
    co_return joined;
}

// Touches only the nodes and the volume.
std::expected<created_node, nt_status> create_operation::create_seen(const creation& wanted,
                                                                     own_change& seen) noexcept {
    // A stream changes what its file shows.
    const bool is_stream_of_file = wanted.directory == nullptr;
    if (is_stream_of_file)
        seen.begin(*wanted.file);
    else
        seen.begin_in(*wanted.directory->node, wanted.name);
    auto made = create_node(r_.accessor(), args_, wanted);
    seen.end(made.has_value(), is_stream_of_file ? wanted.file : made ? made->node.get() : nullptr);
    return made;
}

// Without those that a privilege gives.
access_mask create_operation::desired() const noexcept {
    return without(wire::mapped_for_files(args_.desired_access), access_mask::access_system_security);
}

access_mask create_operation::privileged() const noexcept {
    const access_mask asked = args_.desired_access & access_mask::access_system_security;
    ENSURE(asked == access_mask::none or r_.tree->audits, "a privilege that is asked for was checked");
    return asked;
}

access_mask create_operation::creator_rights() const noexcept {
    // The creator of a file gets all rights; that of a stream, those to the file that has it.
    const access_mask most = found_.directory ? r_.tree->access_max : found_.allowed;
    access_mask rights = desired();
    if (wire::has(rights, access_mask::maximum_allowed))
        rights = without(rights, access_mask::maximum_allowed) | most;
    ENSURE(wire::has(r_.tree->access_max, most) and wire::has(most, rights),
           "an open is granted what its tree and its file allow");
    return rights | privileged();
}

// The key of a new file may still be that of a file whose removal has just ended: then it waits for
// the file table to forget that one.
io::task<create_operation::step> create_operation::join_created() noexcept {
    for (unsigned waits = 0; waits != limits::caching_waits_max; ++waits) {
        ENSURE(fresh_->file == nullptr, "an open joins one file");
        file_ = r_.host().files.of(fresh_->node->key());
        one_shot_event<nt_status> woken(r_.loop());
        waiting<file_state> blocked(*file_, woken);
        fresh_->file = file_;
        verdict found = verdict::granted;
        bool is_removing = false;
        {
            const file_section held(*file_);
            open_protocol& protocol = file_->protocol(held);
            found = protocol.join(fresh_->in_file(held).entry, wanted(), blocked.place());
            if (found == verdict::granted) fresh_->enter_file(held);
            is_removing = protocol.phase() == delete_phase::removing;
        }
        if (found == verdict::granted) co_return step::done;
        fresh_->file.reset();
        if (found == verdict::blocked) {
            (void)co_await r_.wait(woken);
        } else if (is_removing or found == verdict::gone) {
            const deadline until(std::chrono::milliseconds(1));
            io::task<bool> pausing = pass(r_.loop(), until);
            (void)co_await within_work(std::move(pausing));
        } else {
            co_return fail(found == verdict::delete_pending ? nt_status::delete_pending
                                                            : nt_status::sharing_violation);
        }
        if (r_.interrupted()) co_return fail(*r_.interrupted());
    }
    co_return fail(nt_status::sharing_violation);
}

// The open that is to become the client's. It has an ID, but no session.
nt_status create_operation::begin_open() noexcept {
    ENSURE(fresh_ == nullptr, "a round creates one open");
    fresh_ = r_.host().opens.make(r_.session->admitted.client, r_.connection().home().number);
    if (fresh_ == nullptr) return nt_status::too_many_opened_files;
    fresh_->through = r_.files().target;
    fresh_->past = r_.past;
    fresh_->share_access = args_.share_access;
    fresh_->create_options = args_.options;
    fresh_->mode.store(bits_of(args_.options & shown_as_mode), std::memory_order_relaxed);
    fresh_->client = r_.connection().agreed.client;
    fresh_->disposition = args_.disposition;
    fresh_->attributes = args_.file_attributes;
    // A new open has the number 0, which most clients use.
    const std::uint16_t sequence = r_.header().channel_sequence;
    if (sequence != 0 and r_.connection().agreed.is_at_least(wire::dialect::smb_3_0))
        fresh_->begin_sequence(sequence);
    fresh_->instance = app_instance_in(r_, args_.contexts);
    if (args_.contexts.durable_v2 and r_.connection().agreed.is_at_least(wire::dialect::smb_3_0))
        fresh_->create_guid = args_.contexts.durable_v2->create_guid;
    const auto& lease = args_.contexts.lease;
    if (args_.oplock_level == wire::oplock_level::lease and lease and lease->v2 and
        wire::has(lease->flags, wire::lease_flags::parent_key_set))
        fresh_->parent_key = lease->v2->parent_key;
    return nt_status::success;
}

void create_operation::take_node() noexcept {
    fresh_->node = std::move(found_.node);
    fresh_->file = file_;
    fresh_->access = granted_;
}

// The round has failed, or begins again: the open goes, and with it the file
// that was created for it.
void create_operation::leave() noexcept {
    ENSURE(not is_committed_, "an open that is committed is ended, not left");
    emptying_.reset();
    const std::shared_ptr<open> leaving = std::exchange(fresh_, nullptr);
    const bool has_created = action_ == create_action::created;
    if (leaving != nullptr) {
        leave_uncommitted(r_.host(), leaving, has_created);
        r_.compound().file.reset();
    }
    action_ = create_action::opened;
}

void create_operation::undo() noexcept {
    if (fresh_ == nullptr) return;
    if (not is_committed_) return leave();
    r_.compound().file.reset();
    // Ending it must not remove a file that was there before.
    end_created_open(r_.host(), *fresh_, action_ == create_action::created);
    r_.grants.reset();  // after its end: a break of a lease that nothing has is not sent
}

vfs::follow_links create_operation::links() const noexcept {
    return wants(create_options::open_reparse_point) ? vfs::follow_links::no : vfs::follow_links::yes;
}

vfs::fs_domain& create_operation::domain_of_lookup() const noexcept {
    return is_beyond_mount_ ? *volume_.crossing_domain() : volume_.domain();
}

bool create_operation::wants(create_options option) const noexcept {
    return wire::has(args_.options, option);
}

bool create_operation::may_create() const noexcept {
    return args_.disposition != create_disposition::open and
           args_.disposition != create_disposition::overwrite and r_.past == nullptr;
}

bool create_operation::overwrites() const noexcept {
    return args_.disposition == create_disposition::overwrite or
           args_.disposition == create_disposition::overwrite_if or
           args_.disposition == create_disposition::supersede;
}

}  // namespace sluice::smb::server

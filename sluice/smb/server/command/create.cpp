#include "sluice/smb/wire/create/create.hpp"

#include <chrono>

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/create_operation.hpp"
#include "sluice/smb/server/operation/durable.hpp"
#include "sluice/smb/server/operation/file_removal.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/server/operation/past_files.hpp"
#include "sluice/smb/server/operation/rpc_named_pipe.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::server {

using wire::create_options;
using wire::nt_status;

namespace {

constexpr std::size_t reply_bytes_max = 88 + 512;

[[nodiscard]] nt_status check_attributes(wire::file_attributes wanted) noexcept {
    // The last two concern checksums of ReFS, and are ignored ([MS-FSA] 2.1.5.1.1).
    constexpr auto known = static_cast<wire::file_attributes>(0x0000'7fb7) |
                           wire::file_attributes::integrity_stream | wire::file_attributes::no_scrub_data;
    if (wire::without(wanted, known) != wire::file_attributes::none) return nt_status::invalid_parameter;
    // This server does not encrypt files on behalf of clients.
    return wire::has(wanted, wire::file_attributes::encrypted) ? nt_status::access_denied
                                                               : nt_status::success;
}

// Rules that do not depend on the file ([MS-SMB2] 3.3.5.9, [MS-FSA] 2.1.5.1).
[[nodiscard]] nt_status check(const request& r, const wire::create_args& args) noexcept {
    if (args.impersonation_level > wire::impersonation_level::delegate)
        return nt_status::bad_impersonation_level;
    if (args.disposition > wire::create_disposition::overwrite_if) return nt_status::invalid_parameter;
    if (wire::bits_of(args.share_access) > 7) return nt_status::invalid_parameter;
    constexpr auto options_known = static_cast<create_options>(0x00ff'ffff);
    if (wire::without(args.options, options_known) != create_options::none)
        return nt_status::invalid_parameter;
    if (wire::has(args.options, create_options::directory_file | create_options::non_directory_file))
        return nt_status::invalid_parameter;
    constexpr auto tree_connection = static_cast<create_options>(0x80);
    if (wire::has_any(args.options,
                      tree_connection | create_options::open_by_file_id | create_options::reserve_opfilter))
        return nt_status::not_supported;
    constexpr auto access_known = static_cast<wire::access_mask>(0xf31f'01ff);
    if (args.desired_access == wire::access_mask::none or
        wire::without(args.desired_access, access_known) != wire::access_mask::none)
        return nt_status::access_denied;
    // This right comes with a privilege, whatever the file's descriptor says ([MS-FSA]
    // 2.1.5.1.2.1).
    const bool audits = wire::has(args.desired_access, wire::access_mask::access_system_security);
    if (audits and not r.tree->audits) return nt_status::privilege_not_held;
    return check_attributes(args.file_attributes);
}

[[nodiscard]] nt_status send(request& r, const wire::create_reply& reply) noexcept {
    byte_writer* const body = r.begin_reply(reply_bytes_max);
    if (body == nullptr) return nt_status::insufficient_resources;
    encode(*body, reply);
    return nt_status::success;
}

[[nodiscard]] nt_status open_pipe(request& r, const wire::create_args& args) {
    const auto name = wire::utf8_of(args.name);
    if (not name) return nt_status::invalid_parameter;
    std::unique_ptr<named_pipe> pipe = make_named_pipe(r.host(), *name, *r.session);
    if (pipe == nullptr) return nt_status::object_name_not_found;
    const std::shared_ptr<open> one =
        r.host().opens.make(r.session->admitted.client, r.connection().home().number);
    if (one == nullptr) return nt_status::too_many_opened_files;
    one->through = r.tree->target;
    one->pipe = std::move(pipe);
    one->access = wire::file_generic_read | wire::file_generic_write;
    open::disconnect_state none;
    const auto admitted = r.session->admit(one->id.volatile_part.value(), one, *r.tree, [&]() noexcept {
        return one->attach(*r.session, r.tree, r.channel.get(), none);
    });
    ENSURE(one->file == nullptr and one->is_pipe(), "a pipe has no file");
    const bool is_made = admitted == session::admission_result::admitted and one->go_live();
    wire::create_reply reply{.file = one->id};
    reply.information.attributes = wire::file_attributes::normal;
    if (not is_made) {
        leave_uncommitted(r.host(), one, false);
        return admitted == session::admission_result::too_many ? refuse_open(r)
                                                               : nt_status::user_session_deleted;
    }
    if (const nt_status sent = send(r, reply); sent != nt_status::success) {
        (void)end_open(r.host(), *one);
        return sent;
    }
    r.compound().file = one->id;
    return nt_status::success;
}

// The reply to Finder's query, which it sends once for each connection. A server that reports to be
// Unix lets it use names as they are; full_sync states that a flush reaches the disk.
[[nodiscard]] std::optional<wire::aapl_answer> answer_to_apple(const wire::aapl_request& asked) noexcept {
    static constexpr std::array<std::byte, 12> model{std::byte{'S'}, {}, std::byte{'l'}, {},
                                                     std::byte{'u'}, {}, std::byte{'i'}, {},
                                                     std::byte{'c'}, {}, std::byte{'e'}, {}};
    if (not asked.query) return std::nullopt;
    wire::aapl_answer answer;
    const auto asks_for = [&](wire::aapl_fields field) { return wire::has(asked.query->fields, field); };
    if (asks_for(wire::aapl_fields::server_capabilities)) answer.server = wire::aapl_capabilities::unix_based;
    if (asks_for(wire::aapl_fields::volume_capabilities))
        answer.volume = wire::aapl_volume_capabilities::full_sync;
    if (asks_for(wire::aapl_fields::model)) answer.model = bytes_view(std::span<const std::byte>(model));
    return answer;
}

// Returns the fields that every reply has for an open, whether new or returned to its client.
[[nodiscard]] wire::create_reply describe(const wire::create_args& args, const open& one,
                                          wire::create_action action, const reply_facts& known) {
    wire::create_reply reply{
        .action = action, .information = open_information_of(known.status), .file = one.id};
    if (args.contexts.maximal_access) reply.contexts.maximal_access = known.maximal_access;
    if (args.contexts.aapl) reply.contexts.aapl = answer_to_apple(*args.contexts.aapl);
    if (args.contexts.on_disk_id)
        reply.contexts.on_disk_id = {.file = known.status.id, .volume = known.status.volume};
    return reply;
}

void encode_caching_of(request& r, open& one, wire::create_reply& reply) {
    const file_section held(*one.file);
    caching_of(held, one).put_into(reply);
    record_grant(held, r, one);
}

[[nodiscard]] nt_status reply_to_new(request& r, const wire::create_args& args,
                                     const create_operation& made) {
    open& fresh = *made.fresh();
    wire::create_reply reply = describe(args, fresh, made.action(), made.facts());
    made.caching().put_into(reply);
    grant_durability(r, fresh, args, made.caching().has_handle, reply);
    return send(r, reply);
}

// Asks for the facts in the reply about an open that exists.
[[nodiscard]] io::task<std::expected<reply_facts, nt_status>> ask(request& r, const wire::create_args& args,
                                                                  std::shared_ptr<open> one) noexcept {
    r.past = one->past;
    auto known = co_await r.call(*one, [&] { return facts_for_reply(r.accessor(), *one->node, args); });
    if (not known) co_return known;
    // The session may have ended in the meantime, and the open with it.
    if (r.interrupted()) co_return std::unexpected(*r.interrupted());
    if (one->has_ended()) co_return std::unexpected(nt_status::file_closed);
    one->file->show_change_time(known->status);
    co_return known;
}

[[nodiscard]] bool is_still_with_another(const request& r, const reconnection& wanted) noexcept {
    const auto one = find_wanted(r, wanted);
    return one != nullptr and one->is_live() and one->is_durable() and one->has_session() and
           not one->is_of(*r.session);
}

// A client that lost a connection may be back before that connection's loop has noticed: the open
// then still belongs to the session that is ending. So the server searches for it for a quarter of
// a second before it replies that there is none.
[[nodiscard]] io::task<void> await_loss_notice(request& r, const reconnection& wanted) {
    for (std::chrono::milliseconds pause{1}; pause < std::chrono::milliseconds(256); pause *= 2) {
        if (not is_still_with_another(r, wanted)) co_return;
        const deadline until(pause);
        io::task<bool> waiting = pass(r.loop(), until);
        const bool has_slept = co_await within_work(std::move(waiting));
        if (not has_slept or r.interrupted()) co_return;
    }
}

// The client does not know that it has the open back, and may try again.
void return_to_orphans(request& r, const std::shared_ptr<open>& one) noexcept {
    r.compound().file.reset();
    // If this does not end it either, the session has ended, or another has the open back.
    if (not keep_without_client(r.host(), one, *r.session))
        (void)end_open_of(r.host(), *one, r.session.get());
}

[[nodiscard]] io::task<nt_status> serve_reconnect(request& r, const wire::create_args& args,
                                                  const reconnection& wanted) {
    io::task<void> noticing = await_loss_notice(r, wanted);
    co_await std::move(noticing);
    if (r.interrupted()) co_return *r.interrupted();
    const auto back = reconnect(r, args, wanted);
    if (not back) co_return back.error();
    auto asking = ask(r, args, *back);
    const auto known = co_await std::move(asking);
    nt_status status = known ? nt_status::success : known.error();
    if (known) {
        wire::create_reply reply = describe(args, **back, wire::create_action::opened, *known);
        encode_caching_of(r, **back, reply);
        status = send(r, reply);
    }
    if (status != nt_status::success) return_to_orphans(r, *back);
    co_return status;
}

[[nodiscard]] io::task<nt_status> reply_to_replay(request& r, const wire::create_args& args,
                                                  std::shared_ptr<open> made) noexcept {
    const bool asks_lease = args.oplock_level == wire::oplock_level::lease and args.contexts.lease;
    auto asking = ask(r, args, made);
    const auto known = co_await std::move(asking);
    if (not known) co_return known.error();
    made->set_create_reply_channel(r.channel.get());  // this reply carries its oplock now
    wire::create_reply reply = describe(args, *made, made->action, *known);
    encode_caching_of(r, *made, reply);
    // As Windows does it, whatever the open has.
    if (not asks_lease) {
        reply.oplock_level = args.oplock_level;
        reply.contexts.lease.reset();
    }
    if (asks_lease or args.oplock_level == wire::oplock_level::batch or made->is_persistent())
        encode_durability(*made, reply);
    co_return send(r, reply);
}

[[nodiscard]] bool has_lease_of(open& one, const wire::lease_key& key) noexcept {
    const file_section held(*one.file);
    const lease* const its = one.in_file(held).lease.get();
    return its != nullptr and not its->is_oplock() and its->who().key == key;
}

// A repeated CREATE returns a persistent open as long as that exists. So it must be the same
// CREATE ([MS-SMB2] 3.3.5.9.10).
[[nodiscard]] nt_status check_repetition(const request& r, const wire::create_args& args,
                                         const open& made) noexcept {
    if (not made.is_persistent()) return nt_status::success;
    if (not is_owner_of(r, made)) return nt_status::access_denied;
    const bool is_same = args.file_attributes == made.attributes and args.disposition == made.disposition and
                         wire::has(args.contexts.durable_v2->flags, wire::durable_flags::persistent);
    return is_same ? nt_status::success : nt_status::invalid_parameter;
}

// A repeated CREATE: replies with the same open, if it is a replay ([MS-SMB2] 3.3.5.9.10).
[[nodiscard]] io::task<nt_status> serve_replay(request& r, const wire::create_args& args,
                                               std::shared_ptr<open> made) noexcept {
    if (not made->is_live()) co_return nt_status::file_not_available;  // it has just ended
    const bool is_orphan = not made->has_session();
    if (not is_orphan and not made->is_of(*r.session)) co_return nt_status::duplicate_objectid;
    const bool asks_lease = args.oplock_level == wire::oplock_level::lease and args.contexts.lease;
    if (asks_lease and not has_lease_of(*made, args.contexts.lease->key)) co_return nt_status::access_denied;
    if (const nt_status wrong = check_repetition(r, args, *made); wrong != nt_status::success)
        co_return wrong;
    if (is_orphan) {
        const auto back = reconnect(
            r, args,
            {.file = made->id, .create_guid = made->create_guid, .is_persistent = made->is_persistent()});
        if (not back) co_return back.error();
    }
    io::task<nt_status> replying = reply_to_replay(r, args, made);
    const nt_status status = co_await std::move(replying);
    if (status == nt_status::success)
        r.compound().file = made->id;
    else if (is_orphan)
        return_to_orphans(r, made);
    co_return status;
}

// An entry for an open with a create guid, so that a repeated request finds it.
using begun = std::expected<replay_table::outcome, nt_status>;
[[nodiscard]] begun begin_replayable(request& r, const wire::create_args& args) {
    if (not args.contexts.durable_v2 or not r.connection().agreed.is_at_least(wire::dialect::smb_3_0))
        return replay_table::outcome{};
    const replay_table::identity which{.client = r.connection().agreed.client,
                                       .create = args.contexts.durable_v2->create_guid};
    return r.host().replays.find_or_begin(which, wire::has(r.header().flags, wire::header_flags::replay));
}

[[nodiscard]] bool names_quota_file(const wire::create_args& args) {
    const auto name = wire::utf8_of(args.name);
    return name and is_quota_file_name(*name);
}

}  // namespace

io::task<nt_status> serve_create(request& r) {
    const auto args = wire::decode_create(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    r.compound().file.reset();
    if (r.tree->target->is_pipes()) co_return open_pipe(r, *args);
    // The client then asks for a referral ([MS-DFSC] 3.1.5.1). If a reload has removed or
    // changed that, the client connects to the share again.
    if (r.tree->target->is_referral())
        co_return r.tree->target->is_withdrawn() ? nt_status::network_name_deleted
                                                 : nt_status::path_not_covered;
    if (const nt_status refused = check_durability(args->contexts); refused != nt_status::success)
        co_return refused;
    if (const auto wanted = reconnection_in(args->contexts)) {
        io::task<nt_status> running = serve_reconnect(r, *args, *wanted);
        co_return co_await std::move(running);
    }
    if (const nt_status refused = check(r, *args); refused != nt_status::success) co_return refused;
    const bool is_about_quotas = r.tree->volume().quotas() != nullptr and names_quota_file(*args);
    auto name = parse_file_name(is_about_quotas ? bytes_view() : args->name,
                                r.host().opens.memory(r.connection().home().number));
    if (not name) co_return name.error();
    const auto when = asked_time(*r.tree->target, args->contexts, *name);
    if (not when) co_return when.error();
    // Without named streams, no name has a colon ([MS-FSCC] 2.1.5.2).
    if (name->names_stream and not r.tree->volume().features().has_streams)
        co_return nt_status::object_name_invalid;
    begun repeatable = begin_replayable(r, *args);
    if (not repeatable) co_return repeatable.error();
    if (repeatable->made != nullptr) {
        io::task<nt_status> replaying = serve_replay(r, *args, repeatable->made);
        co_return co_await std::move(replaying);
    }

    if (*when) {
        if (const nt_status refused = check_for_past(*args); refused != nt_status::success) co_return refused;
        io::task<nt_status> entering = enter_past(r, **when);
        const nt_status entered = co_await std::move(entering);
        if (entered != nt_status::success) co_return entered;
    }
    create_operation operation(r, *args, *std::move(name));
    io::task<nt_status> running = operation.run();
    const nt_status status = co_await std::move(running);
    if (status != nt_status::success) {
        io::task<nt_status> explaining = operation.status_for_client(status);
        const nt_status explained = co_await std::move(explaining);
        const bool would_create = args->disposition == wire::create_disposition::open_if;
        if (r.past != nullptr and would_create and explained == nt_status::object_name_not_found)
            co_return nt_status::media_write_protected;
        co_return explained;
    }
    const nt_status replied = reply_to_new(r, *args, operation);
    if (replied != nt_status::success) co_return replied;
    // From here on, a repeated CREATE finds all that this reply says.
    if (repeatable->fresh) repeatable->fresh->keep(operation.fresh());
    operation.keep();
    co_return nt_status::success;
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/operation/durable.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/metadata/file_name.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"

namespace sluice::smb::server {

using wire::lease_state;
using wire::nt_status;

namespace {

[[nodiscard]] bool caches_handle(const open& one) noexcept {
    return one.lease != nullptr and wire::has(one.lease->held(), lease_state::handle);
}

// Locks are kept for a client that is gone only while it may cache writes: then no other client has
// the file open, and none has to wait for them. As smbtorture expects
// (durable-open.lock-noW-lease).
[[nodiscard]] bool locks_without_caching_writes(const open& one) noexcept {
    return one.file != nullptr and one.file->locks().held_by(one) != 0 and
           not wire::has(one.lease->held(), lease_state::write);
}

[[nodiscard]] std::chrono::milliseconds timeout_for(std::uint32_t asked_ms) noexcept {
    if (asked_ms == 0) return limits::durable_timeout_default;
    return std::min<std::chrono::milliseconds>(std::chrono::milliseconds(asked_ms),
                                               limits::durable_timeout_max);
}

// Leases are bound to a client and a name, oplocks to nothing but the open.
[[nodiscard]] nt_status check_lease(const request& r, const wire::create_args& args,
                                    const open& one) noexcept {
    const bool has_lease = one.lease != nullptr and not one.lease->is_oplock();
    if (has_lease != args.contexts.lease.has_value()) return nt_status::object_name_not_found;
    if (not has_lease) return nt_status::success;
    const lease::identity named{.client = r.connection().agreed.client, .key = args.contexts.lease->key};
    if (one.lease->who() != named) return nt_status::object_name_not_found;
    const auto name = parse_file_name(args.name);
    if (not name or not equal_ignoring_case(name->path, one.node->path()))
        return nt_status::invalid_parameter;
    return nt_status::success;
}

[[nodiscard]] nt_status check(const request& r, const wire::create_args& args, const reconnection& wanted,
                              const open* one) noexcept {
    if (one == nullptr or one->session != nullptr or not one->durable or one->is_closed)
        return nt_status::object_name_not_found;
    if (wanted.is_persistent) return nt_status::object_name_not_found;
    if (wanted.create_guid and *wanted.create_guid != one->create_guid.value_or(wire::guid{}))
        return nt_status::object_name_not_found;
    if (one->tree->target != r.tree->target) return nt_status::object_name_not_found;
    if (const nt_status wrong = check_lease(r, args, *one); wrong != nt_status::success) return wrong;
    const user_identity& user = r.session->user;
    // An anonymous client may be the previous one or any other.
    const bool is_owner = not user.is_anonymous and equal_ignoring_case(one->durable->owner, user.name) and
                          equal_ignoring_case(one->durable->owner_domain, user.domain);
    return is_owner ? nt_status::success : nt_status::access_denied;
}

}  // namespace

nt_status check_durability(const wire::create_request_contexts& asked) noexcept {
    const bool is_first = asked.durable or asked.durable_reconnect;
    const bool is_second = asked.durable_v2 or asked.durable_reconnect_v2;
    if (is_first and is_second) return nt_status::invalid_parameter;
    if (asked.durable_v2 and asked.durable_reconnect_v2) return nt_status::invalid_parameter;
    return nt_status::success;
}

void grant_durability(const request& r, open& fresh, const wire::create_args& args,
                      wire::create_reply& reply) {
    ENSURE(fresh.session == r.session.get() and not fresh.durable,
           "a new open is its client's, and not durable yet");
    const wire::create_request_contexts& asked = args.contexts;
    const bool asks_second = asked.durable_v2 and r.connection().agreed.is_at_least(wire::dialect::smb_3_0);
    if (fresh.is_directory() or not caches_handle(fresh) or not(asked.durable or asks_second)) return;
    const user_identity& user = r.session->user;
    fresh.durable.emplace(durability{.owner = user.name,
                                     .owner_domain = user.domain,
                                     .is_second_generation = asks_second,
                                     .is_resilient = false,
                                     .timeout = timeout_for(asks_second ? asked.durable_v2->timeout_ms : 0),
                                     .end = {}});
    encode_durability(fresh, reply);
}

void encode_durability(const open& one, wire::create_reply& reply) noexcept {
    if (not one.durable) return;
    if (not one.durable->is_second_generation) {
        reply.contexts.durable = true;
        return;
    }
    // Never persistent: an open that survives the server itself would have to be stored.
    reply.contexts.durable_v2 =
        wire::durable_answer_v2{.timeout_ms = static_cast<std::uint32_t>(one.durable->timeout.count()),
                                .flags = wire::durable_flags::none};
}

bool keep_without_client(server_context& host, open& one) noexcept {
    if (not one.durable) return false;
    ENSURE(one.session != nullptr and not one.is_closed,
           "an open that is kept is still in the table of its session");
    ENSURE(not one.durable->end, "the time of an open runs while its client is gone");
    const bool is_cached =
        caches_handle(one) and not one.lease->is_breaking() and not locks_without_caching_writes(one);
    if (not is_cached and not one.durable->is_resilient) return false;
    one.counted_kept = host.quotas.take(one.counted.client(), limit::kept_opens);
    if (one.counted_kept.amount() == 0) return false;
    ENSURE(one.session->opens.erase(one.id.volatile_part.value()) == 1,
           "an open is in the table of its session");
    one.session = nullptr;
    end_watch(one);
    one.scan.reset();
    one.durable->end = host.later.add(one.durable->timeout, [&host, id = one.id]() noexcept {
        const std::shared_ptr<open> kept = host.opens.find(id);
        ENSURE(kept != nullptr, "an open cancels its own end when it ends or its client is back");
        ENSURE(kept->session == nullptr and kept->durable,
               "the time of an open runs while its client is gone");
        kept->durable->end.reset();
        (void)end_open(host, *kept);
    });
    return true;
}

std::optional<reconnection> reconnection_in(const wire::create_request_contexts& asked) noexcept {
    if (asked.durable_reconnect) return reconnection{.file = *asked.durable_reconnect};
    if (not asked.durable_reconnect_v2) return std::nullopt;
    return reconnection{
        .file = asked.durable_reconnect_v2->file,
        .create_guid = asked.durable_reconnect_v2->create_guid,
        .is_persistent = wire::has(asked.durable_reconnect_v2->flags, wire::durable_flags::persistent)};
}

std::expected<std::shared_ptr<open>, nt_status> reconnect(request& r, const wire::create_args& args,
                                                          const reconnection& wanted) {
    std::shared_ptr<open> one = r.host().opens.find_persistent(wanted.file.persistent_part.value());
    const nt_status refused = check(r, args, wanted, one.get());
    if (refused != nt_status::success) return std::unexpected(refused);
    session& by = *r.session;
    if (by.opens.size() >= limits::opens_per_session_max)
        return std::unexpected(nt_status::too_many_opened_files);
    ENSURE(one->durable->end.has_value(), "an open without its client ends some time");
    r.host().later.end(one->durable->end);
    one->counted_kept.reset();
    one->session = &by;
    one->made_on = r.channel.get();
    one->tree = r.tree;
    ENSURE(by.opens.emplace(one->id.volatile_part.value(), one).second, "an open comes to a session once");
    r.compound().file = one->id;
    return one;
}

}  // namespace sluice::smb::server

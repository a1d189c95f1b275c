#include "sluice/smb/server/operation/durable.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/metadata/file_name.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"

namespace sluice::smb::server {

using wire::lease_state;
using wire::nt_status;

namespace {

// Locks are kept for a client that is gone only while it may cache writes: then no other client has
// the file open, and none has to wait for them. As smbtorture expects
// (durable-open.lock-noW-lease).
[[nodiscard]] bool may_outlive_client(open& one, const durability& how) noexcept {
    if (how.is_resilient or how.is_persistent) return true;
    if (one.file == nullptr) return false;
    const file_section held(*one.file);
    const lease* const its = one.in_file(held).lease.get();
    const bool is_cached = caches_handle(held, one) and not its->is_breaking();
    const bool has_locks = one.file->locks(held).held_by(one) != 0;
    return is_cached and (not has_locks or wire::has(its->held(), lease_state::write));
}

[[nodiscard]] std::chrono::milliseconds timeout_for(std::uint32_t asked_ms) noexcept {
    if (asked_ms == 0) return limits::durable_timeout_default;
    return std::min<std::chrono::milliseconds>(std::chrono::milliseconds(asked_ms),
                                               limits::durable_timeout_max);
}

// Leases are bound to a client and a name, oplocks to nothing but the open.
[[nodiscard]] nt_status check_lease(const request& r, const wire::create_args& args, open& one) noexcept {
    std::string other_path;
    {
        const file_section held(*one.file);
        const lease* const its = one.in_file(held).lease.get();
        const bool has_lease = its != nullptr and not its->is_oplock();
        if (has_lease != args.contexts.lease.has_value()) return nt_status::object_name_not_found;
        if (not has_lease) return nt_status::success;
        const lease::identity named{.client = r.connection().agreed.client, .key = args.contexts.lease->key};
        if (its->who() != named) return nt_status::object_name_not_found;
        if (const persistence* const of = one.in_file(held).persistent.get()) other_path = of->other_path;
    }
    const auto name = parse_file_name(args.name);
    if (not name) return nt_status::invalid_parameter;
    // The client may not have got the reply to its rename before the server was killed.
    const bool is_its_name = equal_ignoring_case(name->path, one.node->path()) or
                             (not other_path.empty() and equal_ignoring_case(name->path, other_path));
    return is_its_name ? nt_status::success : nt_status::invalid_parameter;
}

// Its client has closed it before the server was restarted, and it is about to remove its file.
[[nodiscard]] bool is_closed(open& one) noexcept {
    const file_section held(*one.file);
    const persistence* const its = one.in_file(held).persistent.get();
    return its != nullptr and its->is_closed;
}

// An anonymous client may be the previous one or any other.
[[nodiscard]] bool is_of_owner(const durability& kept, const user_identity& user) noexcept {
    return not user.is_anonymous and equal_ignoring_case(kept.owner, user.name) and
           equal_ignoring_case(kept.owner_domain, user.domain);
}

[[nodiscard]] nt_status check(const request& r, const wire::create_args& args, const reconnection& wanted,
                              open* one) noexcept {
    if (one == nullptr or not one->is_live() or one->has_session()) return nt_status::object_name_not_found;
    const std::optional<durability> kept = one->durable();
    if (not kept or one->file == nullptr or is_closed(*one)) return nt_status::object_name_not_found;
    if (wanted.is_persistent != kept->is_persistent) return nt_status::object_name_not_found;
    if (wanted.is_persistent and not may_be_persistent(r)) return nt_status::object_name_not_found;
    if (wanted.create_guid and *wanted.create_guid != one->create_guid.value_or(wire::guid{}))
        return nt_status::object_name_not_found;
    if (one->through != r.tree->target) return nt_status::object_name_not_found;
    if (const nt_status wrong = check_lease(r, args, *one); wrong != nt_status::success) return wrong;
    // The share may allow less than before the server was started again.
    const bool is_allowed =
        not kept->is_persistent or
        wire::has(r.tree->access_max | wire::access_mask::access_system_security, one->access);
    return is_of_owner(*kept, r.session->user) and is_allowed ? nt_status::success : nt_status::access_denied;
}

// The client may be back before the loss of its connection is complete.
void end_break_of_lost_client(server_context& host, open& one) noexcept {
    ENSURE(one.is_persistent(), "only a persistent open survives a break of its caching");
    const file_section held(*one.file);
    lease* const its = one.in_file(held).lease.get();
    if (its != nullptr and its->is_breaking() and is_of_absent_client(held, *its))
        end_break_of_absent_client(held, host, *its);
    one.file->wake_caching_waiters(held);
}

}  // namespace

nt_status check_durability(const wire::create_request_contexts& asked) noexcept {
    const bool is_first = asked.durable or asked.durable_reconnect;
    const bool is_second = asked.durable_v2 or asked.durable_reconnect_v2;
    if (is_first and is_second) return nt_status::invalid_parameter;
    if (asked.durable_v2 and asked.durable_reconnect_v2) return nt_status::invalid_parameter;
    return nt_status::success;
}

void grant_durability(const request& r, open& fresh, const wire::create_args& args, bool caches_handle,
                      wire::create_reply& reply) {
    const wire::create_request_contexts& asked = args.contexts;
    if (grant_persistence(r, fresh, args)) return encode_durability(fresh, reply);
    const bool asks_second = asked.durable_v2 and r.connection().agreed.is_at_least(wire::dialect::smb_3_0);
    if (fresh.is_directory() or fresh.is_past() or not caches_handle or not(asked.durable or asks_second))
        return;
    const user_identity& user = r.session->user;
    const bool is_durable = fresh.change_durability(*r.session, [&](std::optional<durability>& now) {
        // A request that guesses the ID may have made it resilient before this reply.
        if (now) return;
        now.emplace(durability{.owner = user.name,
                               .owner_domain = user.domain,
                               .is_second_generation = asks_second,
                               .is_resilient = false,
                               .timeout = timeout_for(asks_second ? asked.durable_v2->timeout_ms : 0),
                               .end = {},
                               .disconnects = 0});
    });
    if (is_durable) encode_durability(fresh, reply);
}

void encode_durability(const open& one, wire::create_reply& reply) noexcept {
    const std::optional<durability> how = one.durable();
    if (not how) return;
    if (not how->is_second_generation) {
        reply.contexts.durable = true;
        return;
    }
    reply.contexts.durable_v2 = wire::durable_answer_v2{
        .timeout_ms = static_cast<std::uint32_t>(how->timeout.count()),
        .flags = how->is_persistent ? wire::durable_flags::persistent : wire::durable_flags::none};
}

void end_after(server_context& host, const std::shared_ptr<open>& one, std::chrono::milliseconds timeout,
               std::uint32_t number) noexcept {
    ENSURE(timeout.count() > 0, "an open without its client has an end");
    // After the disconnect has begun: a timer that finds none would not end the open.
    std::optional<timer_queue::entry> end =
        host.later.add(timeout, [&host, which = std::weak_ptr(one), number]() noexcept {
            const std::shared_ptr<open> kept = which.lock();
            if (kept != nullptr and kept->end_if_disconnected(number)) (void)finish_end(host, *kept);
        });
    if (not one->set_disconnect_end(number, *end)) host.later.end(end);
}

bool keep_without_client(server_context& host, const std::shared_ptr<open>& one, session& of) noexcept {
    const std::optional<durability> how = one->durable();
    if (not how or not may_outlive_client(*one, *how)) return false;
    quota_hold counted;
    if (not how->is_persistent) {
        counted = host.quotas.take(of.admitted.client, limit::kept_opens);
        if (counted.amount() == 0) return false;
    }
    const std::uint32_t number = one->next_disconnect();
    ENSURE(number != 0, "an open that was durable stays durable");
    const bool is_kept = of.release(one->id.volatile_part.value(), [&]() noexcept {
        return one->begin_disconnect(of, number, std::move(counted));
    });
    if (not is_kept) return false;
    end_after(host, one, how->timeout, number);
    if (how->is_persistent) {
        record_disconnect(host, *one, how->timeout);
        end_break_of_lost_client(host, *one);
    }
    one->drop_scan();
    // In between, a break may have begun, or a lock may have been granted.
    if (not may_outlive_client(*one, *how) and one->end_if_disconnected(number)) (void)finish_end(host, *one);
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

std::shared_ptr<open> find_wanted(const request& r, const reconnection& wanted) noexcept {
    std::shared_ptr<open> one = r.host().opens.find_persistent(wanted.file.persistent_part.value());
    // A client that has not got the reply knows no ID ([MS-SMB2] 3.3.5.9.12).
    if (one == nullptr and wanted.is_persistent and wanted.create_guid and may_be_persistent(r))
        one = r.host().replays.find({.client = r.connection().agreed.client, .create = *wanted.create_guid});
    return one;
}

bool is_owner_of(const request& r, const open& one) noexcept {
    const std::optional<durability> kept = one.durable();
    return kept and is_of_owner(*kept, r.session->user);
}

std::expected<std::shared_ptr<open>, nt_status> reconnect(request& r, const wire::create_args& args,
                                                          const reconnection& wanted) {
    std::shared_ptr<open> one = find_wanted(r, wanted);
    const nt_status refused = check(r, args, wanted, one.get());
    if (refused != nt_status::success) return std::unexpected(refused);
    if (wanted.is_persistent) end_break_of_lost_client(r.host(), *one);
    open::disconnect_state lost;
    const auto admitted = r.session->admit(one->id.volatile_part.value(), one, *r.tree, [&]() noexcept {
        return one->attach(*r.session, r.tree, r.channel.get(), lost);
    });
    r.host().later.end(lost.end);
    switch (admitted) {
        case session::admission_result::admitted:
            break;
        case session::admission_result::too_many:
            return std::unexpected(refuse_open(r));
        case session::admission_result::gone:
            return std::unexpected(nt_status::user_session_deleted);
        case session::admission_result::refused:
            return std::unexpected(nt_status::object_name_not_found);
    }
    if (wanted.is_persistent) record_reconnect(*one);
    if (r.connection().agreed.is_at_least(wire::dialect::smb_3_0))
        one->continue_sequence(r.header().channel_sequence);
    r.compound().file = one->id;
    return one;
}

}  // namespace sluice::smb::server

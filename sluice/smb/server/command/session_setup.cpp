#include "sluice/smb/wire/message/session_setup.hpp"

#include "sluice/smb/server/command/binding.hpp"
#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/command/logon_turn.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/loss_notice.hpp"
#include "sluice/smb/server/operation/session_life.hpp"

namespace sluice::smb::server {

using wire::dialect;
using wire::nt_status;

namespace {

constexpr std::size_t reply_fixed_bytes = 16;

// The server may reject a user that the negotiator has authenticated.
[[nodiscard]] nt_status admit(const request& r, const auth::step_done& who) noexcept {
    const server_configuration& rules = r.host().configuration();
    const bool has_key = not who.is_anonymous and not who.is_guest;
    if (who.is_anonymous and not rules.allows_guests) return nt_status::access_denied;
    if (who.is_guest and not rules.allows_guests) return nt_status::logon_failure;
    const bool can_encrypt = has_key and r.connection().agreed.cipher.has_value();
    if (rules.encryption == protection::required and not can_encrypt) return nt_status::access_denied;
    return nt_status::success;
}

// The hash of the password that has just been checked.
[[nodiscard]] std::optional<auth::nt_hash> proof_of(const request& r, const user_identity& user) noexcept {
    if (user.is_anonymous) return std::nullopt;
    auto known = r.host().accounts().find(user.name, user.domain);
    if (not known) return std::nullopt;
    return std::move(known->hash);
}

// Reauthentication never changes the identity of a session. An anonymous exchange proves none: a
// valid session of a user takes it, as clients expect, and stays as it was; an expired one ends
// (docs/formats/smb2_reauthentication.md).
[[nodiscard]] nt_status readmit(request& r, const auth::step_done& who) noexcept {
    session& known = *r.session;
    if (who.is_anonymous and not known.user.is_anonymous)
        return known.state() == session::phase::expired ? nt_status::access_denied : nt_status::success;
    if (not who.is_anonymous and not is_same_account(r.host().accounts(), known.user, identity_of(who)))
        return nt_status::logon_failure;
    if (not known.make_valid(proof_of(r, known.user))) return nt_status::user_session_deleted;
    begin_lifetime(r.host(), known);
    return nt_status::success;
}

// Derives the session's keys and those of its first channel from the authentication ([MS-SMB2]
// 3.3.5.5.3).
[[nodiscard]] result<void> make_keys(request& r, const auth::step_done& who) noexcept {
    session& fresh = *r.session;
    ENSURE(r.channel->session == r.session and not fresh.signing_key,
           "the keys of a session are made once, for its first channel");
    const negotiated& agreed = fresh.agreed;
    if (not agreed.is_at_least(dialect::smb_3_0)) {
        fresh.signing_key.emplace(who.key.copy());
        fresh.application_key.emplace(who.key.copy());
    } else {
        auth::session_keys keys =
            auth::derive_session_keys(key_material(agreed, who.key, r.channel->preauth));
        fresh.signing_key.emplace(std::move(keys.signing));
        fresh.application_key.emplace(std::move(keys.application));
        if (agreed.cipher) {
            fresh.decryption_key.emplace(std::move(keys.client_to_server));
            fresh.encryption_key.emplace(std::move(keys.server_to_client));
        }
    }
    // Ids below were answered without this key, and belong to the bindings of other connections.
    const std::uint64_t first_signed = r.header().message_id;
    fresh.begin_binding_ids(first_signed);
    auto signer =
        auth::signer::create(agreed.signing, *fresh.signing_key,
                             auth::used_message_ids({.first = first_signed, .end = ~std::uint64_t{0}}));
    if (not signer) return failure(signer.error());
    r.channel->signer = std::make_shared<auth::signer>(*std::move(signer));
    return fresh.make_ciphers(*r.channel, r.host().random());
}

// A client that lost its connection may name its previous session in PreviousSessionId. That
// session ends once there is a new one ([MS-SMB2] 3.3.5.5.3), but not if a limit prevents the new
// one. Returns the previous session. Another loop may be ending it: the reply waits for that.
[[nodiscard]] std::shared_ptr<session> end_previous(request& r, std::uint64_t previous_id,
                                                    const session& fresh) noexcept {
    if (previous_id == 0 or previous_id == fresh.id) return nullptr;
    std::shared_ptr<session> previous = r.host().find_session(previous_id);
    if (previous == nullptr) return nullptr;
    const session::phase now = previous->state();
    if (now == session::phase::in_progress) return nullptr;
    // A session that is gone may never have had a user. Waiting for its end requires no right.
    if (now == session::phase::gone) return previous;
    // An anonymous client proves no identity, so that it matches no session.
    if (not is_same_account(r.host().accounts(), previous->user, fresh.user)) return nullptr;
    end_session(r.host(), *previous, true);
    return previous;
}

// One client does not use two dialects: an attacker may have changed the negotiation ([MS-SMB2]
// 3.3.5.5.3). Compared with sessions of the same user only: GUIDs are not encrypted, and no user
// may lock out another.
[[nodiscard]] bool may_use_dialect(server_context& host, const session& fresh) noexcept {
    if (fresh.agreed.client == wire::guid{} or fresh.user.is_anonymous or fresh.user.is_guest) return true;
    return host.sessions.claim_dialect(fresh);
}

[[nodiscard]] wire::session_flags flags_of(const session& fresh) noexcept {
    wire::session_flags flags = wire::session_flags::none;
    if (fresh.user.is_guest) flags |= wire::session_flags::guest;
    if (fresh.user.is_anonymous) flags |= wire::session_flags::anonymous;
    if (fresh.requires_encryption) flags |= wire::session_flags::encrypt_data;
    return flags;
}

[[nodiscard]] nt_status write_reply(request& r, wire::session_flags flags, bytes_view token,
                                    nt_status status) noexcept {
    byte_writer* const body = r.begin_reply(reply_fixed_bytes + token.size());
    if (body == nullptr) return nt_status::insufficient_resources;
    encode(*body, wire::session_setup_reply{.flags = flags, .security_blob = token});
    return status;
}

// Makes a session of a successful attempt. `previous`: the session that has ended for it.
[[nodiscard]] nt_status establish(request& r, const wire::session_setup_args& args,
                                  const auth::step_done& who, std::shared_ptr<session>& previous) noexcept {
    if (const nt_status refused = admit(r, who); refused != nt_status::success) return refused;
    session& fresh = *r.session;
    ENSURE(not fresh.admitted.client and not r.channel->is_established(), "a session is established once");
    fresh.user = identity_of(who);
    if (not may_use_dialect(r.host(), fresh)) return nt_status::user_session_deleted;
    // Guests and anonymous users neither sign nor encrypt, because anyone can derive their keys.
    if (not who.is_guest and not who.is_anonymous) {
        const result<void> made = make_keys(r, who);
        if (not made) return nt_status::insufficient_resources;
        const auto asked = args.security_mode | r.connection().agreed.security_mode;
        fresh.requires_signing = wire::has(asked, wire::security_mode::signing_required);
        fresh.requires_encryption =
            r.host().configuration().encryption == protection::required and fresh.encryption_key;
    }
    if (not r.host().admission.establish(*r.channel, r.connection().admitted))
        return nt_status::insufficient_resources;
    // The session may have ended, to make room for other sessions in progress.
    const bool is_established = fresh.establish(*r.channel) and fresh.make_valid(proof_of(r, fresh.user));
    if (not is_established) return nt_status::user_session_deleted;
    previous = end_previous(r, args.previous_session_id, fresh);
    r.host().log().write(event_severity::info, "user logged on",
                         {{"user", fresh.user.name}, {"peer", r.connection().peer_text()}});
    begin_lifetime(r.host(), fresh);
    return nt_status::success;
}

// Completes a successful authentication: of another channel, a new session, or the same user again.
// `previous`: as for establish().
[[nodiscard]] nt_status conclude(request& r, const wire::session_setup_args& args, const auth::step_done& who,
                                 std::shared_ptr<session>& previous) noexcept {
    if (wire::has(args.flags, wire::session_setup_flags::binding)) return bind(r, who);
    const bool is_first = not r.session->admitted.client;
    const nt_status status = is_first ? establish(r, args, who, previous) : readmit(r, who);
    if (status != nt_status::success) return status;
    // A client that proved its password also has the key. An anonymous one proves that
    // only by its signature.
    if (not who.is_anonymous and r.channel->signer != nullptr and not r.sign_reply_with(r.channel->signer))
        return nt_status::insufficient_resources;
    return nt_status::success;
}

// Finds the channel of a request, or begins one: for a new session, for the session it names, or to
// be bound to that session ([MS-SMB2] 3.3.5.5).
[[nodiscard]] nt_status find_or_make(request& r, bool is_binding) {
    if (is_binding) {
        const nt_status refused = find_or_begin_binding(r);
        if (refused != nt_status::success) return refused;
    } else if (r.header().session_id == 0) {
        r.channel = make_session(r.host(), r.connection());
        if (r.channel == nullptr) return nt_status::insufficient_resources;
        r.session = r.channel->session;
    } else if (r.session == nullptr) {
        return nt_status::user_session_deleted;
    }
    channel& by = *r.channel;
    ENSURE(by.connection == r.connection().admitted.handle and by.session == r.session,
           "a request sets up a channel of its connection");
    if (by.negotiator == nullptr)
        by.negotiator = std::make_unique<auth::negotiator>(r.host().names(), r.host().accounts(),
                                                           r.host().random(), r.host().clock());
    if (not by.is_established()) by.preauth.add(r.message().bytes());
    return nt_status::success;
}

// Returns whether a password was checked and was wrong, or that of another user: a guess.
// Anonymous clients prove nothing. A token that cannot be read, or a right password that is not
// enough, does not count either.
[[nodiscard]] bool is_guess(nt_status refused, bool is_binding) noexcept {
    return refused == nt_status::logon_failure or refused == nt_status::account_disabled or
           (is_binding and refused == nt_status::access_denied);
}

// For the log: the reason for which an authenticated user is rejected.
[[nodiscard]] const char* reason_of(nt_status refused, bool is_anonymous, bool is_binding) noexcept {
    if (refused == nt_status::insufficient_resources) return "session or memory limit reached";
    if (refused == nt_status::user_session_deleted)
        return "the client has a session of this user with another dialect";
    if (refused == nt_status::request_not_accepted)
        return "a share that the session uses denies the address of the client";
    if (is_anonymous) return "anonymous logons are not allowed";
    if (is_binding or refused == nt_status::logon_failure)
        return "neither guests nor another user in this session are allowed";
    return "the server requires encryption, which the connection does not support";
}

// A session that fails to authenticate again ends, like one that never authenticated. Its waiting
// requests are answered at once. A session that could not be bound continues on its other channels.
[[nodiscard]] io::task<nt_status> refuse(request& r, auth::step_refused refused, bool is_binding,
                                         bool is_wrong_proof) noexcept {
    server_context& host = r.host();
    host.log().write(
        event_severity::warning, "logon failed",
        {{"peer", r.connection().peer_text()},
         {"why", refused.reason},
         {"hint", is_wrong_proof ? "check user and password; 'sluice user list' lists the users"
                                 : "change the server's configuration only if it should allow this"}});
    if (is_wrong_proof) {
        if (r.session->admitted.client) r.session->admitted.client.count_failed_proof();
        host.logons.failed(r.connection().peer());
    }
    r.channel->negotiator.reset();
    if (is_binding)
        end_channel(host, *r.channel);
    else
        end_session(host, *r.session, false);
    co_return refused.why;
}

}  // namespace

io::task<nt_status> serve_session_setup(request& r) {
    const auto args = wire::decode_session_setup(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    const bool is_binding = wire::has(args->flags, wire::session_setup_flags::binding);
    logon_throttle::admission turn;  // until the proof is checked
    if (r.header().session_id == 0) {
        io::task<void> noticing = notice_losses(r.host(), r.connection());
        co_await std::move(noticing);
    } else {
        io::task<nt_status> waiting = wait_for_logon_turn(r, turn);
        if (const nt_status refused = co_await std::move(waiting); refused != nt_status::success)
            co_return refused;
    }
    if (const nt_status refused = find_or_make(r, is_binding); refused != nt_status::success)
        co_return refused;

    const std::uint64_t accounts = r.host().accounts().generation();
    auth::step_result outcome = r.channel->negotiator->step(args->security_blob);
    if (const auto* next = std::get_if<auth::step_continue>(&outcome))
        co_return write_reply(r, wire::session_flags::none, next->token, nt_status::more_processing_required);
    if (const auto* refused = std::get_if<auth::step_refused>(&outcome)) {
        const auth::step_refused why = *refused;
        io::task<nt_status> refusing = refuse(r, why, is_binding, is_guess(why.why, is_binding));
        co_return co_await std::move(refusing);
    }
    const auth::step_done& who = std::get<auth::step_done>(outcome);
    r.channel->negotiator.reset();
    const bool is_new = not is_binding and not r.session->admitted.client;
    std::shared_ptr<session> previous;
    nt_status status = conclude(r, *args, who, previous);
    // A logon that failed does not wait, because its client may send another SESSION_SETUP.
    if (status == nt_status::success and previous != nullptr) {
        io::task<void> ending = co_end_session(r.host(), r.loop(), previous, true);
        co_await std::move(ending);
    }
    if (status == nt_status::success)
        status = write_reply(r, flags_of(*r.session), who.token, nt_status::success);
    // A reload of the users ends the sessions that are valid. One that becomes valid now ends here.
    if (status == nt_status::success and r.host().accounts().generation() != accounts)
        end_session(r.host(), *r.session, false);
    if (r.session->state() == session::phase::gone) {
        r.answer.discard();
        co_return nt_status::user_session_deleted;
    }
    // A limit of the server does not indicate a wrong password.
    if (status == nt_status::insufficient_resources and not is_new and not is_binding) co_return status;
    if (status != nt_status::success) {
        const auth::step_refused why{status, reason_of(status, who.is_anonymous, is_binding)};
        const bool is_wrong_proof = not who.is_anonymous and is_guess(status, is_binding);
        io::task<nt_status> refusing = refuse(r, why, is_binding, is_wrong_proof);
        co_return co_await std::move(refusing);
    }
    co_return status;
}

}  // namespace sluice::smb::server

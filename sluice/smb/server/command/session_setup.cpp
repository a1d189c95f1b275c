#include "sluice/smb/wire/session_setup.hpp"

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/command.hpp"
#include "sluice/smb/server/connection.hpp"
#include "sluice/smb/server/server.hpp"

namespace sluice::smb::server {

using wire::dialect;
using wire::nt_status;

namespace {

constexpr std::size_t reply_fixed_bytes = 16;

// Whom the negotiator let in may still not be wanted here.
[[nodiscard]] nt_status admit(const request& r, const auth::step_done& who) noexcept {
    const server_configuration& rules = r.host().configuration();
    const bool has_key = not who.is_anonymous and not who.is_guest;
    if (who.is_anonymous and not rules.allows_guests) return nt_status::access_denied;
    if (who.is_guest and not rules.allows_guests) return nt_status::logon_failure;
    const bool can_encrypt = has_key and r.connection().agreed.cipher.has_value();
    if (rules.encryption == protection::required and not can_encrypt) return nt_status::access_denied;
    return nt_status::success;
}

// The one who authenticated again must be the one the session is of; or nobody, who then has no more rights
// than nobody has, under the session's own keys.
[[nodiscard]] nt_status readmit(session& known, const auth::step_done& who) noexcept {
    if (not who.is_anonymous and not equal_ignoring_case(known.user.name, who.user))
        return nt_status::logon_failure;
    known.user.is_anonymous = who.is_anonymous;
    return nt_status::success;
}

// The session's keys, of what authentication gave ([MS-SMB2] 3.3.5.5.3).
[[nodiscard]] result<void> make_keys(session& fresh, const connection& on, const auth::step_done& who,
                                     secret_random_source& random) noexcept {
    const negotiated& agreed = on.agreed;
    if (not agreed.is_at_least(dialect::smb_3_0)) {
        auto signer = auth::signer::create(auth::signing_algorithm::hmac_sha256, who.key);
        if (not signer) return failure(signer.error());
        fresh.signer.emplace(*std::move(signer));
        fresh.application_key.emplace(who.key.copy());
        return {};
    }
    auth::session_key_material material{.full_session_key = who.key.view(),
                                        .cipher = auth::cipher_algorithm::aes_128_ccm,
                                        .preauth_hash = {}};
    if (agreed.cipher) material.cipher = *agreed.cipher;
    if (agreed.is_at_least(dialect::smb_3_1_1)) material.preauth_hash = fresh.preauth.value();
    result<auth::session_keys> keys = auth::derive_session_keys(material);
    if (not keys) return failure(keys.error());
    auto signer = auth::signer::create(agreed.signing, keys->signing);
    if (not signer) return failure(signer.error());
    fresh.signer.emplace(*std::move(signer));
    fresh.application_key.emplace(std::move(keys->application));
    if (not agreed.cipher) return {};
    auto opener = auth::opener::create(keys->client_to_server);
    if (not opener) return failure(opener.error());
    fresh.opener.emplace(*std::move(opener));
    fresh.sealing.emplace(std::move(keys->server_to_client));
    auto sealer = fresh.sealing->make_sealer(random);
    if (not sealer) return failure(sealer.error());
    fresh.sealer.emplace(*std::move(sealer));
    return {};
}

// A client that lost its connection may name the session it had, which then ends ([MS-SMB2] 3.3.5.5.3).
void end_previous(request& r, std::uint64_t previous_id, const session& fresh) noexcept {
    // Anybody could say to be the nobody of before.
    if (previous_id == 0 or previous_id == fresh.id or fresh.user.is_anonymous) return;
    const std::shared_ptr<session> previous = r.host().find_session(previous_id);
    if (previous == nullptr or previous->state == session::phase::in_progress) return;
    if (not equal_ignoring_case(previous->user.name, fresh.user.name)) return;
    r.host().end_session(*previous, true);
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

// Turns an attempt that succeeded into a session, or refreshes the one there is.
[[nodiscard]] nt_status establish(request& r, const wire::session_setup_args& args,
                                  const auth::step_done& who) noexcept {
    session& fresh = *r.session;
    const bool is_first = fresh.state == session::phase::in_progress;
    const nt_status refused = is_first ? admit(r, who) : readmit(fresh, who);
    if (refused != nt_status::success) return refused;
    if (is_first) {
        fresh.user = {.name = who.user,
                      .domain = who.domain,
                      .is_guest = who.is_guest,
                      .is_anonymous = who.is_anonymous};
        // Nobody's key protects nothing: guests and the anonymous neither sign nor encrypt.
        if (not who.is_guest and not who.is_anonymous) {
            const result<void> made = make_keys(fresh, r.connection(), who, r.host().random());
            if (not made) return nt_status::insufficient_resources;
            const auto asked = args.security_mode | r.connection().agreed.security_mode;
            fresh.requires_signing = wire::has(asked, wire::security_mode::signing_required);
            fresh.requires_encryption =
                r.host().configuration().encryption == protection::required and fresh.sealer;
        }
        end_previous(r, args.previous_session_id, fresh);
        r.connection().has_had_session = true;
        r.host().log().write(event_severity::info, "a user has logged on",
                             {{"user", fresh.user.name}, {"peer", r.connection().peer_text()}});
    }
    fresh.state = session::phase::valid;
    r.host().begin_lifetime(fresh);
    r.must_sign_reply = fresh.signer.has_value();
    return write_reply(r, flags_of(fresh), who.token, nt_status::success);
}

// The session a request is about: a new one, or the one it names ([MS-SMB2] 3.3.5.5).
[[nodiscard]] nt_status find_or_make(request& r, const wire::session_setup_args& args) {
    connection& on = r.connection();
    if (wire::has(args.flags, wire::session_setup_flags::binding)) {
        // For clients that were told of multichannel, and we do not tell yet.
        return nt_status::request_not_accepted;
    }
    if (r.header().session_id == 0) {
        r.session = r.host().make_session(on);
        if (r.session == nullptr) return nt_status::insufficient_resources;
        r.session->preauth = on.preauth;
    } else if (r.session == nullptr) {
        return nt_status::user_session_deleted;
    }
    session& mine = *r.session;
    if (mine.negotiator == nullptr)
        mine.negotiator = std::make_unique<auth::negotiator>(r.host().names(), r.host().accounts(),
                                                             r.host().random(), r.host().clock());
    if (mine.state == session::phase::in_progress) mine.preauth.add(r.message().bytes());
    return nt_status::success;
}

// Says no, late if it was said often. A session that fails to authenticate again is over, as one is that
// never did; what it waits for is answered at once.
[[nodiscard]] io::task<nt_status> refuse(request& r, auth::step_refused refused) noexcept {
    smb_server& host = r.host();
    host.log().write(event_severity::warning, "a log-on was refused",
                     {{"peer", r.connection().peer_text()},
                      {"why", refused.reason},
                      {"remedy", "check user and password; 'sluice user list' shows the users there are"}});
    const std::chrono::milliseconds delay = host.failures.failed(r.connection().peer_host());
    r.session->negotiator.reset();
    host.end_session(*r.session, false);
    if (delay.count() != 0) {
        const deadline until(delay);
        io::task<bool> waiting = pass(r.loop(), until);
        (void)co_await unlatched(r.host().latch(), std::move(waiting));
    }
    co_return refused.why;
}

}  // namespace

io::task<nt_status> serve_session_setup(request& r) {
    const auto args = wire::decode_session_setup(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    if (const nt_status refused = find_or_make(r, *args); refused != nt_status::success) co_return refused;

    auth::step_result outcome = r.session->negotiator->step(args->security_blob);
    if (const auto* next = std::get_if<auth::step_continue>(&outcome))
        co_return write_reply(r, wire::session_flags::none, next->token, nt_status::more_processing_required);
    if (const auto* refused = std::get_if<auth::step_refused>(&outcome)) {
        const auth::step_refused why = *refused;
        io::task<nt_status> refusing = refuse(r, why);
        co_return co_await std::move(refusing);
    }
    const auth::step_done& who = std::get<auth::step_done>(outcome);
    r.session->negotiator.reset();
    const nt_status status = establish(r, *args, who);
    if (status != nt_status::success) {
        const auth::step_refused why{status, "this server does not let in users of that kind"};
        io::task<nt_status> refusing = refuse(r, why);
        co_return co_await std::move(refusing);
    }
    r.host().failures.succeeded(r.connection().peer_host());
    co_return status;
}

}  // namespace sluice::smb::server

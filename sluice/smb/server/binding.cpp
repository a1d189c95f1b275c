#include "sluice/smb/server/binding.hpp"

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/connection.hpp"
#include "sluice/smb/server/server.hpp"

namespace sluice::smb::server {

using wire::dialect;
using wire::nt_status;

namespace {

// Whether what the connection has agreed on is what the session is used with.
[[nodiscard]] nt_status check_terms(const negotiated& here, const negotiated& of_session) noexcept {
    if (here.dialect != of_session.dialect) return nt_status::invalid_parameter;
    if (here.client != of_session.client) return nt_status::user_session_deleted;
    if (here.signing != of_session.signing) return nt_status::request_out_of_sequence;
    if (here.cipher != of_session.cipher) return nt_status::invalid_parameter;
    return nt_status::success;
}

[[nodiscard]] nt_status check_state(const session& wanted) noexcept {
    if (wanted.state == session::phase::in_progress) return nt_status::request_not_accepted;
    if (wanted.state == session::phase::expired) return nt_status::network_session_expired;
    if (not wanted.signing_key or wanted.user.is_anonymous) return nt_status::not_supported;
    return nt_status::success;
}

// A connection that is to be trusted with a session proves first that it knows the session's key.
[[nodiscard]] nt_status check_proof(const request& r, const session& wanted) noexcept {
    auto signer = auth::signer::create(wanted.agreed.signing, *wanted.signing_key);
    if (not signer) return nt_status::insufficient_resources;
    const auth::signed_message which{
        .message_id = r.header().message_id, .sender = auth::message_sender::client, .is_cancel = false};
    const auto parts = auth::with_zero_signature(r.message().bytes());
    return signer->verify(parts, which, r.header().signature) ? nt_status::success : nt_status::access_denied;
}

[[nodiscard]] nt_status check(const request& r, const session* wanted) noexcept {
    const negotiated& here = r.connection().agreed;
    if (not here.is_at_least(dialect::smb_3_0)) return nt_status::request_not_accepted;
    if (wanted == nullptr) return nt_status::user_session_deleted;
    if (not wire::has(r.header().flags, wire::header_flags::signed_message))
        return nt_status::invalid_parameter;
    if (const nt_status wrong = check_terms(here, wanted->agreed); wrong != nt_status::success) return wrong;
    if (const nt_status wrong = check_state(*wanted); wrong != nt_status::success) return wrong;
    if (r.channel != nullptr) return nt_status::request_not_accepted;  // it is here already
    return check_proof(r, *wanted);
}

}  // namespace

auth::session_key_material key_material(const negotiated& agreed, const auth::session_key& key,
                                        const auth::preauth_integrity& preauth) noexcept {
    auth::session_key_material material{
        .full_session_key = key.view(), .cipher = auth::cipher_algorithm::aes_128_ccm, .preauth_hash = {}};
    if (agreed.cipher) material.cipher = *agreed.cipher;
    if (agreed.is_at_least(dialect::smb_3_1_1)) material.preauth_hash = preauth.value();
    return material;
}

nt_status find_or_begin_binding(request& r) {
    const std::shared_ptr<session> wanted = r.host().find_session(r.header().session_id);
    if (const nt_status refused = check(r, wanted.get()); refused != nt_status::success) return refused;
    connection& on = r.connection();
    const auto known = on.channels.find(wanted->id);
    if (known != on.channels.end()) {
        r.channel = known->second;
    } else {
        auto signer = auth::signer::create(wanted->agreed.signing, *wanted->signing_key);
        if (not signer) return nt_status::insufficient_resources;
        r.channel = r.host().make_channel(wanted, on);
        if (r.channel == nullptr) return nt_status::insufficient_resources;
        // Until the channel has a key of its own, its replies are signed as its requests are.
        r.channel->signer.emplace(*std::move(signer));
    }
    r.session = wanted;
    r.must_sign_reply = true;
    return nt_status::success;
}

nt_status bind(request& r, const auth::step_done& who) {
    const user_identity& user = r.session->user;
    const bool is_same_user = not who.is_anonymous and not who.is_guest and
                              equal_ignoring_case(user.name, who.user) and
                              equal_ignoring_case(user.domain, who.domain);
    if (not is_same_user) return nt_status::access_denied;
    channel& fresh = *r.channel;
    const auth::session_keys keys =
        auth::derive_session_keys(key_material(r.connection().agreed, who.key, fresh.preauth));
    auto signer = auth::signer::create(r.connection().agreed.signing, keys.signing);
    if (not signer or not fresh.make_ciphers(r.host().random())) return nt_status::insufficient_resources;
    fresh.signer.emplace(*std::move(signer));
    fresh.is_established = true;
    r.connection().has_had_session = true;
    r.host().log().write(event_severity::info, "a session has another channel",
                         {{"user", user.name}, {"peer", r.connection().peer_text()}});
    return nt_status::success;
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/command/binding.hpp"

#include <algorithm>

#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/request_signature.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/session_life.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"

namespace sluice::smb::server {

using wire::dialect;
using wire::nt_status;

namespace {

// AES-GMAC is not combined with another algorithm, because the nonces of its key must not be used
// by another one. Each channel may use any of the other algorithms.
[[nodiscard]] nt_status check_signing(auth::signing_algorithm here,
                                      auth::signing_algorithm of_session) noexcept {
    constexpr auto gmac = auth::signing_algorithm::aes_gmac;
    if (here == of_session) return nt_status::success;
    if (of_session == gmac) return nt_status::request_out_of_sequence;
    return here == gmac ? nt_status::not_supported : nt_status::success;
}

// Whether what the connection has agreed on is what the session is used with.
[[nodiscard]] nt_status check_terms(const negotiated& here, const negotiated& of_session) noexcept {
    if (const nt_status wrong = check_signing(here.signing, of_session.signing); wrong != nt_status::success)
        return wrong;
    if (not here.is_at_least(dialect::smb_3_0)) return nt_status::request_not_accepted;
    if (here.dialect != of_session.dialect or here.cipher != of_session.cipher)
        return nt_status::invalid_parameter;
    return here.client == of_session.client ? nt_status::success : nt_status::user_session_deleted;
}

[[nodiscard]] nt_status check_state(const session& wanted) noexcept {
    const session::phase now = wanted.state();
    if (now == session::phase::gone) return nt_status::user_session_deleted;
    if (now == session::phase::in_progress) return nt_status::request_not_accepted;
    if (now == session::phase::expired) return nt_status::network_session_expired;
    if (not wanted.signing_key or wanted.user.is_anonymous) return nt_status::not_supported;
    return nt_status::success;
}

[[nodiscard]] bool is_established(const session& one) noexcept {
    const session::phase now = one.state();
    return now == session::phase::valid or now == session::phase::expired;
}

// Returns a signer of one reply with the session's own key, as its first channel has.
// Null if there is no key.
[[nodiscard]] std::shared_ptr<auth::signer> session_signer(const session& of, std::uint64_t message_id) {
    if (not of.signing_key) return nullptr;
    auto made = auth::signer::create(of.agreed.signing, *of.signing_key,
                                     auth::used_message_ids({.first = message_id, .end = message_id + 1}));
    return made ? std::make_shared<auth::signer>(*std::move(made)) : nullptr;
}

// A token, and what goes with it. The signature of a longer request is not
// checked: it binds nothing.
constexpr std::size_t binding_bytes_max = auth::limits::token_bytes_max + (std::size_t{1} << 10);

[[nodiscard]] bool is_binding(const request& r) noexcept {
    if (r.header().command != wire::command::session_setup) return false;
    if (r.message().bytes().size() > binding_bytes_max) return false;
    const auto args = wire::decode_session_setup(r.message());
    return args and wire::has(args->flags, wire::session_setup_flags::binding);
}

// After the session's key has signed the request. False if the key may not sign a reply of that id:
// with AES-GMAC it has done so, or may have.
[[nodiscard]] bool sign_reply_as(session& of, request& r) {
    if (r.is_reply_signed()) return true;
    const std::uint64_t id = r.header().message_id;
    const std::shared_ptr<auth::signer> signer = session_signer(of, id);
    return signer != nullptr and of.claim_binding_id(id) and r.sign_reply_with(signer);
}

[[nodiscard]] nt_status check(const request& r, const session* wanted) noexcept {
    if (wanted == nullptr) return nt_status::user_session_deleted;
    const nt_status wrong = check_terms(r.connection().agreed, wanted->agreed);
    if (wrong != nt_status::success) return wrong;
    if (not wire::has(r.header().flags, wire::header_flags::signed_message))
        return nt_status::invalid_parameter;
    if (const nt_status unfit = check_state(*wanted); unfit != nt_status::success) return unfit;
    if (r.session != nullptr) return nt_status::request_not_accepted;  // it is here already
    // A connection must first prove that it knows the session's key.
    return r.knows_session_key ? nt_status::success : nt_status::access_denied;
}

// Returns whether a share that the session uses denies the address of its new channel. A reload may
// have withdrawn the share of a tree, and then the one that replaces it has the present rules.
[[nodiscard]] bool is_denied_by_tree(server_context& host, const session& of, const channel& fresh) {
    const auto trees = of.trees();
    return std::ranges::any_of(trees, [&](const std::shared_ptr<tree>& each) {
        const share_configuration& known = each->target->configuration();
        const auto now = each->target->is_withdrawn() ? host.find_share(known.name) : nullptr;
        return not(now != nullptr ? now->configuration() : known).hosts.permit(fresh.from);
    });
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

void prove_session_key(request& r) {
    if (not is_binding(r)) return;
    const std::shared_ptr<session> elsewhere = r.host().find_session(r.header().session_id);
    // While it is in progress, its keys are being made.
    if (elsewhere == nullptr or not is_established(*elsewhere)) return;
    const std::uint64_t id = r.header().message_id;
    std::shared_ptr<auth::signer> signer = session_signer(*elsewhere, id);
    if (signer == nullptr) return;
    if (not has_signed(*signer, r)) return;
    r.knows_session_key = true;
    // With AES-GMAC there is one reply for each id, which is not to be lost to a
    // refusal that will pass.
    if (signer->algorithm() != auth::signing_algorithm::aes_gmac) (void)r.sign_reply_with(signer);
}

nt_status find_or_begin_binding(request& r) {
    const std::shared_ptr<session> wanted = r.host().find_session(r.header().session_id);
    if (const nt_status refused = check(r, wanted.get()); refused != nt_status::success) {
        if (wanted != nullptr and r.knows_session_key) (void)sign_reply_as(*wanted, r);
        return refused;
    }
    connection& on = r.connection();
    if (const std::shared_ptr<channel> known = on.find_channel(wanted->id)) {
        ENSURE(known->session == wanted, "a channel is found by the ID of its session");
        // In a compound that names no session, check() cannot see that.
        if (known->is_established()) return nt_status::request_not_accepted;
        r.channel = known;
        (void)sign_reply_as(*wanted, r);
    } else {
        const std::shared_ptr<channel> fresh = make_channel(r.host(), wanted, on);
        if (fresh == nullptr) return nt_status::insufficient_resources;
        // Its nonce is used up: by a binding of another connection, or the request is a copy of
        // that. To go on would have the client repeat a nonce, too, in its next request.
        if (not sign_reply_as(*wanted, r)) {
            end_channel(r.host(), *fresh);
            return nt_status::request_out_of_sequence;
        }
        r.channel = fresh;
    }
    r.session = wanted;
    return nt_status::success;
}

nt_status bind(request& r, const auth::step_done& who) {
    const user_identity& user = r.session->user;
    const bool is_same_user = is_same_account(r.host().accounts(), user, identity_of(who));
    if (not is_same_user or who.is_guest) return nt_status::access_denied;
    channel& fresh = *r.channel;
    ENSURE(fresh.session == r.session and fresh.connection == r.connection().admitted.handle,
           "a request binds a channel of its connection");
    const auth::session_keys keys =
        auth::derive_session_keys(key_material(r.connection().agreed, who.key, fresh.preauth));
    auto signer = auth::signer::create(r.connection().agreed.signing, keys.signing);
    if (not signer or not r.session->make_ciphers(fresh, r.host().random()))
        return nt_status::insufficient_resources;
    if (not r.host().admission.establish(fresh, r.connection().admitted))
        return nt_status::insufficient_resources;
    fresh.signer = std::make_shared<auth::signer>(*std::move(signer));
    if (not r.sign_reply_with(fresh.signer)) return nt_status::insufficient_resources;
    if (not r.session->establish(fresh)) return nt_status::user_session_deleted;
    // Afterwards: a tree that another loop connects now checks all established channels.
    if (is_denied_by_tree(r.host(), *r.session, fresh)) return nt_status::request_not_accepted;
    r.host().log().write(event_severity::info, "channel added to session",
                         {{"user", user.name}, {"peer", r.connection().peer_text()}});
    return nt_status::success;
}

}  // namespace sluice::smb::server

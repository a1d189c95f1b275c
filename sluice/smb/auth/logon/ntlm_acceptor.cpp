#include "sluice/smb/auth/logon/ntlm_acceptor.hpp"

#include <utility>

#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::auth {
namespace {

using wire::nt_status;
namespace flag = ntlm::flag;

// The flags that are granted on request, and the flags that are always set.
constexpr std::uint32_t grantable = flag::sign | flag::seal | flag::ntlm | flag::always_sign |
                                    flag::extended_session_security | flag::version | flag::bits_128 |
                                    flag::key_exchange | flag::bits_56 | flag::request_target;
// Names are Unicode, whatever the client offers: some clients offer only OEM and follow the
// challenge, others send Unicode without the flag. A client that cannot do so fails as an unknown
// user.
constexpr std::uint32_t always_said =
    flag::unicode | flag::ntlm | flag::target_info | flag::target_type_server | flag::version;

step_refused refuse(nt_status why, const char* reason) noexcept {
    return {.why = why, .reason = reason};
}

bytes_view bytes_of_text(const std::string& text) noexcept {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Converts one of the server's names, which are valid UTF-8.
std::string utf16(const std::string& utf8) {
    auto spelled = wire::utf16_of(utf8);
    ENSURE(spelled.has_value(), "the server's own names are UTF-8");
    return std::move(*spelled);
}

}  // namespace

// An AUTHENTICATE message with decoded names.
struct ntlm_acceptor::answer {
    ntlm::authenticate_message message;
    std::uint32_t flags;  // the flags of both sides
    std::string user;
    std::string domain;
    std::string workstation;
    bool is_guest = false;
    bool is_anonymous = false;
};

step_result ntlm_acceptor::step(bytes_view token) noexcept {
    const phase now = std::exchange(phase_, phase::over);
    if (token.size() > limits::token_bytes_max) return refuse(nt_status::invalid_parameter, "token too long");
    if (!has_md5()) return refuse(nt_status::not_supported, "this OpenSSL has no MD5, so no NTLM");
    if (now == phase::negotiate) return challenge(token);
    if (now == phase::authenticate) return authenticate(token);
    return refuse(nt_status::invalid_parameter, "a message after the last");
}

step_result ntlm_acceptor::challenge(bytes_view token) {
    const auto asked = ntlm::decode_negotiate(token);
    if (!asked) return refuse(nt_status::invalid_parameter, "malformed NEGOTIATE message");
    offered_flags_ = (asked->flags & grantable) | always_said;
    random_.fill(server_challenge_);

    const std::string target_name = utf16(names_.netbios_computer);
    const auto target_info = target_information();
    negotiate_token_.assign(token.begin(), token.end());
    challenge_token_ = ntlm::encode(ntlm::challenge_message{.flags = offered_flags_,
                                                            .server_challenge = server_challenge_,
                                                            .target_name = bytes_of_text(target_name),
                                                            .target_info = target_info});
    phase_ = phase::authenticate;
    return step_continue{.token = challenge_token_};
}

// Returns the target information. The time in it makes clients send a MIC.
std::vector<std::byte> ntlm_acceptor::target_information() const {
    const le64 now = wire::filetime_of(clock_.utc_now()).wire();
    return ntlm::av_pair_writer()
        .add(ntlm::av_id::netbios_domain, bytes_of_text(utf16(names_.netbios_domain)))
        .add(ntlm::av_id::netbios_computer, bytes_of_text(utf16(names_.netbios_computer)))
        .add(ntlm::av_id::dns_domain, bytes_of_text(utf16(names_.dns_domain)))
        .add(ntlm::av_id::dns_computer, bytes_of_text(utf16(names_.dns_computer)))
        .add(ntlm::av_id::timestamp, bytes_of(now))
        .finish();
}

step_result ntlm_acceptor::authenticate(bytes_view token) {
    const auto message = ntlm::decode_authenticate(token);
    if (!message) return refuse(nt_status::invalid_parameter, "malformed AUTHENTICATE message");
    answer given{.message = *message,
                 .flags = message->flags & offered_flags_,
                 .user = {},
                 .domain = {},
                 .workstation = {}};
    // Anonymous: no name and no response. Some clients send one zero byte as the LM response.
    given.is_anonymous =
        message->user.empty() and message->nt_response.empty() and message->lm_response.size() <= 1;
    struct name {
        bytes_view utf16;
        std::string& utf8;
    };
    for (const name& each : {name{message->user, given.user}, name{message->domain, given.domain},
                             name{message->workstation, given.workstation}}) {
        auto text = wire::utf8_of(each.utf16);
        if (!text or each.utf16.size() > 2 * limits::name_utf16_units_max) {
            return refuse(nt_status::invalid_parameter, "a name too long or of an odd number of bytes");
        }
        each.utf8 = std::move(*text);
    }

    if (given.is_anonymous) return finish(given, secret_bytes<16>(), token, false);
    return check(given, token);
}

step_result ntlm_acceptor::check(const answer& given, bytes_view token) {
    // Generated before it is known whether it is needed, and everything below is computed in any
    // case: the duration must not reveal whether the user exists.
    secret_bytes<16> nobody;
    random_.fill(nobody.mutable_view().span());
    const auto found = accounts_.find(given.user, given.domain);
    const nt_hash hash = found ? found->hash.copy() : nt_hash(std::move(nobody));

    const auto response = ntlm::decode_nt_v2_response(given.message.nt_response);
    if (!response) {
        // A shorter response is one of NTLMv1 or LM, which counts as wrong. This one is NTLMv2, but
        // malformed.
        const bool is_broken = given.message.nt_response.size() > ntlm::nt_v1_response_bytes;
        return is_broken ? refuse(nt_status::invalid_parameter, "malformed NTLMv2 response")
                         : refuse(nt_status::logon_failure, "not an NTLMv2 response");
    }

    // Some clients omit the domain from the key although the message contains one.
    const auto key = ntlm::response_key(hash, given.message.user, given.message.domain);
    const auto key_without_domain = ntlm::response_key(hash, given.message.user, {});
    const auto proof = ntlm::proof_of(key, server_challenge_, response->client_blob);
    const auto proof_without_domain =
        ntlm::proof_of(key_without_domain, server_challenge_, response->client_blob);
    const bool is_right = equal_in_constant_time(proof.view(), response->proof);
    const bool is_right_without = equal_in_constant_time(proof_without_domain.view(), response->proof);
    if (!found or !(is_right or is_right_without)) {
        return refuse(nt_status::logon_failure, found ? "wrong password" : "no such user");
    }
    if (found->is_disabled) return refuse(nt_status::account_disabled, "account disabled");

    answer accepted = given;
    accepted.is_guest = found->is_guest;
    return finish(accepted, ntlm::session_base_key(is_right ? key : key_without_domain, response->proof),
                  token, response->pairs.announce_mic());
}

step_result ntlm_acceptor::finish(const answer& given, const secret_bytes<16>& key_exchange_key,
                                  bytes_view token, bool mic_required) {
    session_key exported = key_exchange_key.copy();
    if ((given.flags & flag::key_exchange) != 0) {
        if (given.message.encrypted_session_key.size() != exported.size) {
            return refuse(nt_status::invalid_parameter,
                          "missing session key in spite of the key exchange flag");
        }
        exported = ntlm::exchange_key(key_exchange_key, given.message.encrypted_session_key);
    }
    if (mic_required) {
        if (!given.message.mic)
            return refuse(nt_status::invalid_parameter, "missing MIC: the message announces one");
        const auto mic = ntlm::mic_of(
            exported, {.negotiate = negotiate_token_, .challenge = challenge_token_, .authenticate = token});
        if (!equal_in_constant_time(mic.view(), *given.message.mic)) {
            return refuse(nt_status::logon_failure, "wrong MIC: the messages were changed in transit");
        }
    }
    // An attacker in the middle who removes this flag gains nothing: the proof and the session key
    // of NTLMv2 do not depend on it, a MIC that the client announces covers the flags of all
    // messages, and the negotiator refuses a logon that needs these signatures.
    if ((given.flags & flag::extended_session_security) != 0) {
        client_signatures_.emplace(exported, ntlm::signing_side::client, given.flags);
        server_signatures_.emplace(exported, ntlm::signing_side::server, given.flags);
    }
    return step_done{.token = {},
                     .key = std::move(exported),
                     .user = given.user,
                     .domain = given.domain,
                     .workstation = given.workstation,
                     .is_guest = given.is_guest,
                     .is_anonymous = given.is_anonymous};
}

ntlm::message_signer::signature ntlm_acceptor::sign(bytes_view mechanism_list) noexcept {
    ENSURE(server_signatures_.has_value());
    return server_signatures_->sign(mechanism_list);
}

bool ntlm_acceptor::verify(bytes_view mechanism_list, bytes_view claimed) noexcept {
    ENSURE(client_signatures_.has_value());
    return client_signatures_->verify(mechanism_list, claimed);
}

}  // namespace sluice::smb::auth

#include "sluice/smb/auth/logon/ntlm_initiator.hpp"

#include <utility>

#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::auth {
namespace {

using wire::nt_status;
namespace flag = ntlm::flag;

constexpr std::uint32_t wanted = flag::unicode | flag::request_target | flag::sign | flag::seal | flag::ntlm |
                                 flag::always_sign | flag::extended_session_security | flag::version |
                                 flag::bits_128 | flag::bits_56;
constexpr std::uint32_t required = flag::unicode | flag::extended_session_security;

constexpr std::array<std::byte, 16> no_channel{};  // SMB does not use channel binding

step_refused refuse(nt_status why, const char* reason) noexcept {
    return {.why = why, .reason = reason};
}

bytes_view bytes_of_text(const std::string& text) noexcept {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// The response to a challenge: the NT response, and the resulting key.
struct nt_answer {
    std::vector<std::byte> response;
    secret_bytes<16> key_exchange_key;
    bool has_mic = false;
};

struct names {
    std::string user;  // all UTF-16LE
    std::string domain;
    std::string workstation;
    std::string target;
};

nt_answer answer_to(const ntlm::challenge_message& challenge, const ntlm::av_pairs& server_pairs,
                    const nt_hash& hash, const names& spelled, std::uint64_t now,
                    const ntlm::challenge_bytes& client_challenge) {
    // A server that sends its time expects a MIC, and its own time in the response.
    const auto server_time = server_pairs.find(ntlm::av_id::timestamp);
    const auto timestamp = server_time ? server_time->take<le64>() : std::nullopt;
    const le32 mic_flag(ntlm::av_flag_has_mic);

    ntlm::av_pair_writer pairs;
    pairs.add_all(server_pairs.without_end());
    if (timestamp) pairs.add(ntlm::av_id::flags, bytes_of(mic_flag));
    pairs.add(ntlm::av_id::channel_bindings, no_channel);
    pairs.add(ntlm::av_id::target_name, bytes_of_text(spelled.target));
    const auto list = pairs.finish();
    const auto blob = ntlm::encode_client_blob({.filetime = timestamp ? timestamp->value() : now,
                                                .client_challenge = client_challenge,
                                                .pairs = list});

    const auto key = ntlm::response_key(hash, bytes_of_text(spelled.user), bytes_of_text(spelled.domain));
    const auto proof = ntlm::proof_of(key, challenge.server_challenge, blob);
    nt_answer answer{.response = {proof.view().begin(), proof.view().end()},
                     .key_exchange_key = ntlm::session_base_key(key, proof.view()),
                     .has_mic = timestamp.has_value()};
    answer.response.insert(answer.response.end(), blob.begin(), blob.end());
    return answer;
}

}  // namespace

step_result ntlm_initiator::step(bytes_view token) noexcept {
    const phase now = std::exchange(phase_, phase::over);
    if (!has_md5()) return refuse(nt_status::not_supported, "this OpenSSL has no MD5, so no NTLM");
    if (now == phase::negotiate) return negotiate();
    if (now == phase::authenticate) return authenticate(token);
    return refuse(nt_status::invalid_parameter, "a message after the last");
}

step_result ntlm_initiator::negotiate() {
    negotiate_token_ = ntlm::encode(
        ntlm::negotiate_message{.flags = wanted | (who_.exchanges_key ? flag::key_exchange : 0)});
    phase_ = phase::authenticate;
    return step_continue{.token = negotiate_token_};
}

step_result ntlm_initiator::authenticate(bytes_view token) {
    const auto challenge = ntlm::decode_challenge(token);
    if (!challenge) return refuse(nt_status::invalid_parameter, "malformed CHALLENGE message");
    if ((challenge->flags & required) != required) {
        return refuse(nt_status::not_supported,
                      "the server does not support Unicode or extended session security");
    }
    // The response contains it, and its length field has 16 bits.
    const auto server_pairs = ntlm::av_pairs::decode(challenge->target_info);
    if (!server_pairs or challenge->target_info.size() > limits::target_information_bytes_max)
        return refuse(nt_status::invalid_parameter, "malformed or too long target information");
    const auto user = wire::utf16_of(who_.user);
    const auto domain = wire::utf16_of(who_.domain);
    const auto workstation = wire::utf16_of(who_.workstation);
    const auto target = wire::utf16_of(who_.target_name);
    if (!user or !domain or !workstation or !target) {
        return refuse(nt_status::invalid_parameter, "a name is not UTF-8");
    }
    for (const std::string* const each : {&*user, &*domain, &*workstation, &*target}) {
        if (each->size() > 2 * limits::name_utf16_units_max) {
            return refuse(nt_status::invalid_parameter, "a name is too long");
        }
    }
    const names spelled{.user = *user, .domain = *domain, .workstation = *workstation, .target = *target};

    std::uint32_t flags = challenge->flags & (wanted | (who_.exchanges_key ? flag::key_exchange : 0));
    nt_answer answer;
    if (who_.hash) {
        ntlm::challenge_bytes client_challenge;
        random_.fill(client_challenge);
        answer = answer_to(*challenge, *server_pairs, *who_.hash, spelled,
                           wire::filetime_of(clock_.utc_now()).ticks, client_challenge);
    } else {
        flags |= flag::anonymous;
    }

    session_key exported = answer.key_exchange_key.copy();
    secret_bytes<16> encrypted;
    const bool exchanges = (flags & flag::key_exchange) != 0;
    if (exchanges) {
        random_.fill(exported.mutable_view().span());
        encrypted = ntlm::exchange_key(answer.key_exchange_key, exported.view());
    }
    ntlm::authenticate_message message{.flags = flags,
                                       .lm_response = {},
                                       .nt_response = answer.response,
                                       .domain = bytes_of_text(spelled.domain),
                                       .user = bytes_of_text(spelled.user),
                                       .workstation = bytes_of_text(spelled.workstation),
                                       .encrypted_session_key = exchanges ? encrypted.view() : bytes_view(),
                                       .mic = {}};
    auto encoded = ntlm::encode(message);
    if (answer.has_mic) {
        const auto mic = ntlm::mic_of(
            exported, {.negotiate = negotiate_token_, .challenge = token, .authenticate = encoded});
        std::copy_n(mic.view().begin(), mic.size, encoded.begin() + ntlm::mic_offset);
    }
    client_signatures_.emplace(exported, ntlm::signing_side::client, flags);
    server_signatures_.emplace(exported, ntlm::signing_side::server, flags);
    return step_done{.token = std::move(encoded),
                     .key = std::move(exported),
                     .user = who_.user,
                     .domain = who_.domain,
                     .workstation = who_.workstation,
                     .is_anonymous = !who_.hash.has_value()};
}

ntlm::message_signer::signature ntlm_initiator::sign(bytes_view mechanism_list) noexcept {
    ENSURE(client_signatures_.has_value());
    return client_signatures_->sign(mechanism_list);
}

bool ntlm_initiator::verify(bytes_view mechanism_list, bytes_view claimed) noexcept {
    ENSURE(server_signatures_.has_value());
    return server_signatures_->verify(mechanism_list, claimed);
}

}  // namespace sluice::smb::auth

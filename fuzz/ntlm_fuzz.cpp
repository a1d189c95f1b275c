// NTLM messages of an unauthenticated peer: each is passed to the decoders, to a server that
// has sent its challenge, and to a client that waits for one. No message without the
// password leads to a logon.

#include <cstdint>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/logon/ntlm_acceptor.hpp"
#include "sluice/smb/auth/logon/ntlm_initiator.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::auth;

// Every user has an account with an unknown password.
class all_accounts final : public account_source {
public:
    std::optional<account> find(std::string_view, std::string_view) noexcept override {
        return account{.hash = nt_hash(secret_bytes<16>())};
    }
};

bool same(bytes_view a, bytes_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void check_decoders(bytes_view token) {
    (void)ntlm::decode_negotiate(token);
    if (const auto challenge = ntlm::decode_challenge(token)) {
        const auto encoded = ntlm::encode(*challenge);
        const auto again = ntlm::decode_challenge(encoded);
        ENSURE(again and again->flags == challenge->flags and
               again->server_challenge == challenge->server_challenge);
        ENSURE(same(again->target_name, challenge->target_name) and
               same(again->target_info, challenge->target_info));
    }
    if (const auto message = ntlm::decode_authenticate(token)) {
        const auto encoded = ntlm::encode(*message);
        const auto again = ntlm::decode_authenticate(encoded);
        ENSURE(again and again->flags == message->flags and same(again->user, message->user));
        ENSURE(same(again->nt_response, message->nt_response) and same(again->domain, message->domain));
        if (const auto response = ntlm::decode_nt_v2_response(message->nt_response)) {
            (void)response->pairs.announce_mic();
        }
    }
    if (const auto pairs = ntlm::av_pairs::decode(token)) {
        const auto encoded = ntlm::av_pair_writer().add_all(pairs->without_end()).finish();
        ENSURE(same(ntlm::av_pairs::decode(encoded).value().without_end(), pairs->without_end()));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view token(reinterpret_cast<const std::byte*>(data), size);
    check_decoders(token);

    const server_names names;
    all_accounts accounts;
    predictable_secrets_for_simulation random(1);
    const simulated_clock clock;
    // With extended session security, and without.
    for (const std::uint32_t offered : {0xe2088297U, 0x00008201U}) {
        ntlm_acceptor server(names, accounts, random, clock);
        const auto first = ntlm::encode(ntlm::negotiate_message{.flags = offered});
        ENSURE(std::holds_alternative<step_continue>(server.step(first)));
        const auto result = server.step(token);
        if (const auto* const done = std::get_if<step_done>(&result)) ENSURE(done->is_anonymous);
    }

    const credentials who{.user = "user",
                          .domain = "",
                          .workstation = "",
                          .target_name = "",
                          .hash = nt_hash(secret_bytes<16>())};
    ntlm_initiator client(who, random, clock);
    ENSURE(std::holds_alternative<step_continue>(client.step({})));
    const auto answered = client.step(token);
    if (const auto* const done = std::get_if<step_done>(&answered)) {
        ENSURE(ntlm::decode_authenticate(done->token).has_value());
    }
    return 0;
}

// SPNEGO tokens of an unauthenticated client: decoded parts are within the token and equal after
// encoding and decoding; no single token leads to a logon.

#include <cstdint>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/logon/negotiator.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::auth;

class no_accounts final : public account_source {
public:
    std::optional<account> find(std::string_view, std::string_view) noexcept override { return std::nullopt; }
};

bool same(const std::optional<bytes_view>& a, const std::optional<bytes_view>& b) {
    if (!a or !b) return a.has_value() == b.has_value();
    return std::equal(a->begin(), a->end(), b->begin(), b->end());
}

void check_within(bytes_view token, const std::optional<bytes_view>& part) {
    if (!part or part->empty()) return;
    ENSURE(part->data() >= token.data() and part->data() + part->size() <= token.data() + token.size());
}

void check_init(bytes_view token) {
    const auto decoded = spnego::decode_init(token);
    if (!decoded) return;
    check_within(token, decoded->mechanism_list_der);
    check_within(token, decoded->mech_token);
    check_within(token, decoded->mech_list_mic);
    const auto encoded = spnego::encode(*decoded);
    const auto again = spnego::decode_init(encoded);
    ENSURE(again and same(again->mechanism_list_der, decoded->mechanism_list_der));
    ENSURE(std::ranges::equal(again->mechanisms.all(), decoded->mechanisms.all()));
    ENSURE(same(again->mech_token, decoded->mech_token) and
           same(again->mech_list_mic, decoded->mech_list_mic));
}

void check_resp(bytes_view token) {
    auto decoded = spnego::decode_resp(token);
    if (!decoded) return;
    check_within(token, decoded->response_token);
    check_within(token, decoded->mech_list_mic);
    if (decoded->supported_mechanism == spnego::mechanism::unknown) decoded->supported_mechanism.reset();
    const auto encoded = spnego::encode(*decoded);
    const auto again = spnego::decode_resp(encoded);
    ENSURE(again and again->negotiation_state == decoded->negotiation_state);
    ENSURE(again->supported_mechanism == decoded->supported_mechanism);
    ENSURE(same(again->response_token, decoded->response_token));
    ENSURE(same(again->mech_list_mic, decoded->mech_list_mic));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view token(reinterpret_cast<const std::byte*>(data), size);
    check_init(token);
    check_resp(token);

    const server_names names;
    no_accounts accounts;
    predictable_secrets_for_simulation random(1);
    const simulated_clock clock;
    negotiator server(names, accounts, random, clock);
    for (int i = 0; i < 3; ++i) {
        const auto result = server.step(token);
        if (const auto* const done = std::get_if<step_done>(&result)) ENSURE(done->is_anonymous);
    }
    credentials who;
    initiating_negotiator client(who, random, clock);
    ENSURE(std::holds_alternative<step_continue>(client.step({})));
    for (int i = 0; i < 3; ++i)
        (void)client.step(token);
    return 0;
}

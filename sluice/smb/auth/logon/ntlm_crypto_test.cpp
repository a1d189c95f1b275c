#include "sluice/smb/auth/logon/ntlm_crypto.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/auth/captured_exchange_testing.hpp"
#include "sluice/smb/auth/hex_testing.hpp"
#include "sluice/smb/auth/logon/spnego.hpp"

namespace sluice::smb::auth::ntlm {
namespace {

// [MS-NLMP] 4.2.1 and 4.2.4: "User" of "Domain" with the password "Password", time zero.
const auto user = from_hex("5500730065007200");
const auto domain = from_hex("44006f006d00610069006e00");
const auto server_challenge = array_from_hex<8>("0123456789abcdef");
const auto client_blob = from_hex(
    "0101000000000000 0000000000000000 aaaaaaaaaaaaaaaa 00000000"
    "02000c00 44006f006d00610069006e00 01000c00 530065007200760065007200 00000000 00000000");
constexpr std::uint32_t example_flags = 0xe28a8233;

secret_bytes<16> example_response_key() {
    return response_key(nt_hash::of_password("Password").value(), user, domain);
}

TEST(ntlm_v2, computes_the_example_of_ms_nlmp_4_2_4) {
    const auto key = example_response_key();
    EXPECT_EQ(to_hex(key.view()), "0c868a403bfd7a93a3001ef22ef02e3f");
    const auto proof = proof_of(key, server_challenge, client_blob);
    EXPECT_EQ(to_hex(proof.view()), "68cd0ab851e51c96aabc927bebef6a1c");
    const auto base = session_base_key(key, proof.view());
    EXPECT_EQ(to_hex(base.view()), "8de40ccadbc14a82f15cb0ad0de95ca3");
    const std::vector<std::byte> random_session_key(16, std::byte{0x55});
    const auto encrypted = exchange_key(base, random_session_key);
    EXPECT_EQ(to_hex(encrypted.view()), "c5dad2544fc9799094ce1ce90bc9d03e");
    EXPECT_EQ(to_hex(exchange_key(base, encrypted.view()).view()), to_hex(random_session_key));
}

TEST(ntlm_v2, ignores_the_case_of_the_user_but_not_of_the_domain) {
    const auto hash = nt_hash::of_password("Password").value();
    const auto lower_user = from_hex("7500730065007200");
    const auto lower_domain = from_hex("64006f006d00610069006e00");
    EXPECT_EQ(to_hex(response_key(hash, lower_user, domain).view()), to_hex(example_response_key().view()));
    const auto small_umlaut = from_hex("e400");
    const auto capital_umlaut = from_hex("c400");
    EXPECT_EQ(to_hex(response_key(hash, small_umlaut, domain).view()),
              to_hex(response_key(hash, capital_umlaut, domain).view()));
    const auto odd = from_hex("610061");
    const auto capital_odd = from_hex("410061");
    EXPECT_EQ(to_hex(response_key(hash, odd, domain).view()),
              to_hex(response_key(hash, capital_odd, domain).view()))
        << "a last odd byte is unchanged";
    EXPECT_NE(to_hex(response_key(hash, user, lower_domain).view()), to_hex(example_response_key().view()));
}

// 4.2.4.4 encrypts its message first, with the same stream, so later bytes of the stream encrypt
// the checksum.
TEST(message_signer, computes_the_checksum_of_ms_nlmp_4_2_4_4) {
    const secret_bytes<16> exported(bytes_view(std::vector<std::byte>(16, std::byte{0x55})));
    const auto message = from_hex("50006c00610069006e007400650078007400");
    message_signer without_sealing(exported, signing_side::client, example_flags & ~flag::key_exchange);
    const auto plain = without_sealing.sign(message);
    EXPECT_EQ(to_hex(plain), "0100000070352851f256430900000000");

    rc4 sealing(from_hex("59f600973cc4960a25480a7c196e4c58"));  // the client's sealing key, 4.2.4.4
    auto sealed = message;
    sealing.apply(sealed);
    EXPECT_EQ(to_hex(sealed), "54e50165bf1936dc996020c1811b0f06fb5f");
    auto checksum = array_from_hex<8>("70352851f2564309");
    sealing.apply(checksum);
    EXPECT_EQ(to_hex(checksum), "7fb38ec5c55d4976");

    message_signer with_sealing(exported, signing_side::client, example_flags);
    const auto signature = with_sealing.sign(message);
    rc4 fresh(from_hex("59f600973cc4960a25480a7c196e4c58"));
    checksum = array_from_hex<8>("70352851f2564309");
    fresh.apply(checksum);
    EXPECT_EQ(to_hex(signature), "01000000" + to_hex(checksum) + "00000000");
}

TEST(message_signer, rejects_any_flipped_bit_and_the_other_side) {
    const secret_bytes<16> exported(bytes_view(std::vector<std::byte>(16, std::byte{0x55})));
    const auto message = from_hex("300c060a2b06010401823702020a");
    const auto signature = message_signer(exported, signing_side::client, example_flags).sign(message);
    EXPECT_TRUE(message_signer(exported, signing_side::client, example_flags).verify(message, signature));
    EXPECT_FALSE(message_signer(exported, signing_side::server, example_flags).verify(message, signature));
    for (std::size_t bit = 0; bit < 128; ++bit) {
        auto forged = signature;
        forged[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(message_signer(exported, signing_side::client, example_flags).verify(message, forged))
            << bit;
    }
}

TEST(message_signer, numbers_its_messages) {
    const secret_bytes<16> exported;
    message_signer sender(exported, signing_side::client, example_flags);
    message_signer receiver(exported, signing_side::client, example_flags);
    const auto message = from_hex("00");
    const auto first = sender.sign(message);
    const auto second = sender.sign(message);
    EXPECT_NE(first, second);
    EXPECT_TRUE(receiver.verify(message, first));
    EXPECT_FALSE(receiver.verify(message, first));
}

// The messages of Windows, checked with the key that Microsoft published with them.
class captured_windows_exchange : public testing::Test {
protected:
    static std::vector<std::byte> token(std::string_view message, std::size_t offset) {
        const auto bytes = from_hex(message);
        const auto length =
            *bytes_view(bytes).take_at<le16>(offset == captured::token_offset_in_request ? 78 : 70);
        const bytes_view found = *bytes_view(bytes).slice({offset, length.value()});
        return {found.begin(), found.end()};
    }

    const std::vector<std::byte> first =
        token(captured::first_setup_request, captured::token_offset_in_request);
    const std::vector<std::byte> second =
        token(captured::first_setup_response, captured::token_offset_in_response);
    const std::vector<std::byte> third =
        token(captured::second_setup_request, captured::token_offset_in_request);
    const std::vector<std::byte> fourth =
        token(captured::second_setup_response, captured::token_offset_in_response);
    const secret_bytes<16> exported{array_from_hex<16>(captured::exported_session_key)};
};

TEST_F(captured_windows_exchange, has_the_computed_mic) {
    const auto init = spnego::decode_init(first).value();
    const auto challenge = spnego::decode_resp(second).value();
    const auto authenticate = spnego::decode_resp(third).value();
    const auto message = decode_authenticate(*authenticate.response_token).value();
    const auto mic = mic_of(exported, {.negotiate = *init.mech_token,
                                       .challenge = *challenge.response_token,
                                       .authenticate = *authenticate.response_token});
    EXPECT_EQ(to_hex(mic.view()), "ecac77a5f385a8bf9c38c706eeeddcd3");
    EXPECT_EQ(message.mic, array_from_hex<16>("ecac77a5f385a8bf9c38c706eeeddcd3"));
    EXPECT_TRUE(decode_nt_v2_response(message.nt_response)->pairs.announce_mic());
}

TEST_F(captured_windows_exchange, has_the_computed_signatures_of_the_mechanism_list) {
    const auto init = spnego::decode_init(first).value();
    const auto authenticate = spnego::decode_resp(third).value();
    const auto verdict = spnego::decode_resp(fourth).value();
    const auto flags = decode_authenticate(*authenticate.response_token)->flags;
    EXPECT_TRUE(message_signer(exported, signing_side::client, flags)
                    .verify(init.mechanism_list_der, *authenticate.mech_list_mic));
    EXPECT_TRUE(message_signer(exported, signing_side::server, flags)
                    .verify(init.mechanism_list_der, *verdict.mech_list_mic));
    EXPECT_EQ(verdict.negotiation_state, spnego::state::accept_completed);
}

}  // namespace
}  // namespace sluice::smb::auth::ntlm

#include "sluice/smb/auth/logon/ntlm_messages.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/auth/hex_testing.hpp"
#include "sluice/smb/auth/limits.hpp"

namespace sluice::smb::auth::ntlm {
namespace {

using wire::decode_error;

TEST(av_pairs, finds_the_first_value_of_a_kind_up_to_the_end_mark) {
    const auto one = from_hex("0100");
    const auto two = from_hex("02");
    auto list = av_pair_writer().add(av_id::dns_domain, one).add(av_id::dns_domain, two).finish();
    const auto more = from_hex("0900 0100 ff");
    list.insert(list.end(), more.begin(), more.end());
    const auto pairs = av_pairs::decode(list).value();
    EXPECT_EQ(to_hex(pairs.find(av_id::dns_domain).value()), "0100");
    EXPECT_FALSE(pairs.find(av_id::target_name));
    EXPECT_FALSE(pairs.find(av_id::timestamp));
}

TEST(av_pairs, rejects_a_list_without_an_end_or_with_too_many_pairs) {
    EXPECT_EQ(av_pairs::decode({}).error(), decode_error::missing);
    EXPECT_EQ(av_pairs::decode(from_hex("010000")).error(), decode_error::missing);
    EXPECT_EQ(av_pairs::decode(from_hex("01000200ff")).error(), decode_error::truncated);
    av_pair_writer writer;
    for (std::size_t i = 0; i < limits::av_pairs_max; ++i)
        writer.add(av_id::dns_domain, {});
    const auto full = writer.finish();
    EXPECT_TRUE(av_pairs::decode(full));
    av_pair_writer longer;
    longer.add_all(*bytes_view(full).first(full.size() - 4)).add(av_id::dns_domain, {});
    EXPECT_EQ(av_pairs::decode(longer.finish()).error(), decode_error::too_many);
}

TEST(authenticate_message, is_unchanged_by_a_round_trip) {
    const auto value = [](const char* hex) { return from_hex(hex); };
    const auto lm = value("01"), nt = value("0202"), domain = value("03000300"), user = value("0400"),
               workstation = value("05000500"), key = value("06060606060606060606060606060606");
    const authenticate_message sent{.flags = 0x12345678,
                                    .lm_response = lm,
                                    .nt_response = nt,
                                    .domain = domain,
                                    .user = user,
                                    .workstation = workstation,
                                    .encrypted_session_key = key,
                                    .mic = array_from_hex<16>("000102030405060708090a0b0c0d0e0f")};
    const auto bytes = encode(sent);
    const auto read = decode_authenticate(bytes).value();
    EXPECT_EQ(read.flags, sent.flags);
    EXPECT_EQ(to_hex(read.lm_response), "01");
    EXPECT_EQ(to_hex(read.nt_response), "0202");
    EXPECT_EQ(to_hex(read.domain), "03000300");
    EXPECT_EQ(to_hex(read.user), "0400");
    EXPECT_EQ(to_hex(read.workstation), "05000500");
    EXPECT_EQ(to_hex(read.encrypted_session_key), to_hex(key));
    EXPECT_EQ(read.mic, sent.mic);
    EXPECT_FALSE(decode_challenge(bytes));
    EXPECT_FALSE(decode_negotiate(bytes));
}

TEST(challenge_message, is_unchanged_by_a_round_trip) {
    const auto name = from_hex("41004200");
    const auto info = av_pair_writer().finish();
    const auto bytes = encode(challenge_message{.flags = 7,
                                                .server_challenge = array_from_hex<8>("0123456789abcdef"),
                                                .target_name = name,
                                                .target_info = info});
    const auto read = decode_challenge(bytes).value();
    EXPECT_EQ(read.flags, 7u);
    EXPECT_EQ(to_hex(read.server_challenge), "0123456789abcdef");
    EXPECT_EQ(to_hex(read.target_name), "41004200");
    EXPECT_EQ(to_hex(read.target_info), to_hex(info));
}

TEST(ntlm_messages, with_a_payload_outside_of_the_message_are_rejected) {
    const auto user = from_hex("41004200");
    auto bytes = encode(authenticate_message{.flags = 0,
                                             .lm_response = {},
                                             .nt_response = {},
                                             .domain = {},
                                             .user = user,
                                             .workstation = {},
                                             .encrypted_session_key = {},
                                             .mic = {}});
    ASSERT_TRUE(decode_authenticate(bytes));
    for (const std::uint32_t offset :
         {static_cast<std::uint32_t>(bytes.size() - 3), 0x7fffffffU, 0xfffffffeU}) {
        const le32 wire_offset(offset);
        std::memcpy(bytes.data() + 40, &wire_offset, sizeof(wire_offset));
        EXPECT_EQ(decode_authenticate(bytes).error(), decode_error::range_outside_message);
    }
}

TEST(ntlm_messages, foreign_and_truncated_tokens_have_different_errors) {
    EXPECT_EQ(decode_negotiate(as_bytes("NTLMSSQ")).error(), decode_error::bad_protocol_id);
    EXPECT_EQ(decode_negotiate(from_hex("4e544c4d53535000 01000000 0000")).error(), decode_error::truncated);
    EXPECT_EQ(decode_negotiate(from_hex("4e544c4d53535000 02000000 00000000")).error(),
              decode_error::bad_value);
    EXPECT_EQ(decode_negotiate(from_hex("4e544c4d53535000 01000000 05000000"))->flags, 5u);
}

}  // namespace
}  // namespace sluice::smb::auth::ntlm

#include "sluice/smb/auth/logon/spnego.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/auth/captured_exchange_testing.hpp"
#include "sluice/smb/auth/hex_testing.hpp"
#include "sluice/smb/auth/logon/der.hpp"

namespace sluice::smb::auth::spnego {
namespace {

TEST(der, a_value_of_any_length_round_trips) {
    for (const std::size_t size : {0, 1, 127, 128, 255, 256, 65535, 65536, 100'000}) {
        const std::vector<std::byte> contents(size, std::byte{7});
        const auto value = der::make(der::tag::octet_string, {contents});
        const auto read = der::only(value, der::tag::octet_string);
        ASSERT_TRUE(read) << size;
        EXPECT_EQ(read->size(), size);
        EXPECT_FALSE(der::only(value, der::tag::sequence));
        EXPECT_FALSE(der::only(*bytes_view(value).first(value.size() - 1), der::tag::octet_string));
    }
}

TEST(der, rejects_indefinite_lengths_and_lengths_beyond_the_bytes) {
    for (const char* const bad :
         {"0480", "04ff", "0485000000000100", "0484ffffffff00", "0402 00", "04", "", "1f01"}) {
        const auto bytes = from_hex(bad);
        EXPECT_FALSE(der::reader(bytes).take(der::tag::octet_string)) << bad;
        EXPECT_FALSE(der::reader(bytes).take_whole()) << bad;
    }
}

TEST(der, accepts_a_length_longer_than_the_shortest_encoding) {
    EXPECT_EQ(to_hex(*der::only(from_hex("0484000000 01aa"), der::tag::octet_string)), "aa");
}

TEST(spnego, reads_the_offer_of_a_windows_server) {
    const auto message = from_hex(captured::negotiate_response);
    const bytes_view token = *bytes_view(message).slice({.offset = 128, .length = 0x140});
    const auto init = decode_init(token);
    ASSERT_TRUE(init);
    EXPECT_EQ(std::vector(init->mechanisms.all().begin(), init->mechanisms.all().end()),
              (std::vector{mechanism::negoex, mechanism::ntlm}));
    EXPECT_EQ(init->mech_token->size(), 0x108u);
    EXPECT_FALSE(init->mech_list_mic);
}

TEST(spnego, reads_its_own_offer_with_its_hint) {
    const std::array ours = {mechanism::kerberos, mechanism::kerberos_as_by_2k, mechanism::ntlm};
    const auto offer = encode_server_offer(ours);
    EXPECT_TRUE(is_init(offer));
    const auto init = decode_init(offer);
    ASSERT_TRUE(init);
    EXPECT_TRUE(std::ranges::equal(init->mechanisms.all(), ours));
    EXPECT_FALSE(init->mech_token or init->mech_list_mic);
    const std::string_view text(reinterpret_cast<const char*>(offer.data()), offer.size());
    EXPECT_TRUE(text.ends_with("not_defined_in_RFC4178@please_ignore"));
}

TEST(spnego, round_trips_every_kind_of_token) {
    const std::array mechanisms = {mechanism::negoex, mechanism::ntlm};
    const auto list = encode_mechanism_list(mechanisms);
    const auto some = from_hex("0102030405");
    for (const bool with_token : {false, true}) {
        for (const bool with_mic : {false, true}) {
            const auto octets = [&](bool present) {
                return present ? std::optional<bytes_view>(some) : std::nullopt;
            };
            const auto init = encode(neg_token_init{.mechanisms = {},
                                                    .mechanism_list_der = list,
                                                    .mech_token = octets(with_token),
                                                    .mech_list_mic = octets(with_mic)});
            const auto decoded = decode_init(init);
            ASSERT_TRUE(decoded);
            EXPECT_EQ(to_hex(decoded->mechanism_list_der), to_hex(list));
            EXPECT_EQ(decoded->mech_token.has_value(), with_token);
            EXPECT_EQ(decoded->mech_list_mic.has_value(), with_mic);

            for (const auto said : {state::accept_completed, state::request_mic}) {
                const auto resp = encode(neg_token_resp{.negotiation_state = said,
                                                        .supported_mechanism = mechanism::ntlm,
                                                        .response_token = octets(with_token),
                                                        .mech_list_mic = octets(with_mic)});
                EXPECT_TRUE(is_resp(resp) and !is_init(resp));
                const auto read = decode_resp(resp);
                ASSERT_TRUE(read);
                EXPECT_EQ(read->negotiation_state, said);
                EXPECT_EQ(read->supported_mechanism, mechanism::ntlm);
                EXPECT_EQ(read->response_token.has_value(), with_token);
                EXPECT_EQ(read->mech_list_mic.has_value(), with_mic);
            }
        }
    }
}

TEST(spnego, rejects_more_mechanisms_than_the_limit_and_an_empty_list) {
    const std::vector<mechanism> many(limits::mechanisms_max + 1, mechanism::ntlm);
    EXPECT_FALSE(decode_init(encode_server_offer(many)));
    EXPECT_TRUE(decode_init(encode_server_offer(std::span(many).first(limits::mechanisms_max))));
    EXPECT_FALSE(decode_init(encode_server_offer({})));
}

TEST(spnego, rejects_a_truncated_token_and_one_with_trailing_bytes) {
    const auto message = from_hex(captured::first_setup_response);
    const bytes_view token = *bytes_view(message).slice({.offset = 72, .length = 0xb3});
    ASSERT_TRUE(decode_resp(token));
    for (std::size_t size = 0; size < token.size(); ++size)
        EXPECT_FALSE(decode_resp(*token.first(size))) << size;
    std::vector<std::byte> longer(token.begin(), token.end());
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode_resp(longer));
}

}  // namespace
}  // namespace sluice::smb::auth::spnego

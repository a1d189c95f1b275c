#include "sluice/smb/auth/preauth_integrity.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/auth/captured_exchange_testing.hpp"
#include "sluice/smb/auth/hex_testing.hpp"

namespace sluice::smb::auth {
namespace {

TEST(preauth_integrity, follows_the_exchange_that_microsoft_published) {
    preauth_integrity hash;
    hash.add(from_hex(captured::negotiate_request));
    EXPECT_EQ(to_hex(hash.value()),
              "dd94efc5321bb618a2e208ba8920d2f422992526947a409b5037de1e0fe8c736"
              "2b8c47122594cde0ce26aa9dfc8bcdbde0621957672623351a7540f1e54a0426");
    hash.add(from_hex(captured::negotiate_response));
    hash.add(from_hex(captured::first_setup_request));
    hash.add(from_hex(captured::first_setup_response));
    EXPECT_EQ(to_hex(hash.value()),
              "2729e3440dfddd839e37193f6e8f20c20cefb3469e453a70cd980eec06b88357"
              "40a73760085633364c8989895ece81bf102deeb14d4b7d48afa76901a7a38387");
    hash.add(from_hex(captured::second_setup_request));
    EXPECT_EQ(to_hex(hash.value()), captured::preauth_hash_of_session);
}

TEST(preauth_integrity, is_the_same_for_a_message_in_parts) {
    const auto message = from_hex(captured::negotiate_request);
    preauth_integrity whole;
    whole.add(message);
    for (std::size_t cut = 0; cut <= message.size(); ++cut) {
        const bytes_view all = message;
        const std::array<bytes_view, 2> parts = {*all.first(cut), *all.from(cut)};
        preauth_integrity split;
        split.add(parts);
        EXPECT_EQ(split.value(), whole.value()) << cut;
    }
}

TEST(preauth_integrity, differs_for_one_message_and_its_halves) {
    const auto message = from_hex(captured::negotiate_request);
    preauth_integrity whole;
    whole.add(message);
    preauth_integrity halves;
    halves.add(*bytes_view(message).first(60));
    halves.add(*bytes_view(message).from(60));
    EXPECT_NE(whole.value(), halves.value());
}

}  // namespace
}  // namespace sluice::smb::auth

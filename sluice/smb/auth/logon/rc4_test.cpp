#include "sluice/smb/auth/logon/rc4.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/auth/hex_testing.hpp"

namespace sluice::smb::auth {
namespace {

TEST(rc4, computes_the_streams_of_rfc_6229) {
    const auto stream = [](std::string_view key) {
        std::array<std::byte, 32> zeros{};
        rc4(from_hex(key)).apply(zeros);
        return to_hex(zeros);
    };
    EXPECT_EQ(stream("0102030405"), "b2396305f03dc027ccc3524a0a1118a86982944f18fc82d589c403a47a0d0919");
    EXPECT_EQ(stream("0102030405060708090a0b0c0d0e0f10"),
              "9ac7cc9a609d1ef7b2932899cde41b975248c4959014126a6e8a84f11d1a9e1c");
}

TEST(rc4, continues_where_the_last_call_stopped) {
    const auto key = from_hex("0102030405");
    std::array<std::byte, 32> at_once{};
    rc4(key).apply(at_once);
    std::array<std::byte, 32> in_pieces{};
    rc4 cipher(key);
    cipher.apply({in_pieces.data(), 1});
    cipher.apply({});
    cipher.apply({in_pieces.data() + 1, 31});
    EXPECT_EQ(at_once, in_pieces);
}

}  // namespace
}  // namespace sluice::smb::auth

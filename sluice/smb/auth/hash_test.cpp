#include <gtest/gtest.h>

#include "sluice/smb/auth/hex_testing.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/logon/md4.hpp"

namespace sluice::smb::auth {
namespace {

TEST(md4, computes_the_digests_of_rfc_1320) {
    const auto digest = [](std::string_view text) { return to_hex(md4(as_bytes(text))); };
    EXPECT_EQ(digest(""), "31d6cfe0d16ae931b73c59d7e0c089c0");
    EXPECT_EQ(digest("a"), "bde52cb31de33e46245e05fbdbd6fb24");
    EXPECT_EQ(digest("abc"), "a448017aaf21d8525fc10ae87aa6729d");
    EXPECT_EQ(digest("message digest"), "d9130a8164549fe818874806e1c7014b");
    EXPECT_EQ(digest("abcdefghijklmnopqrstuvwxyz"), "d79e1c308aa5bbcdeea8ed63df412da9");
    EXPECT_EQ(digest("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
              "043f8582f241db351ce627e153e7f0e4");
    EXPECT_EQ(digest("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
              "e33b4ddc9c38f2199c3e7b164fcc0536");
}

TEST(hmac, computes_the_md5_codes_of_rfc_2202) {
    const auto code = [](bytes_view key, std::string_view text) {
        const bytes_view part = as_bytes(text);
        return to_hex(hmac_md5(key, std::span(&part, 1)).view());
    };
    EXPECT_EQ(code(from_hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"), "Hi There"),
              "9294727a3638bb1c13f48ef8158bfc9d");
    EXPECT_EQ(code(as_bytes("Jefe"), "what do ya want for nothing?"), "750c783e6ab0b503eaa86e310a5db738");
    EXPECT_EQ(code(from_hex(std::string(160, 'a')), "Test Using Larger Than Block-Size Key - Hash Key First"),
              "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd");
}

TEST(hmac, computes_the_sha256_codes_of_rfc_4231_repeatedly) {
    const hmac_sha256 keyed(from_hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"));
    const std::array<bytes_view, 3> parts = {as_bytes("Hi "), {}, as_bytes("There")};
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(to_hex(keyed.code(parts).view()),
                  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    }
    const hmac_sha256 long_key(from_hex(std::string(262, 'a')));
    const std::array<bytes_view, 1> text = {
        as_bytes("Test Using Larger Than Block-Size Key - Hash Key First")};
    EXPECT_EQ(to_hex(long_key.code(text).view()),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace sluice::smb::auth

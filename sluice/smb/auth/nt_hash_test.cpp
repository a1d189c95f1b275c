#include "sluice/smb/auth/nt_hash.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/auth/hex_testing.hpp"
#include "sluice/smb/auth/upper_case.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::auth {
namespace {

std::string upper(std::string_view utf8) {
    auto utf16 = wire::utf16_of(utf8).value();
    make_upper_case({reinterpret_cast<std::byte*>(utf16.data()), utf16.size()});
    return wire::utf8_of(as_bytes(utf16)).value();
}

TEST(nt_hash, is_that_of_the_examples_in_ms_nlmp) {
    EXPECT_EQ(to_hex(nt_hash::of_password("Password")->view()), "a4f49c406510bdcab6824ee7c30fd852");
    EXPECT_EQ(to_hex(nt_hash::of_password("")->view()), "31d6cfe0d16ae931b73c59d7e0c089c0");
}

TEST(nt_hash, differs_for_letters_outside_of_ascii_and_refuses_what_is_not_utf_8) {
    EXPECT_NE(to_hex(nt_hash::of_password("p\u00e9n\u00e9lope")->view()),
              to_hex(nt_hash::of_password("penelope")->view()));
    EXPECT_FALSE(nt_hash::of_password("\xff"));
}

TEST(make_upper_case, raises_letters_that_have_capitals_and_no_others) {
    EXPECT_EQ(upper("Administrator_09@[`{"), "ADMINISTRATOR_09@[`{");
    EXPECT_EQ(upper("\u00e0\u00f6\u00f7\u00fe\u00ff\u00df"), "\u00c0\u00d6\u00f7\u00de\u0178\u00df");
    EXPECT_EQ(upper("\u0101\u0148\u017c\u0142"), "\u0100\u0147\u017b\u0141");
    EXPECT_EQ(upper("\u03ac\u03b1\u03c9\u03ce\u03c2"), "\u0386\u0391\u03a9\u038f\u03c2");
    EXPECT_EQ(upper("\u0430\u044f\u0451\u0454"), "\u0410\u042f\u0401\u0404");
    EXPECT_EQ(upper("\u1ea1\u1ec7\u65e5\U0001f600"), "\u1ea0\u1ec6\u65e5\U0001f600");
    EXPECT_EQ(upper("\u00c0\u0100\u0391\u0410"), "\u00c0\u0100\u0391\u0410");
}

TEST(make_upper_case, leaves_an_odd_last_byte_alone) {
    auto bytes = from_hex("610061");
    make_upper_case(bytes);
    EXPECT_EQ(to_hex(bytes), "410061");
}

}  // namespace
}  // namespace sluice::smb::auth

#include "sluice/smb/auth/logon/nt_hash.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/auth/hex_testing.hpp"

namespace sluice::smb::auth {
namespace {

TEST(nt_hash, equals_the_examples_in_ms_nlmp) {
    EXPECT_EQ(to_hex(nt_hash::of_password("Password")->view()), "a4f49c406510bdcab6824ee7c30fd852");
    EXPECT_EQ(to_hex(nt_hash::of_password("")->view()), "31d6cfe0d16ae931b73c59d7e0c089c0");
}

TEST(nt_hash, differs_for_letters_outside_of_ascii_and_rejects_invalid_utf_8) {
    EXPECT_NE(to_hex(nt_hash::of_password("p\u00e9n\u00e9lope")->view()),
              to_hex(nt_hash::of_password("penelope")->view()));
    EXPECT_FALSE(nt_hash::of_password("\xff"));
}

}  // namespace
}  // namespace sluice::smb::auth

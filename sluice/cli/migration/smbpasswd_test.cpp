#include "sluice/cli/migration/smbpasswd.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sluice/smb/auth/secret.hpp"

namespace sluice::cli {
namespace {

constexpr const char* hash_of_password = "8846F7EAEE8FB117AD06BDD830B7586C";

std::string line_with(const std::string& name, const std::string& hash, const std::string& flags) {
    return name + ":1000:" + std::string(32, 'X') + ":" + hash + ":[" + flags + "]:LCT-60000000:";
}

TEST(smbpasswd, a_user_has_the_hash_of_the_fourth_field) {
    const auto read = parse_smbpasswd(line_with("alice", hash_of_password, "U          "));
    ASSERT_EQ(read.skip, smbpasswd_skip::none);
    EXPECT_EQ(read.name, "alice");
    const auto expected = smb::auth::nt_hash::of_password("password");
    ASSERT_TRUE(read.hash and expected);
    EXPECT_TRUE(smb::auth::equal_in_constant_time(read.hash->view(), expected->view()));
}

TEST(smbpasswd, a_hash_in_lower_case_and_a_line_without_flags_are_accepted) {
    const auto read = parse_smbpasswd("bob:1001:x:8846f7eaee8fb117ad06bdd830b7586c\r");
    EXPECT_EQ(read.skip, smbpasswd_skip::none);
    EXPECT_EQ(read.name, "bob");
}

TEST(smbpasswd, accounts_that_cannot_log_on_are_skipped_with_the_reason) {
    EXPECT_EQ(parse_smbpasswd(line_with("pc$", hash_of_password, "W          ")).skip,
              smbpasswd_skip::machine);
    EXPECT_EQ(parse_smbpasswd(line_with("pc$", hash_of_password, "U          ")).skip,
              smbpasswd_skip::machine);
    EXPECT_EQ(parse_smbpasswd(line_with("dom", hash_of_password, "I          ")).skip,
              smbpasswd_skip::machine);
    EXPECT_EQ(parse_smbpasswd(line_with("eve", hash_of_password, "DU         ")).skip,
              smbpasswd_skip::disabled);
    EXPECT_EQ(parse_smbpasswd(line_with("eve", hash_of_password, "NU         ")).skip,
              smbpasswd_skip::no_password);
    EXPECT_EQ(parse_smbpasswd(line_with("eve", std::string(32, 'X'), "U          ")).skip,
              smbpasswd_skip::no_password);
    EXPECT_EQ(parse_smbpasswd(line_with("eve", "NO PASSWORDXXXXXXXXXXXXXXXXXXXXX", "U          ")).skip,
              smbpasswd_skip::no_password);
}

TEST(smbpasswd, remarks_and_empty_lines_name_no_user) {
    for (const char* const line : {"", "  ", "# alice:1:x:y", "\r"})
        EXPECT_EQ(parse_smbpasswd(line).skip, smbpasswd_skip::blank) << line;
}

TEST(smbpasswd, a_malformed_line_has_no_name_so_that_no_message_shows_a_hash) {
    const std::string hash = hash_of_password;
    for (const std::string& line :
         {"alice:" + hash, std::string("alice"), "alice:x:y:" + hash, ":1000:x:" + hash,
          "alice:1000:x:" + hash.substr(1), "alice:1000:x:" + hash + "0", "alice:1000:x:0x" + hash.substr(2),
          std::string("alice:1000:x:"), std::string(5000, 'a') + ":1:x:" + hash}) {
        const auto read = parse_smbpasswd(line);
        EXPECT_EQ(read.skip, smbpasswd_skip::malformed) << line;
        EXPECT_TRUE(read.name.empty() and not read.hash);
    }
}

TEST(smbpasswd, databases_and_their_dumps_are_recognised) {
    EXPECT_TRUE(is_tdb("TDB file\n\0"));
    EXPECT_TRUE(is_tdb("{\nkey(11) = \"USER_alice\\00\""));
    EXPECT_FALSE(is_tdb("alice:1000:"));
}

}  // namespace
}  // namespace sluice::cli

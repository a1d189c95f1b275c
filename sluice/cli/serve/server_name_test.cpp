#include "sluice/cli/serve/server_name.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::cli {
namespace {

TEST(ServerName, is_the_first_label_of_the_host_in_upper_case) {
    EXPECT_EQ(server_name_for("nas"), "NAS");
    EXPECT_EQ(server_name_for("nas-2.example.org"), "NAS-2");
}

TEST(ServerName, keeps_at_most_15_characters_of_a_netbios_name) {
    EXPECT_EQ(server_name_for("my_nas"), "MYNAS");
    EXPECT_EQ(server_name_for("a-very-long-name-of-a-host"), "A-VERY-LONG-NAM");
    EXPECT_EQ(server_name_for("b\xc3\xbcro"), "BRO");
}

TEST(ServerName, is_that_of_the_program_if_the_host_has_none) {
    for (const char* host : {"", ".example.org", "localhost", "localhost.localdomain", "\xe6\xa1\x8c"})
        EXPECT_EQ(server_name_for(host), "SLUICE") << host;
}

}  // namespace
}  // namespace sluice::cli

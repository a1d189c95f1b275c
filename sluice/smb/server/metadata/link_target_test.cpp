#include "sluice/smb/server/metadata/link_target.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

using namespace std::string_view_literals;

TEST(link_target, to_names_next_to_and_below_the_link_stays_in_the_share) {
    for (const std::string_view target : {"name"sv, "a/b/c"sv, "./name"sv, "a//b/"sv, "..."sv, "a/..b"sv})
        EXPECT_TRUE(stays_in_share(target, "")) << target;
}

TEST(link_target, that_is_absolute_or_names_a_drive_leaves_the_share) {
    for (const std::string_view target :
         {"/"sv, "/etc/passwd"sv, "//server/share"sv, "/\?\?/C:/x"sv, "C:/x"sv, "c:x"sv, ""sv})
        EXPECT_FALSE(stays_in_share(target, "a/b/c")) << target;
}

TEST(link_target, that_goes_up_stays_in_the_share_as_far_as_its_root) {
    EXPECT_FALSE(stays_in_share("..", ""));
    EXPECT_TRUE(stays_in_share("..", "a"));
    EXPECT_TRUE(stays_in_share("../../x", "a/b"));
    EXPECT_FALSE(stays_in_share("../../../x", "a/b"));
    EXPECT_FALSE(stays_in_share("./..//../../x", "a/b"));
}

TEST(link_target, that_goes_up_after_a_name_may_leave_the_share_through_another_link) {
    EXPECT_FALSE(stays_in_share("a/../b", "deep/enough"));
    EXPECT_FALSE(stays_in_share("../a/..", "deep/enough"));
}

TEST(link_target, with_a_zero_is_not_what_the_host_would_store) {
    EXPECT_FALSE(stays_in_share("..\0x/b"sv, ""));
    EXPECT_FALSE(stays_in_share("a\0b"sv, ""));
}

}  // namespace
}  // namespace sluice::smb::server

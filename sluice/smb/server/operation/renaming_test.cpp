#include "sluice/smb/server/operation/renaming.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

using wire::nt_status;
const rename_request plain{.target = "b"};
const rename_request replacing{.target = "b", .replaces = true};

TEST(name_taken, by_another_file_is_a_collision_unless_the_request_replaces_it) {
    EXPECT_EQ(may_replace({}, plain, false), nt_status::object_name_collision);
    EXPECT_EQ(may_replace({}, replacing, false), nt_status::success);
}

TEST(name_taken, by_the_same_file_lets_its_case_change) {
    EXPECT_EQ(may_replace({.is_same_file = true}, plain, false), nt_status::success);
    EXPECT_EQ(may_replace({.is_same_file = true, .is_directory = true}, plain, true), nt_status::success);
}

TEST(name_taken, is_not_given_a_second_time_to_its_own_file) {
    EXPECT_EQ(may_replace({.is_same_file = true}, {.target = "b", .makes_link = true}, false),
              nt_status::object_name_collision);
}

TEST(name_taken, by_a_directory_or_for_one_is_never_replaced) {
    EXPECT_EQ(may_replace({.is_directory = true}, replacing, false), nt_status::access_denied);
    EXPECT_EQ(may_replace({}, replacing, true), nt_status::access_denied);
}

TEST(name_taken, by_an_open_file_is_replaced_with_posix_semantics_only) {
    EXPECT_EQ(may_replace({.is_open = true}, replacing, false), nt_status::access_denied);
    EXPECT_EQ(may_replace({.is_open = true}, {.target = "b", .replaces = true, .is_posix = true}, false),
              nt_status::success);
}

TEST(name_taken, by_a_read_only_file_is_replaced_only_if_the_request_ignores_that) {
    EXPECT_EQ(may_replace({.is_read_only = true}, replacing, false), nt_status::access_denied);
    EXPECT_EQ(may_replace({.is_read_only = true},
                          {.target = "b", .replaces = true, .ignores_read_only = true}, false),
              nt_status::success);
}

TEST(name_taken, by_a_file_the_user_may_not_remove_stays_taken) {
    EXPECT_EQ(may_replace({.may_be_removed = false}, replacing, false), nt_status::access_denied);
}

}  // namespace
}  // namespace sluice::smb::server

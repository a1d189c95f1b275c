#include "sluice/smb/server/metadata/file_times.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

using kind = requested_time::kind;
const vfs::time_point other{std::chrono::seconds(2000)};

[[nodiscard]] wire::filetime numbered(std::int64_t number) {
    return wire::filetime(static_cast<std::uint64_t>(number));
}

TEST(requested_time, has_its_special_meanings_for_zero_and_the_first_two_below) {
    EXPECT_EQ(requested_time_of(numbered(0))->what, kind::leave);
    EXPECT_EQ(requested_time_of(numbered(-1))->what, kind::freeze);
    EXPECT_EQ(requested_time_of(numbered(-2))->what, kind::thaw);
}

TEST(requested_time, refuses_other_numbers_below_zero) {
    EXPECT_EQ(requested_time_of(numbered(-3)).error(), wire::nt_status::invalid_parameter);
    EXPECT_EQ(requested_time_of(numbered(INT64_MIN)).error(), wire::nt_status::invalid_parameter);
}

TEST(requested_time, sets_any_other_time) {
    const auto wish = requested_time_of(wire::filetime_of(other));
    ASSERT_TRUE(wish);
    EXPECT_EQ(wish->what, kind::set);
    EXPECT_EQ(wish->time, other);
}

TEST(time_of_an_open, is_kept_once_it_was_set_or_frozen) {
    EXPECT_TRUE(keeps_after({.what = kind::set, .time = other}, false));
    EXPECT_TRUE(keeps_after({.what = kind::freeze}, false));
}

TEST(time_of_an_open, is_not_kept_after_thawing_and_stays_as_it_is_when_left_alone) {
    EXPECT_FALSE(keeps_after({.what = kind::thaw}, true));
    EXPECT_TRUE(keeps_after({.what = kind::leave}, true));
    EXPECT_FALSE(keeps_after({.what = kind::leave}, false));
}

}  // namespace
}  // namespace sluice::smb::server

#include "sluice/smb/server/metadata/file_times.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

using kind = requested_time::kind;
const vfs::time_point present{std::chrono::seconds(1000)};
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

TEST(kept_time, is_what_was_set_or_was_there_when_frozen) {
    EXPECT_EQ(kept_after({.what = kind::set, .time = other}, std::nullopt, present), other);
    EXPECT_EQ(kept_after({.what = kind::freeze}, std::nullopt, present), present);
}

TEST(kept_time, ends_with_thawing_and_stays_when_left_alone) {
    EXPECT_EQ(kept_after({.what = kind::thaw}, other, present), std::nullopt);
    EXPECT_EQ(kept_after({.what = kind::leave}, other, present), other);
    EXPECT_EQ(kept_after({.what = kind::leave}, std::nullopt, present), std::nullopt);
}

}  // namespace
}  // namespace sluice::smb::server

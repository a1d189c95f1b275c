#include "sluice/smb/wire/fsctl/fsctl_snapshots.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sluice/base/endian.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::sys_seconds noon = std::chrono::sys_days(2026y / 11 / 28) + 12h + 34min + 56s;

TEST(gmt_token, has_the_time_in_utc_and_round_trips) {
    EXPECT_EQ(gmt_token_of(noon), "@GMT-2026.11.28-12.34.56");
    EXPECT_EQ(gmt_token_of(std::chrono::sys_days(1601y / 1 / 1)), "@GMT-1601.01.01-00.00.00");
    seeded_random random(1);
    for (int i = 0; i != 1000; ++i) {
        const std::chrono::sys_seconds when(
            std::chrono::seconds(static_cast<std::int64_t>(random.below(253'402'300'800))));
        EXPECT_EQ(parse_gmt_token(gmt_token_of(when)), when);
    }
}

TEST(gmt_token, rejects_other_text) {
    const std::string valid = gmt_token_of(noon);
    for (std::size_t at = 0; at != valid.size(); ++at) {
        std::string changed = valid;
        changed[at] = '/';
        EXPECT_EQ(parse_gmt_token(changed), std::nullopt) << changed;
        EXPECT_EQ(parse_gmt_token(valid.substr(0, at)), std::nullopt);
    }
    for (const char* const text :
         {"@gmt-2026.11.28-12.34.56", "@GMT-2026.11.28-12.34.561", " @GMT-2026.11.28-12.34.56",
          "@GMT-2026.02.30-00.00.00", "@GMT-2026.00.01-00.00.00", "@GMT-2026.13.01-00.00.00",
          "@GMT-2026.01.01-24.00.00", "@GMT-2026.01.01-00.60.00", "@GMT-2026.01.01-00.00.60",
          "@GMT-1600.12.31-00.00.00", "@GMT-0000.01.01-00.00.00"})
        EXPECT_EQ(parse_gmt_token(text), std::nullopt) << text;
}

TEST(snapshot_array, has_all_times_or_none_of_them) {
    const std::array times{noon, noon - 1h};
    std::array<std::byte, 200> room{};
    byte_writer whole(room);
    encode_snapshot_array(whole, times, snapshot_array_bytes(times.size()));
    const auto bytes = whole.finish();
    ASSERT_TRUE(bytes);
    ASSERT_EQ(bytes->size(), snapshot_array_bytes(times.size()));
    ASSERT_EQ(bytes->size(), 114U);
    byte_reader reading(bytes_view(bytes->data(), bytes->size()));
    EXPECT_EQ(reading.take<le32>()->value(), 2U);
    EXPECT_EQ(reading.take<le32>()->value(), 2U);
    EXPECT_EQ(reading.take<le32>()->value(), reading.remaining());
    EXPECT_EQ(utf8_of(reading.rest()).value(),
              std::string("@GMT-2026.11.28-12.34.56\0@GMT-2026.11.28-11.34.56\0\0", 51));

    byte_writer head(room);
    encode_snapshot_array(head, times, 113);
    const auto short_bytes = head.finish();
    ASSERT_EQ(short_bytes->size(), snapshot_array_bytes_min);
    byte_reader counting(bytes_view(short_bytes->data(), short_bytes->size()));
    EXPECT_EQ(counting.take<le32>()->value(), 2U);
    EXPECT_EQ(counting.take<le32>()->value(), 0U);
    EXPECT_EQ(counting.take<le32>()->value(), 102U);
}

TEST(snapshot_array, without_times_has_the_least_length) {
    std::array<std::byte, 20> room{};
    byte_writer writer(room);
    encode_snapshot_array(writer, {}, snapshot_array_bytes_min);
    EXPECT_EQ(writer.finish()->size(), snapshot_array_bytes_min);
    EXPECT_EQ(snapshot_array_bytes(0), snapshot_array_bytes_min);
}

}  // namespace
}  // namespace sluice::smb::wire

#include "sluice/fat/codec/directory_entry.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

#include "sluice/base/random.hpp"
#include "sluice/fat/codec/timestamp.hpp"

// Slots of a directory, and their times.

namespace sluice::fat {
namespace {

using namespace std::chrono_literals;
using namespace std::chrono;

directory_entry slot(std::string_view name, attributes bits) {
    directory_entry made;
    std::ranges::copy(name, made.name.begin());
    made.attribute_bits = le8(static_cast<std::uint8_t>(bits));
    return made;
}

TEST(directory_entry, the_first_byte_and_the_attributes_determine_the_kind_of_a_slot) {
    EXPECT_EQ(kind_of({}), slot_kind::end);
    EXPECT_EQ(kind_of(slot("\xe5LE     TXT", attributes::none)), slot_kind::free);
    EXPECT_EQ(kind_of(slot("\xe5", attributes::long_name)), slot_kind::free);
    EXPECT_EQ(kind_of(slot("\x05LE     TXT", attributes::archive)), slot_kind::file);
    EXPECT_EQ(kind_of(slot("FILE    TXT", attributes::read_only | attributes::hidden)), slot_kind::file);
    EXPECT_EQ(kind_of(slot("A", attributes::long_name)), slot_kind::long_name);
    EXPECT_EQ(kind_of(slot("A", attributes::long_name | attributes::archive)), slot_kind::long_name);
    EXPECT_EQ(kind_of(slot("LABEL      ", attributes::label | attributes::archive)), slot_kind::label);
    EXPECT_EQ(kind_of(slot("DIR        ", attributes::directory)), slot_kind::directory);
    EXPECT_EQ(kind_of(slot(".          ", attributes::directory)), slot_kind::dots);
    EXPECT_EQ(kind_of(slot("..         ", attributes::directory)), slot_kind::dots);
    EXPECT_EQ(kind_of(slot("...        ", attributes::directory)), slot_kind::directory);
    EXPECT_EQ(kind_of(slot(".A         ", attributes::directory)), slot_kind::directory);
}

TEST(directory_entry, the_high_word_of_a_cluster_is_used_only_on_fat32_and_preserved_elsewhere) {
    directory_entry entry;
    entry.first_cluster_high = le16(0xf123);
    entry.first_cluster_low = le16(0x4567);
    EXPECT_EQ(first_cluster(entry, cluster_width::two_bytes), 0x4567U);
    EXPECT_EQ(first_cluster(entry, cluster_width::four_bytes), 0x0123'4567U);
    set_first_cluster(entry, 0x89, cluster_width::two_bytes);
    EXPECT_EQ(entry.first_cluster_high.value(), 0xf123U);
    set_first_cluster(entry, 0x0abc'def0, cluster_width::four_bytes);
    EXPECT_EQ(first_cluster(entry, cluster_width::four_bytes), 0x0abc'def0U);
}

time_point at(year_month_day date, nanoseconds of_day) {
    return time_point_cast<system_clock::duration>(sys_days(date) + of_day);
}

TEST(timestamp, times_are_kept_to_ten_milliseconds_rounded_down) {
    const time_point when = at(2026y / 11 / 21, 22h + 13min + 47s + 129ms);
    const packed_time packed = pack(when, time_zone::utc());
    EXPECT_EQ(packed.date, 46U << 9 | 11U << 5 | 21U);
    EXPECT_EQ(packed.time, 22U << 11 | 13U << 5 | 23U);
    EXPECT_EQ(packed.hundredths, 112U);
    EXPECT_EQ(unpack(packed, time_zone::utc()), when - 9ms);
}

TEST(timestamp, a_random_time_decodes_to_less_than_ten_milliseconds_earlier) {
    seeded_random random(5);
    const time_zone zone = time_zone::fixed(-210min);
    for (int i = 0; i < 20'000; ++i) {
        const time_point when =
            at(1981y / 1 / 1, milliseconds(random.below(125ULL * 365 * 24 * 3600 * 1000)));
        const packed_time packed = pack(when, zone);
        const time_point back = unpack(packed, zone);
        ASSERT_LE(back, when);
        ASSERT_LT(when - back, 10ms);
        ASSERT_EQ(pack(back, zone), packed);
    }
}

TEST(timestamp, out_of_range_becomes_the_nearest_bound) {
    const time_zone utc = time_zone::utc();
    EXPECT_EQ(unpack(pack(at(1970y / 1 / 1, 0s), utc), utc), at(1980y / 1 / 1, 0s));
    EXPECT_EQ(unpack(pack(at(2200y / 1 / 1, 0s), utc), utc), at(2107y / 12 / 31, 24h - 10ms));
}

TEST(timestamp, any_bits_decode_to_a_time) {
    const time_zone utc = time_zone::utc();
    EXPECT_EQ(unpack({}, utc), time_point());
    EXPECT_EQ(unpack({.date = 13U << 5 | 1U}, utc), time_point()) << "month 13";
    EXPECT_EQ(unpack({.date = 2U << 5 | 30U}, utc), time_point()) << "the 30th of February";
    EXPECT_EQ(unpack({.date = 1U << 5 | 1U, .time = 0xffff, .hundredths = 255}, utc),
              at(1980y / 1 / 1, 23h + 59min + 59s + 990ms));
}

// Sets the zone of the host while it exists.
class host_zone {
public:
    explicit host_zone(const char* name) {
        if (const char* const before = std::getenv("TZ")) before_ = before;
        setenv("TZ", name, 1);
        tzset();
    }
    host_zone(const host_zone&) = delete;
    host_zone& operator=(const host_zone&) = delete;
    ~host_zone() {
        before_ ? setenv("TZ", before_->c_str(), 1) : unsetenv("TZ");
        tzset();
    }

private:
    std::optional<std::string> before_;
};

TEST(timestamp, the_zone_of_the_host_has_daylight_saving_time) {
    const host_zone zone("CET-1CEST,M3.5.0,M10.5.0/3");
    const time_zone host = time_zone::host();
    const time_point winter = at(2026y / 1 / 15, 12h);
    const time_point summer = at(2026y / 7 / 15, 12h);
    EXPECT_EQ(pack(winter, host).time, 13U << 11);
    EXPECT_EQ(pack(summer, host).time, 14U << 11);
    EXPECT_EQ(unpack(pack(winter, host), host), winter);
    EXPECT_EQ(unpack(pack(summer, host), host), summer);
}

TEST(timestamp, a_remembered_zone_agrees_with_the_zone_at_all_times) {
    for (const char* const name : {"CET-1CEST,M3.5.0,M10.5.0/3", "NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01",
                                   "IST-5:30", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "UTC"}) {
        SCOPED_TRACE(name);
        const host_zone zone(name);
        const time_zone host = time_zone::host();
        const remembered_zone remembered(host);
        // Two passes, because the second one reads cached values. Every 37 minutes of two years,
        // and some days of all others.
        for (int pass = 0; pass != 2; ++pass) {
            for (auto shown = std::chrono::local_seconds(std::chrono::local_days(2025y / 1 / 1));
                 shown < std::chrono::local_days(2027y / 1 / 1); shown += 37min)
                ASSERT_EQ(remembered.to_utc(shown), host.to_utc(shown));
            for (auto shown = std::chrono::local_seconds(std::chrono::local_days(1979y / 12 / 1));
                 shown < std::chrono::local_days(2109y / 1 / 1); shown += 173h)
                ASSERT_EQ(remembered.to_utc(shown), host.to_utc(shown));
        }
    }
}

}  // namespace
}  // namespace sluice::fat

#include "sluice/vfs/snapshot/snapshot_pattern.hpp"

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"

namespace sluice::vfs {
namespace {

using std::chrono::seconds;
using namespace std::chrono_literals;

constexpr snapshot_time noon = std::chrono::sys_days(2026y / 11 / 28) + 12h + 34min;

snapshot_pattern pattern(std::string_view text) {
    const auto parsed = snapshot_pattern::parse(text);
    EXPECT_TRUE(parsed) << text << ": " << parsed.error();
    return *parsed;
}
std::string problem_of(std::string_view text) {
    const auto parsed = snapshot_pattern::parse(text);
    return parsed ? "" : parsed.error();
}

TEST(snapshot_pattern, divides_a_path_into_directory_name_and_subpath) {
    const auto nested = pattern("/srv/.snapshots/%Y-%m-%d_%H%M/projects//a/");
    EXPECT_EQ(nested.directory(), "/srv/.snapshots");
    EXPECT_EQ(nested.subpath(), "projects/a");
    EXPECT_TRUE(nested.is_absolute());
    EXPECT_EQ(pattern("%s").directory(), "");
    EXPECT_EQ(pattern("/%s").directory(), "/");
    EXPECT_EQ(pattern("./100%%/%s/50%%").directory(), "100%");
    EXPECT_EQ(pattern("./100%%/%s/50%%").subpath(), "50%");
    EXPECT_FALSE(pattern(".zfs/snapshot/auto-%Y-%m-%d").is_absolute());
}

TEST(snapshot_pattern, finds_the_time_of_a_name_and_the_name_of_a_time) {
    const auto minutes = pattern("x/%Y-%m-%d_%H%M");
    EXPECT_EQ(minutes.time_of("2026-11-28_1234"), noon);
    EXPECT_EQ(minutes.name_of(noon), "2026-11-28_1234");
    EXPECT_EQ(minutes.name_of(noon + 1s), std::nullopt) << "the name has no seconds";
    EXPECT_EQ(minutes.round(noon + 59s), noon);
    EXPECT_EQ(pattern("a%%%H.%d%m%Y-").name_of(noon - 34min), "a%12.28112026-");
    EXPECT_EQ(pattern("%s").time_of("0"), snapshot_time{});
    EXPECT_EQ(pattern("daily-%s").name_of(noon), "daily-1795869240");
    EXPECT_EQ(pattern("@GMT-%Y.%m.%d-%H.%M.%S").name_of(noon + 56s), "@GMT-2026.11.28-12.34.56");
}

TEST(snapshot_pattern, ignores_names_with_invalid_dates) {
    const auto days = pattern("%Y-%m-%d");
    for (const char* const name :
         {"", "2026", "2026-1-1", "2026-13-01", "2026-00-01", "2026-02-30", "2027-02-29", "1969-12-31",
          "2026-01-01 ", " 2026-01-01", "2026-01-010", "+026-01-01", "2026-01-0\xc2\xb2", "lost+found"})
        EXPECT_EQ(days.time_of(name), std::nullopt) << name;
    EXPECT_TRUE(days.time_of("2028-02-29"));
    EXPECT_EQ(pattern("%Y%m%d-%H%M%S").time_of("20260101-240000"), std::nullopt);
    EXPECT_EQ(pattern("%Y%m%d-%H%M%S").time_of("20260101-235960"), std::nullopt);
    for (const char* const number : {"", "-1", "01", "1x", "999999999999", "18446744073709551616"})
        EXPECT_EQ(pattern("%s").time_of(number), std::nullopt) << number;
}

TEST(snapshot_pattern, rejects_patterns_that_do_not_determine_one_name) {
    EXPECT_EQ(problem_of("%Y/%m-%d"), "only one component may contain conversions");
    EXPECT_EQ(problem_of("/srv"), "a component must contain the time, as in %Y-%m-%d_%H%M");
    EXPECT_EQ(problem_of(""), "a component must contain the time, as in %Y-%m-%d_%H%M");
    EXPECT_EQ(problem_of("%Y-%j"), "unknown conversion '%j'; use %Y, %m, %d, %H, %M, %S, %s, and %%");
    EXPECT_EQ(problem_of("%s%"), "a '%' needs a conversion after it; write %% for a percent sign");
    EXPECT_EQ(problem_of("%Y%Y"), "'%Y' may occur only once");
    EXPECT_EQ(problem_of("%Y-%m"), "the date must be complete: %Y, %m, and %d, or %s");
    EXPECT_EQ(problem_of("%Y%m%d%M"), "%M needs %H");
    EXPECT_EQ(problem_of("%Y%m%d%H%S"), "%S needs %M");
    EXPECT_EQ(problem_of("%s%Y"), "%s must be the only conversion");
    EXPECT_EQ(problem_of("%s0"), "no digit may follow %s");
    for (const char* const up : {"%s/../x", "../%s", "a/../%s", "/srv/../%s"})
        EXPECT_EQ(problem_of(up), "'..' is not allowed; use an absolute path") << up;
    EXPECT_EQ(problem_of(std::string_view("%s\0", 3)), "a path has no zero byte");
    EXPECT_EQ(problem_of(std::string(250, 'x') + "%s"), "a name may have at most 255 bytes");
}

TEST(snapshot_pattern, each_time_has_one_name) {
    seeded_random random(1);
    for (const char* const text : {"%Y%m%d%H%M%S", "%s", "x%Sy%Mz%H%d%m%Y", "%%%Y-%m-%d_%H:%M:%S%%"}) {
        const auto tested = pattern(text);
        for (int i = 0; i != 1000; ++i) {
            const snapshot_time when(seconds(static_cast<std::int64_t>(random.below(253'402'300'800))));
            const auto name = tested.name_of(when);
            ASSERT_TRUE(name);
            EXPECT_EQ(tested.time_of(*name), when) << *name;
        }
        EXPECT_EQ(tested.name_of(snapshot_time(seconds(-1))), std::nullopt);
        EXPECT_EQ(tested.name_of(snapshot_time(seconds(253'402'300'800))), std::nullopt);
    }
}

}  // namespace
}  // namespace sluice::vfs

#include "sluice/cli/smb/sync_plan.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using kind = sync_entry::kind;
constexpr sync_rules removing{.removes = true, .ignores_case = true};
using positions = std::vector<std::size_t>;

TEST(sync_plan, copies_new_and_different_files) {
    const std::vector<sync_entry> source{{.path = "d", .is = kind::directory},
                                         {.path = "d/new", .bytes = 1},
                                         {.path = "size", .bytes = 2, .modified = 5},
                                         {.path = "time", .bytes = 1, .modified = 6},
                                         {.path = "same", .bytes = 1, .modified = 5}};
    const std::vector<sync_entry> target{{.path = "size", .bytes = 1, .modified = 5},
                                         {.path = "time", .bytes = 1, .modified = 5},
                                         {.path = "same", .bytes = 1, .modified = 5},
                                         {.path = "old", .bytes = 1}};
    const sync_plan plan = plan_sync(source, target, {});
    EXPECT_EQ(plan.directories, positions{0});
    EXPECT_EQ(plan.files, (positions{1, 2, 3}));
    EXPECT_EQ(plan.same, positions{4});
    EXPECT_TRUE(plan.removals.empty()) << "without --delete";
    EXPECT_EQ(plan_sync(source, target, removing).removals, positions{3});
}

TEST(sync_plan, removes_contents_before_their_directory) {
    const std::vector<sync_entry> source{{.path = "a"}};
    const std::vector<sync_entry> target{
        {.path = "a"}, {.path = "d", .is = kind::directory}, {.path = "d/x"}, {.path = "d/y"}};
    EXPECT_EQ(plan_sync(source, target, removing).removals, (positions{3, 2, 1}));
}

TEST(sync_plan, removes_nothing_if_the_trees_have_no_name_in_common) {
    const std::vector<sync_entry> target{{.path = "a"}};
    const sync_plan of_empty = plan_sync({}, target, removing);
    EXPECT_TRUE(of_empty.removals.empty());
    EXPECT_TRUE(of_empty.no_removal.contains("the source is empty"));
    const sync_plan of_other = plan_sync({{.path = "b"}}, target, removing);
    EXPECT_TRUE(of_other.removals.empty());
    EXPECT_FALSE(of_other.no_removal.empty());
    EXPECT_TRUE(plan_sync({{.path = "b"}}, {}, removing).no_removal.empty());
}

TEST(sync_plan, keeps_a_name_that_differs_only_in_case) {
    const std::vector<sync_entry> source{{.path = "Photo"}, {.path = "x"}};
    const std::vector<sync_entry> target{{.path = "photo"}, {.path = "x"}};
    EXPECT_TRUE(plan_sync(source, target, removing).removals.empty());
    EXPECT_TRUE(plan_sync(source, target, {.removes = true}).removals.empty());
}

TEST(sync_plan, skips_the_second_of_two_names_that_differ_only_in_case) {
    const std::vector<sync_entry> source{{.path = "A"},
                                         {.path = "D", .is = kind::directory},
                                         {.path = "a"},
                                         {.path = "d", .is = kind::directory},
                                         {.path = "d/f"}};
    const sync_plan plan = plan_sync(source, {}, removing);
    EXPECT_EQ(plan.files, positions{0});
    EXPECT_EQ(plan.directories, positions{1});
    ASSERT_EQ(plan.skipped.size(), 2u) << "the contents of a skipped directory are not reported";
    EXPECT_EQ(plan_sync(source, {}, {}).skipped.size(), 0u);
}

TEST(sync_plan, never_replaces_or_removes_an_object_of_another_kind) {
    const std::vector<sync_entry> source{
        {.path = "a"}, {.path = "b", .is = kind::directory}, {.path = "b/c"}};
    const std::vector<sync_entry> target{
        {.path = "a", .is = kind::directory}, {.path = "a/x"}, {.path = "b", .is = kind::other}};
    const sync_plan plan = plan_sync(source, target, removing);
    EXPECT_TRUE(plan.files.empty());
    EXPECT_EQ(plan.skipped.size(), 2u);
    EXPECT_TRUE(plan.removals.empty()) << "a/x is in a directory that was skipped";
}

TEST(sync_plan, keeps_a_target_whose_source_was_skipped) {
    const std::vector<sync_entry> source{{.path = "link", .is = kind::other}, {.path = "x"}};
    const std::vector<sync_entry> target{{.path = "link"}, {.path = "x"}};
    const sync_plan plan = plan_sync(source, target, removing);
    EXPECT_TRUE(plan.removals.empty());
    EXPECT_EQ(plan.skipped.size(), 1u);
}

TEST(sync_plan, keeps_partial_files_and_their_directories) {
    const std::string part = ".sluice-0123456789abcdef0123456789abcdef.part";
    const std::vector<sync_entry> target{
        {.path = "x"}, {.path = "d", .is = kind::directory}, {.path = "d/" + part}};
    EXPECT_TRUE(plan_sync({{.path = "x"}}, target, removing).removals.empty());
}

TEST(sync_plan, times_are_the_same_if_one_system_has_whole_seconds) {
    constexpr std::uint64_t second = 10'000'000;
    EXPECT_TRUE(is_same_time(5, 5));
    EXPECT_FALSE(is_same_time(second + 5, second + 6));
    EXPECT_TRUE(is_same_time(3 * second + 5, 2 * second)) << "FAT stores even seconds";
    EXPECT_FALSE(is_same_time(4 * second + 5, 2 * second));
    EXPECT_TRUE(is_same_time(3 * second, 2 * second)) << "a source in whole seconds, a copy on FAT";
    EXPECT_FALSE(is_same_time(4 * second, 2 * second));
    constexpr std::uint64_t ms = second / 1000;
    EXPECT_TRUE(is_same_time(second + 10 * ms, second + 13 * ms)) << "exFAT stores units of 10 ms";
    EXPECT_FALSE(is_same_time(second + 10 * ms, second + 20 * ms));
    EXPECT_FALSE(is_same_time(second + 11 * ms, second + 13 * ms)) << "both are exact";
}

}  // namespace
}  // namespace sluice::cli

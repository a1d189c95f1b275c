#include "sluice/vfs/host/name/directory_short_names.hpp"

#include <gmock/gmock.h>

#include <set>

namespace sluice::vfs {
namespace {

using kind = short_name_record::kind;
using entry = short_name_record::entry;
using testing::IsEmpty;

time_point born_at_once(const std::string&) {
    return {};
}

directory_short_names made_of(std::vector<std::string> names, const short_name_record& record = {},
                              const directory_short_names* before = nullptr) {
    return directory_short_names(std::move(names), record, before, born_at_once);
}

std::vector<std::string> numbered(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t number = 0; number != count; ++number)
        names.push_back("A long name " + std::to_string(number) + ".txt");
    return names;
}

TEST(directory_short_names, find_a_file_by_its_short_name) {
    const auto names = made_of({"A long name.txt", "SHORT.TXT", "another"});
    EXPECT_EQ(names.of("A long name.txt").view(), "ALONGN~1.TXT");
    EXPECT_EQ(names.find(short_name("alongn~1.txt")), "A long name.txt");
    EXPECT_TRUE(names.of("SHORT.TXT").empty());
    EXPECT_TRUE(names.of("another").empty());
    EXPECT_TRUE(names.of("missing file").empty());
    EXPECT_EQ(names.find(short_name("ANOTHER")), "another");
    EXPECT_EQ(names.find(short_name("NONE")), "");
    EXPECT_TRUE(names.has("another"));
    EXPECT_FALSE(names.has("Another"));
    EXPECT_THAT(names.record().entries, IsEmpty());
}

TEST(directory_short_names, do_not_equal_the_name_of_another_file) {
    const auto names = made_of({"A long name.txt", "alongn~1.txt"});
    EXPECT_EQ(names.of("A long name.txt").view(), "ALONGN~2.TXT");
    EXPECT_EQ(names.find(short_name("ALONGN~1.TXT")), "alongn~1.txt");
}

TEST(directory_short_names, are_chosen_first_by_the_oldest_file) {
    const auto born = [](const std::string& name) {
        return time_point(std::chrono::seconds(name == "A long name 2.txt" ? 1 : 2));
    };
    const directory_short_names names(numbered(3), {}, nullptr, born);
    EXPECT_EQ(names.of("A long name 2.txt").view(), "ALONGN~1.TXT");
    EXPECT_EQ(names.of("A long name 0.txt").view(), "ALONGN~2.TXT");
    EXPECT_EQ(names.of("A long name 1.txt").view(), "ALONGN~3.TXT");
}

TEST(directory_short_names, remain_with_the_record_when_other_files_come_and_go) {
    const auto first = made_of({"A long name b", "A long name c"});
    ASSERT_EQ(first.of("A long name c").view(), "ALONGN~2");
    const auto later = made_of({"A long name a", "A long name c"}, first.record());
    EXPECT_EQ(later.of("A long name c").view(), "ALONGN~2");
    EXPECT_EQ(later.of("A long name a").view(), "ALONGN~1");
    const auto last = made_of({"A long name c"}, later.record());
    EXPECT_EQ(last.of("A long name c").view(), "ALONGN~2");
}

TEST(directory_short_names, remain_without_a_record_in_memory) {
    const auto first = made_of({"A long name b"});
    const auto later = made_of({"A long name a", "A long name b"}, {}, &first);
    EXPECT_EQ(later.of("A long name b").view(), "ALONGN~1");
    EXPECT_EQ(later.of("A long name a").view(), "ALONGN~2");
}

TEST(directory_short_names, have_a_hash_after_four_files_and_keep_it) {
    const auto first = made_of(numbered(8));
    EXPECT_EQ(first.of("A long name 3.txt").view(), "ALONGN~4.TXT");
    const std::string fifth(first.of("A long name 4.txt").view());
    EXPECT_EQ(fifth.substr(0, 2) + fifth.substr(6), "AL~1.TXT");
    // The hash stays when one of the first four goes, and new files have one, too.
    const auto later =
        made_of({"A long name 4.txt", "A long name 7.txt", "A long name 9.txt"}, first.record());
    EXPECT_EQ(later.of("A long name 4.txt").view(), fifth);
    EXPECT_EQ(later.of("A long name 7.txt"), first.of("A long name 7.txt"));
    EXPECT_NE(later.of("A long name 9.txt").view(), "ALONGN~1.TXT");
    EXPECT_EQ(made_of(numbered(8), first.record()).record().entries, first.record().entries);
}

TEST(directory_short_names, are_unique_for_many_files) {
    const auto names = made_of(numbered(20'000));
    std::set<std::string> seen;
    for (const std::string& each : numbered(20'000)) {
        const short_name own = names.of(each);
        EXPECT_FALSE(own.empty()) << each;
        EXPECT_TRUE(seen.insert(std::string(own.view())).second) << each;
        EXPECT_EQ(names.find(own), each);
    }
}

TEST(directory_short_names, are_those_that_clients_have_chosen) {
    const short_name_record record{
        .entries = {
            entry{.number = record_number("A long name"), .what = kind::chosen, .name = short_name("CHOSEN")},
            entry{.number = record_number("Removed name"), .what = kind::chosen},
            entry{.number = record_number("SHORT"), .what = kind::chosen, .name = short_name("SHORTER")},
            entry{
                .number = record_number("Conflicting"), .what = kind::chosen, .name = short_name("SHORT")}}};
    const auto names = made_of({"A long name", "Removed name", "SHORT", "Conflicting"}, record);
    EXPECT_EQ(names.of("A long name").view(), "CHOSEN");
    EXPECT_EQ(names.find(short_name("chosen")), "A long name");
    EXPECT_EQ(names.find(short_name("ALONGN~1")), "");
    EXPECT_TRUE(names.of("Removed name").empty());
    EXPECT_EQ(names.of("SHORT").view(), "SHORTER");
    EXPECT_EQ(names.find(short_name("SHORT")), "SHORT");
    EXPECT_EQ(names.of("Conflicting").view(), "CONFLI~1");
    EXPECT_EQ(made_of({"A long name", "Removed name"}, names.record()).of("A long name").view(), "CHOSEN");
}

TEST(directory_short_names, forget_the_choice_for_a_file_that_is_gone) {
    const short_name_record record{
        .entries = {entry{
            .number = record_number("A long name"), .what = kind::chosen, .name = short_name("CHOSEN")}}};
    EXPECT_THAT(made_of({"Another"}, record).record().entries, IsEmpty());
    EXPECT_EQ(made_of({"Another long name"}, record, nullptr).of("Another long name").view(), "ANOTHE~1");
}

}  // namespace
}  // namespace sluice::vfs

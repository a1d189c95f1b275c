#include "sluice/cli/fat/legal_name.hpp"

#include <gtest/gtest.h>

#include <set>

#include "sluice/base/random.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::cli {
namespace {

bool is_legal(std::string_view name) {
    return vfs::check_name(name) and not name.ends_with('.') and not name.ends_with(' ');
}

TEST(legal_name, names_that_fat_can_store_have_no_problem) {
    for (const char* const name :
         {"a", "A long name.txt", "naïve \U0001f600", "con", ".hidden", "100%", "a+b,c;d=[e]"})
        EXPECT_EQ(fat_name_problem(name), std::nullopt) << name;
}

TEST(legal_name, a_problem_names_the_character_or_the_rule) {
    EXPECT_EQ(fat_name_problem("a:b"), "':' is not allowed");
    EXPECT_EQ(fat_name_problem("a\nb"), "the control character 0x0a is not allowed");
    EXPECT_EQ(fat_name_problem("a\xff"), "the name is not UTF-8");
    EXPECT_EQ(fat_name_problem("a."), "a name cannot end with a dot or a space");
    EXPECT_EQ(fat_name_problem(std::string(300, 'x')),
              "the name has 300 UTF-16 units, at most 255 are allowed");
    EXPECT_EQ(fat_name_problem(""), "the name is not allowed");
}

TEST(legal_name, illegal_characters_become_percent_and_their_bytes) {
    EXPECT_EQ(legal_fat_name("a:b?.txt"), "a%3Ab%3F.txt");
    EXPECT_EQ(legal_fat_name("50% <or more>."), "50%25 %3Cor more%3E%2E");
    EXPECT_EQ(legal_fat_name("bytes \xff\xfe"), "bytes %FF%FE");
    EXPECT_EQ(legal_fat_name("end "), "end%20");
}

TEST(legal_name, a_name_that_is_too_long_keeps_its_extension_and_gets_a_checksum) {
    const std::string made = legal_fat_name(std::string(251, 'x') + ":y.jpeg");
    EXPECT_EQ(made.size(), 255U);
    EXPECT_TRUE(made.starts_with("xxxx"));
    EXPECT_TRUE(made.ends_with(".jpeg"));
    EXPECT_EQ(made[255 - 5 - 9], '~');
    EXPECT_NE(made, legal_fat_name(std::string(251, 'x') + ":z.jpeg"));
}

TEST(legal_name, every_name_of_the_host_becomes_a_legal_one_of_its_own) {
    seeded_random random(7);
    constexpr std::string_view pieces[] = {"a",
                                           ":",
                                           "?",
                                           "%",
                                           "3A",
                                           ".",
                                           " ",
                                           "\x01",
                                           "\xff",
                                           "\xc3\xa9",
                                           "\xed\xa0\x80",
                                           "\xed\xb0\x80",
                                           "\xef\x80\xa9",
                                           "\U0001f600"};
    std::set<std::string> names;
    std::set<std::string> results;
    for (int i = 0; i != 5000; ++i) {
        std::string name;
        for (std::uint64_t left = 1 + random.below(6); left != 0; --left)
            name += pieces[random.below(std::size(pieces))];
        if (not fat_name_problem(name) or not names.insert(name).second) continue;
        const std::string made = legal_fat_name(name);
        EXPECT_TRUE(is_legal(made)) << made;
        EXPECT_TRUE(results.insert(made).second) << made;
    }
    EXPECT_GT(results.size(), 1000U);
}

TEST(legal_name, the_problems_are_those_of_the_volume) {
    seeded_random random(8);
    for (int i = 0; i != 20'000; ++i) {
        std::string name;
        for (std::uint64_t left = random.below(5); left != 0; --left)
            name += static_cast<char>(random.below(256));
        EXPECT_EQ(not fat_name_problem(name), is_legal(name)) << name;
    }
}

TEST(legal_name, a_number_goes_before_the_extension_and_within_the_limit) {
    EXPECT_EQ(numbered_fat_name("a%3Ab.txt", 2), "a%3Ab~2.txt");
    EXPECT_EQ(numbered_fat_name("plain", 13), "plain~13");
    const std::string made = numbered_fat_name(std::string(250, 'x') + ".txt", 100);
    EXPECT_EQ(made.size(), 255U);
    EXPECT_TRUE(made.ends_with("x~100.txt"));
}

TEST(legal_name, generated_short_names_are_recognised) {
    EXPECT_TRUE(may_be_generated_short_name("LONGNA~1.TXT"));
    EXPECT_TRUE(may_be_generated_short_name("longna~1.txt"));
    EXPECT_FALSE(may_be_generated_short_name("LONGNAME.TXT"));
    EXPECT_FALSE(may_be_generated_short_name("longer than ~1.txt"));
}

}  // namespace
}  // namespace sluice::cli

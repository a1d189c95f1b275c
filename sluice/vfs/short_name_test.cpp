#include "sluice/vfs/short_name.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sluice::vfs {
namespace {

TEST(short_name, has_up_to_eight_characters_and_three_after_a_dot) {
    for (const char* name : {"A", "readme.txt", "EIGHT678.123", "a-b_c~1", "$x.{y}"})
        EXPECT_TRUE(is_short_name(name)) << name;
    for (const char* name :
         {"", ".", ".a", "a.", "a.b.c", "ninechars", "a.html", "a b", "a+b", "a[1]", "\xc3\xa4"})
        EXPECT_FALSE(is_short_name(name)) << name;
}

TEST(short_name, is_upper_case) {
    EXPECT_EQ(short_name("ReadMe.txt").view(), "README.TXT");
    EXPECT_TRUE(short_name().empty());
    EXPECT_EQ(short_name("a"), short_name("A"));
}

TEST(short_name_for_a_long_one, begins_with_its_first_six_characters) {
    EXPECT_EQ(short_name_for("TextFile.Mine.txt", 0).view(), "TEXTFI~1.TXT");
    EXPECT_EQ(short_name_for("TextFile.Mine.txt", 3).view(), "TEXTFI~4.TXT");
    EXPECT_EQ(short_name_for("a long directory", 0).view(), "ALONGD~1");
    EXPECT_EQ(short_name_for("page.html", 0).view(), "PAGE~1.HTM");
}

TEST(short_name_for_a_long_one, replaces_characters_that_it_cannot_have_and_drops_spaces_and_dots) {
    EXPECT_EQ(short_name_for("a+b=c.t,t", 0).view(), "A_B_C~1.T_T");
    EXPECT_EQ(short_name_for("Übung 1.txt", 0).view(), "_BUNG1~1.TXT");
    EXPECT_EQ(short_name_for(".gitignore", 0).view(), "GITIGN~1");
    EXPECT_EQ(short_name_for("..x.y", 0).view(), "X~1.Y");
    EXPECT_EQ(short_name_for("x.", 0).view(), "X~1");
    EXPECT_EQ(short_name_for(" . ", 0).view(), "_~1");
    EXPECT_EQ(short_name_for("...", 0).view(), "_~1");
}

TEST(short_name_for_a_long_one, has_a_hash_after_four_attempts) {
    const std::string fifth(short_name_for("TextFile.Mine.txt", 4).view());
    EXPECT_TRUE(fifth.starts_with("TE") and fifth.ends_with("~1.TXT")) << fifth;
    EXPECT_EQ(fifth.size(), 12U);
    EXPECT_NE(short_name_for("TextFile.Yours.txt", 4).view(), fifth);
    const std::string last(short_name_for("TextFile.Mine.txt", 12).view());
    EXPECT_EQ(last, fifth.substr(0, 7) + "9.TXT");
}

TEST(short_name_for_a_long_one, is_another_one_in_nearly_each_attempt) {
    for (const char* name : {"TextFile.Mine.txt", ".a long name", "日本語の名前.txt", " "}) {
        std::set<std::string> seen;
        for (std::uint32_t attempt = 0; attempt != short_name_attempts_max; ++attempt) {
            const short_name found = short_name_for(name, attempt);
            EXPECT_TRUE(is_short_name(found.view())) << found.view();
            EXPECT_EQ(found, short_name_for(name, attempt));
            seen.emplace(found.view());
        }
        EXPECT_GT(seen.size(), short_name_attempts_max - 10) << name;
    }
}

TEST(short_name_for_a_long_one, has_a_form_that_other_names_do_not_have) {
    for (const char* name : {"TextFile.Mine.txt", ".a long name", "日本語の名前.txt", " "})
        for (std::uint32_t attempt = 0; attempt != short_name_attempts_max; ++attempt)
            EXPECT_TRUE(may_be_generated(short_name_for(name, attempt).view())) << name << ' ' << attempt;
    EXPECT_TRUE(may_be_generated("longna~1.txt"));
    EXPECT_TRUE(may_be_generated("loab12~9"));
    for (const char* name :
         {"", "LONGNAME.TXT", "~1", "A~0", "A~5", "LONGNA~9.TXT", "A~1B", "A.B~1", "A long name~1"})
        EXPECT_FALSE(may_be_generated(name)) << name;
}

}  // namespace
}  // namespace sluice::vfs

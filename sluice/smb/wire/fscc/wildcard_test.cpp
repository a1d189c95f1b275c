#include "sluice/smb/wire/fscc/wildcard.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::smb::wire {
namespace {

using namespace std::string_view_literals;

TEST(wildcard, star_takes_any_characters_and_question_mark_exactly_one) {
    EXPECT_TRUE(wildcard_matches("*"sv, ""sv));
    EXPECT_TRUE(wildcard_matches("*"sv, "a.b.c"sv));
    EXPECT_TRUE(wildcard_matches("a*c"sv, "abcbc"sv));
    EXPECT_FALSE(wildcard_matches("a*c"sv, "abcb"sv));
    EXPECT_TRUE(wildcard_matches("?"sv, "😀"sv));
    EXPECT_FALSE(wildcard_matches("?"sv, ""sv));
    EXPECT_TRUE(wildcard_matches("*.txt"sv, "a.b.TXT"sv));
    EXPECT_FALSE(wildcard_matches("*.*"sv, "nodot"sv)) << "only < and \" have the DOS meaning";
}

TEST(wildcard, without_a_pattern_matches_only_the_empty_name) {
    EXPECT_TRUE(wildcard_matches(""sv, ""sv));
    EXPECT_FALSE(wildcard_matches(""sv, "a"sv));
}

TEST(wildcard, dos_star_never_takes_the_last_dot) {
    EXPECT_TRUE(wildcard_matches("<.txt"sv, "a.b.txt"sv));
    EXPECT_TRUE(wildcard_matches("<"sv, "nodot"sv));
    EXPECT_FALSE(wildcard_matches("<"sv, "a.b"sv));
    EXPECT_TRUE(wildcard_matches("<.<"sv, "a.b.c"sv));
    EXPECT_FALSE(wildcard_matches("<b"sv, "a.b"sv));
    EXPECT_TRUE(wildcard_matches("*<b"sv, "a.b"sv)) << "the star crosses it";
    EXPECT_TRUE(wildcard_matches("*a<b<c"sv, "ab.axbxc"sv));
    EXPECT_FALSE(wildcard_matches("<a<b"sv, "xa.b"sv));
}

TEST(wildcard, dos_question_marks_take_nothing_before_a_dot_and_at_the_end) {
    EXPECT_TRUE(wildcard_matches(">>>>>>>>.>>>"sv, "readme.md"sv));
    EXPECT_FALSE(wildcard_matches(">>>>>>>>.>>>"sv, "readme.text"sv));
    EXPECT_TRUE(wildcard_matches("a>>>"sv, "a"sv));
    EXPECT_FALSE(wildcard_matches(">"sv, ".a"sv));
}

TEST(wildcard, dos_dot_takes_a_dot_or_nothing_at_the_end) {
    EXPECT_TRUE(wildcard_matches("<\"*"sv, "nodot"sv)) << "what *.* becomes";
    EXPECT_TRUE(wildcard_matches("<\"*"sv, "a.b"sv));
    EXPECT_TRUE(wildcard_matches("name\""sv, "name"sv));
    EXPECT_TRUE(wildcard_matches("name\""sv, "name."sv));
    EXPECT_FALSE(wildcard_matches("name\"x"sv, "namex"sv));
}

TEST(wildcard, ignores_case_by_default) {
    EXPECT_TRUE(wildcard_matches("ÄB*"sv, "äbc"sv));
    EXPECT_TRUE(wildcard_matches(u"ÄB*"sv, u"äbc"sv));
    EXPECT_FALSE(wildcard_matches("ÄB*"sv, "äbc"sv, name_case::significant));
    EXPECT_TRUE(wildcard_matches("äb*"sv, "äbc"sv, name_case::significant));
}

TEST(wildcard, counts_a_surrogate_pair_as_one_character) {
    EXPECT_TRUE(wildcard_matches(u"a?b"sv, u"a😀b"sv));
    EXPECT_FALSE(wildcard_matches(u"a??b"sv, u"a😀b"sv));
}

TEST(wildcard, many_stars_on_a_long_name_do_not_backtrack) {
    std::string pattern;
    for (int i = 0; i < 200; ++i)
        pattern += "*a";
    const std::string name(name_characters_max, 'a');
    EXPECT_TRUE(wildcard_matches(std::string_view(pattern), std::string_view(name)));
    EXPECT_FALSE(wildcard_matches(std::string_view(pattern + "b"), std::string_view(name)))
        << "a matcher that backtracks into every star would not return";
}

TEST(wildcard, a_name_longer_than_any_file_has_matches_nothing) {
    const std::string longest(name_characters_max, 'a');
    EXPECT_TRUE(wildcard_matches("*"sv, std::string_view(longest)));
    EXPECT_FALSE(wildcard_matches("*"sv, std::string_view(longest + "a")));
}

TEST(wildcard, has_wildcard_distinguishes_patterns_from_plain_names) {
    for (const std::string_view pattern : {"*"sv, "a?"sv, "<"sv, "a>b"sv, "\""sv})
        EXPECT_TRUE(has_wildcard(pattern));
    EXPECT_FALSE(has_wildcard("plain name.txt"));
}

}  // namespace
}  // namespace sluice::smb::wire

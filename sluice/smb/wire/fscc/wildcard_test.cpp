#include "sluice/smb/wire/fscc/wildcard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sluice::smb::wire {
namespace {

using namespace std::string_view_literals;

// The rules of [MS-FSA] 2.1.4.4, one after the other. Takes exponential time.
bool matches_naively(std::string_view pattern, std::string_view name) {
    if (pattern == "*.*") return !name.empty();
    if (pattern.empty()) return name.empty();
    const char element = pattern.front();
    const std::string_view rest = pattern.substr(1);
    const bool is_at_dot = name.starts_with('.');
    const auto skips_one = [&] { return matches_naively(rest, name.substr(1)); };
    switch (element) {
        case '*':
            return matches_naively(rest, name) or
                   (!name.empty() and matches_naively(pattern, name.substr(1)));
        case '<': {
            const std::size_t last_dot = name.rfind('.');
            const std::size_t most = last_dot == name.npos ? name.size() : last_dot + 1;
            for (std::size_t taken = 0; taken <= most; ++taken)
                if (matches_naively(rest, name.substr(taken))) return true;
            return false;
        }
        case '>':
            if (!name.empty() and !is_at_dot) return skips_one();
            return matches_naively(rest.substr(std::min(rest.size(), rest.find_first_not_of('>'))), name);
        case '"':
            return name.empty() ? matches_naively(rest, name) : is_at_dot and skips_one();
        default:
            return !name.empty() and (element == '?' or element == name.front()) and skips_one();
    }
}

// All strings of these characters, up to a length.
std::vector<std::string> all_strings(std::string_view characters, std::size_t length_max) {
    std::vector<std::string> all{""};
    std::size_t first = 0;
    for (std::size_t length = 0; length != length_max; ++length) {
        const std::size_t last = all.size();
        for (; first != last; ++first)
            for (const char each : characters)
                all.push_back(all[first] + each);
    }
    return all;
}

TEST(wildcard, star_takes_any_characters_and_question_mark_exactly_one) {
    EXPECT_TRUE(wildcard_matches("*"sv, ""sv));
    EXPECT_TRUE(wildcard_matches("*"sv, "a.b.c"sv));
    EXPECT_TRUE(wildcard_matches("a*c"sv, "abcbc"sv));
    EXPECT_FALSE(wildcard_matches("a*c"sv, "abcb"sv));
    EXPECT_TRUE(wildcard_matches("?"sv, "😀"sv));
    EXPECT_FALSE(wildcard_matches("?"sv, ""sv));
    EXPECT_TRUE(wildcard_matches("*.txt"sv, "a.b.TXT"sv));
    EXPECT_FALSE(wildcard_matches("*.?*"sv, "nodot"sv));
}

TEST(wildcard, without_a_pattern_matches_only_the_empty_name) {
    EXPECT_TRUE(wildcard_matches(""sv, ""sv));
    EXPECT_FALSE(wildcard_matches(""sv, "a"sv));
}

TEST(wildcard, star_dot_star_matches_names_without_a_dot) {
    EXPECT_TRUE(wildcard_matches("*.*"sv, "nodot"sv));
    EXPECT_TRUE(wildcard_matches(u"*.*"sv, u"nodot"sv));
    EXPECT_TRUE(wildcard_matches("*.*"sv, "a.b"sv));
    EXPECT_FALSE(wildcard_matches("*.*"sv, ""sv));
}

TEST(wildcard, dos_star_ends_with_the_last_dot) {
    EXPECT_TRUE(wildcard_matches("<.txt"sv, "a.b.txt"sv));
    EXPECT_TRUE(wildcard_matches("<txt"sv, "a.b.txt"sv)) << "it takes the last dot";
    EXPECT_TRUE(wildcard_matches("<"sv, "nodot"sv));
    EXPECT_TRUE(wildcard_matches("<"sv, "a."sv));
    EXPECT_FALSE(wildcard_matches("<"sv, "a.b"sv)) << "it takes nothing after the last dot";
    EXPECT_TRUE(wildcard_matches("<.<"sv, "a.b.c"sv));
    EXPECT_FALSE(wildcard_matches("<c"sv, "a.bc"sv));
    EXPECT_TRUE(wildcard_matches("*<c"sv, "a.bc"sv)) << "the star crosses it";
    EXPECT_TRUE(wildcard_matches("*a<b<c"sv, "ab.axbxc"sv));
    EXPECT_FALSE(wildcard_matches("<a<b"sv, "xa.cb"sv));
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

TEST(wildcard, gives_the_same_answers_as_the_rules_applied_one_by_one) {
    const std::vector<std::string> names = all_strings("ab.", 5);
    // The rule for "*.*" is one of complete patterns, so it must not apply to the rest of another.
    for (const std::string& pattern : all_strings("a.*?<>\"", 4)) {
        if (pattern != "*.*" and pattern.contains("*.*")) continue;
        for (const std::string& name : names)
            ASSERT_EQ(wildcard_matches(std::string_view(pattern), std::string_view(name)),
                      matches_naively(pattern, name))
                << "pattern " << pattern << ", name " << name;
    }
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

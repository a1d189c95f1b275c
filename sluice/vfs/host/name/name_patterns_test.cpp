#include "sluice/vfs/host/name/name_patterns.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sluice/vfs/limits.hpp"

namespace sluice::vfs {
namespace {

name_patterns parsed(std::vector<std::string> texts) {
    return name_patterns::parse(texts).value();
}
std::string problem_of(std::vector<std::string> texts) {
    const auto result = name_patterns::parse(texts);
    return result ? std::string() : result.error();
}

TEST(name_patterns, match_names_in_any_case) {
    const name_patterns some = parsed({"*.exe", "Thumbs.db", "?b", "äx"});
    for (const char* const name : {"a.exe", "A.EXE", ".exe", "a.txt.Exe", "thumbs.DB", "xb", "\u00e9B", "ÄX"})
        EXPECT_TRUE(some.match(name)) << name;
    for (const char* const name : {"a.ex", "a.exe2", "thumbs.db2", "b", "xyb", ""})
        EXPECT_FALSE(some.match(name)) << name;
}

TEST(name_patterns, match_any_component_of_a_path) {
    const name_patterns some = parsed({"private*"});
    EXPECT_TRUE(some.match_component("private/f"));
    EXPECT_TRUE(some.match_component("a/Private files/f"));
    EXPECT_TRUE(some.match_component("a/private"));
    EXPECT_FALSE(some.match_component("a/is private/f"));
    EXPECT_FALSE(some.match_component(""));
}

TEST(name_patterns, have_no_special_characters_but_star_and_question_mark) {
    const name_patterns some = parsed({"[ab]", "x[!", "{c,d}"});
    EXPECT_TRUE(some.match("[AB]"));
    EXPECT_TRUE(some.match("x[!"));
    EXPECT_TRUE(some.match("{c,d}"));
    EXPECT_FALSE(some.match("a"));
    EXPECT_FALSE(some.match("c"));
}

TEST(name_patterns, match_characters_that_clients_see_as_others) {
    const name_patterns some = parsed({"a:*", "x.", "\uf022"});
    EXPECT_TRUE(some.match("A:b"));
    EXPECT_TRUE(some.match("x."));
    EXPECT_TRUE(some.match(":")) << "as clients see it";
    EXPECT_FALSE(some.match("b:"));
}

TEST(name_patterns, with_many_stars_match_a_long_name_in_polynomial_time) {
    std::string stars;
    for (int i = 0; i < 100; ++i)
        stars += "*a";
    EXPECT_FALSE(parsed({stars + "b"}).match(std::string(255, 'a')));
}

TEST(name_patterns, refuse_patterns_that_cannot_match_a_name_or_match_all_of_them) {
    EXPECT_EQ(problem_of({""}), "'': use at least one character");
    EXPECT_NE(problem_of({"a/b"}), "");
    EXPECT_NE(problem_of({"a\\b"}), "");
    EXPECT_NE(problem_of({"a\nb"}), "");
    EXPECT_EQ(problem_of({"ok", "***"}), "'***': it matches every name; add other characters");
    EXPECT_EQ(problem_of({std::string(limits::name_pattern_bytes_max, 'a')}), "");
    EXPECT_NE(problem_of({std::string(limits::name_pattern_bytes_max + 1, 'a')}), "");
    EXPECT_EQ(problem_of(std::vector<std::string>(limits::name_patterns_max, "a")), "");
    EXPECT_EQ(problem_of(std::vector<std::string>(limits::name_patterns_max + 1, "a")),
              "65 patterns; use at most 64");
}

}  // namespace
}  // namespace sluice::vfs

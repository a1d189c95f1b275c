#include "sluice/io/path/glob.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::io {
namespace {

TEST(glob, a_star_matches_any_sequence_even_an_empty_one) {
    EXPECT_TRUE(matches_glob("*", ""));
    EXPECT_TRUE(matches_glob("*.txt", "a.txt"));
    EXPECT_TRUE(matches_glob("*.txt", ".txt"));
    EXPECT_TRUE(matches_glob("a*b*c", "a-b-b-c"));
    EXPECT_FALSE(matches_glob("a*b*c", "a-b-b"));
    EXPECT_FALSE(matches_glob("*.txt", "a.txt~"));
}

TEST(glob, a_question_mark_matches_one_character_of_any_length) {
    EXPECT_TRUE(matches_glob("a?c", "abc"));
    EXPECT_TRUE(matches_glob("a?c",
                             "a\xc3\xa4"
                             "c"));
    EXPECT_FALSE(matches_glob("a?c", "ac"));
    EXPECT_TRUE(matches_glob("a?c",
                             "a\xff"
                             "c"));
}

TEST(glob, a_set_matches_one_byte_of_its_ranges) {
    EXPECT_TRUE(matches_glob("[a-cx]", "b"));
    EXPECT_TRUE(matches_glob("[a-cx]", "x"));
    EXPECT_FALSE(matches_glob("[a-cx]", "d"));
    EXPECT_TRUE(matches_glob("[!a-c]", "d"));
    EXPECT_TRUE(matches_glob("[]]", "]"));
    EXPECT_TRUE(matches_glob("[a-]", "-"));
}

TEST(glob, characters_that_are_not_special_match_themselves) {
    EXPECT_TRUE(matches_glob("\\*", "*"));
    EXPECT_FALSE(matches_glob("\\*", "a"));
    EXPECT_TRUE(matches_glob("[a", "[a"));
    EXPECT_TRUE(matches_glob("a\\", "a\\"));
    EXPECT_FALSE(matches_glob("", "a"));
}

TEST(glob, a_hostile_pattern_costs_no_more_than_the_product_of_the_lengths) {
    std::string pattern;
    for (int i = 0; i < 100; ++i)
        pattern += "*a";
    EXPECT_FALSE(matches_glob(pattern + "b", std::string(255, 'a')));
}

}  // namespace
}  // namespace sluice::io

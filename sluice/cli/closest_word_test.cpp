#include "sluice/cli/closest_word.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

const std::vector<std::string> known{"--read-only", "--read-only-user", "--port",  "--users-file",
                                     "serve",       "status",           "streams", "ls"};

TEST(closest_word, is_the_one_with_the_fewest_changes) {
    EXPECT_EQ(closest_word("--read-onyl", known), "--read-only");
    EXPECT_EQ(closest_word("--readonly", known), "--read-only");
    EXPECT_EQ(closest_word("--read-only-users", known), "--read-only-user");
    EXPECT_EQ(closest_word("--prot", known), "--port");
    EXPECT_EQ(closest_word("sevre", known), "serve");
    EXPECT_EQ(closest_word("stauts", known), "status");
}

TEST(closest_word, counts_no_dashes) {
    EXPECT_EQ(closest_word("-port", known), "--port");
    EXPECT_EQ(closest_word("port", known), "--port");
}

TEST(closest_word, is_none_if_the_words_are_too_different) {
    EXPECT_EQ(closest_word("--bogus", known), std::nullopt);
    EXPECT_EQ(closest_word("l", known), std::nullopt);
    EXPECT_EQ(closest_word("", known), std::nullopt);
    EXPECT_EQ(closest_word("--", known), std::nullopt);
    EXPECT_EQ(closest_word(std::string(1'000'000, 'x'), known), std::nullopt);
    EXPECT_EQ(closest_word("serve", {}), std::nullopt);
}

TEST(closest_word, ends_a_message) {
    EXPECT_EQ(suggestion_for("--prot", known), "; did you mean '--port'?");
    EXPECT_EQ(suggestion_for("--bogus", known), "");
}

}  // namespace
}  // namespace sluice::cli

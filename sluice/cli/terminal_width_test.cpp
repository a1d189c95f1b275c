#include "sluice/cli/terminal_width.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(terminal_width, counts_columns_and_not_bytes) {
    EXPECT_EQ(terminal_width("abc"), 3u);
    EXPECT_EQ(terminal_width("äöü"), 3u);
    EXPECT_EQ(terminal_width("日本"), 4u);
    EXPECT_EQ(terminal_width("e\u0301"), 1u) << "a combining accent has no column";
    EXPECT_EQ(terminal_width("\U0001F600"), 2u);
}

TEST(terminal_width, counts_a_truncated_character_once) {
    EXPECT_EQ(terminal_width("a\xE6\x97"), 2u);
}

TEST(fitted_end, keeps_the_end_of_a_long_text) {
    EXPECT_EQ(fitted_end("abc", 3), "abc");
    EXPECT_EQ(fitted_end("directory/name", 7), "...name");
    EXPECT_EQ(fitted_end("日本語日本語", 8), "...本語");
    EXPECT_EQ(fitted_end("abcdef", 3), "");
}

}  // namespace
}  // namespace sluice::cli

#include "sluice/cli/terminal_text.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(terminal_text, keeps_names_in_every_script) {
    for (const char* const name : {"", "plain name.txt", "Grüße", "日本語", "emoji-\U0001f600", "עברית"})
        EXPECT_EQ(terminal_text(name), name);
}

TEST(terminal_text, replaces_characters_that_control_a_terminal) {
    EXPECT_EQ(terminal_text("a\x1b[2Jb\nc\x7f"), "a?[2Jb?c?");
    EXPECT_EQ(terminal_text("a\xc2\x9b"
                            "31mb"),
              "a?31mb")
        << "U+009B begins a sequence without ESC";
    EXPECT_EQ(terminal_text("line\u2028break"), "line?break");
}

TEST(terminal_text, replaces_characters_that_change_the_direction) {
    EXPECT_EQ(terminal_text("photo\u202Egpj.exe"), "photo?gpj.exe");
    EXPECT_EQ(terminal_text("\u2066x\u2069"), "?x?");
}

TEST(terminal_text, replaces_every_byte_that_is_not_utf8) {
    EXPECT_EQ(terminal_text("a\xff\xfe"
                            "b"),
              "a??b");
    EXPECT_EQ(terminal_text("\xc0\x9b"), "??") << "overlong";
    EXPECT_EQ(terminal_text("\xed\xa0\x80"), "???") << "a surrogate";
    EXPECT_EQ(terminal_text("cut \xe6\x97"), "cut ??");
}

}  // namespace
}  // namespace sluice::cli

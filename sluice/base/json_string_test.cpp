#include "sluice/base/json_string.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(json_string, characters_that_end_a_string_or_move_a_cursor_are_escaped) {
    EXPECT_EQ(json_string("a\"b\\c\n\x7f"), R"("a\"b\\c\u000a\u007f")");
    EXPECT_EQ(json_string(std::string_view("\0\x1f ", 3)), R"("\u0000\u001f ")");
}

TEST(json_string, bytes_that_are_not_utf_8_are_replaced_and_the_rest_stays) {
    EXPECT_EQ(json_string("\xc3\xa9\xff\xf0\x9f\x98\x80"), "\"\xc3\xa9\xef\xbf\xbd\xf0\x9f\x98\x80\"");
    EXPECT_EQ(json_string("\xc0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\"") << "overlong";
    EXPECT_EQ(json_string("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"") << "a surrogate";
    EXPECT_EQ(json_string("\xf4\x90\x80\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"")
        << "above U+10FFFF";
    EXPECT_EQ(json_string("x\xe2\x82"), "\"x\xef\xbf\xbd\xef\xbf\xbd\"") << "truncated";
}

TEST(json_string, characters_that_control_a_terminal_are_escaped) {
    EXPECT_EQ(json_string("a\xc2\x9b[2J"), R"("a\u009b[2J")") << "begins a sequence without ESC";
    EXPECT_EQ(json_string("photo\u202Egpj.exe\u2028"), R"("photo\u202egpj.exe\u2028")");
}

TEST(json_string, is_appended_to_the_existing_text) {
    std::string text = "{";
    append_json_string(text, "");
    EXPECT_EQ(text, "{\"\"");
}

}  // namespace
}  // namespace sluice

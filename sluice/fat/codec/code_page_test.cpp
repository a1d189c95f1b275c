#include "sluice/fat/codec/code_page.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sluice/fat/codec/short_name.hpp"

namespace sluice::fat {
namespace {

short_name_bytes raw(std::string_view text) {
    short_name_bytes bytes;
    bytes.fill(' ');
    std::ranges::copy(text, bytes.begin());
    return bytes;
}

std::string text(const short_name_bytes& bytes) {
    return {bytes.begin(), bytes.end()};
}

TEST(code_page, encodes_every_character_that_it_decodes) {
    for (const code_page page :
         {code_page::ascii, code_page::cp437, code_page::cp850, code_page::cp852, code_page::cp866,
          code_page::cp1252, code_page::cp932, code_page::cp936, code_page::cp949, code_page::cp950}) {
        if (not is_available(page)) continue;
        std::size_t characters = 0;
        for (char32_t point = 0; point <= 0xffff; ++point) {
            const auto made = encode(point, page);
            if (not made) continue;
            ++characters;
            const auto back = decode(std::span(made->bytes).first(made->length), page);
            ASSERT_EQ(char32_t{back.unit}, point) << "page " << static_cast<int>(page);
            ASSERT_EQ(back.length, made->length);
        }
        EXPECT_GE(characters, page == code_page::ascii ? 128U : page < code_page::cp932 ? 250U : 7000U);
    }
}

class japanese : public testing::Test {
protected:
    void SetUp() override {
        if (not is_available(code_page::cp932)) GTEST_SKIP() << "iconv(3) lacks it";
    }
    static std::string shown(std::string_view bytes) { return text_of(raw(bytes), 0, code_page::cp932); }
    static std::string shortened(std::string_view name) {
        return text(numbered(basis_of(name, code_page::cp932), 1));
    }
};

TEST_F(japanese, names_are_read_by_characters_of_one_and_two_bytes) {
    EXPECT_EQ(shown("\x93\xfa\x96\x7b\x8c\xea  TXT"), "日本語.TXT");
    EXPECT_EQ(shown("\xb1\xb2\xb3     \x83\x5c "), "ｱｲｳ.ソ") << "a second byte may look like a backslash";
    EXPECT_EQ(text_of(raw("AB\x83\x5a\x83\x62    "), lower_base, code_page::cp932), "abセッ")
        << "or like a letter, which has no case then";
    EXPECT_EQ(shown("ABCDEFG\x93\xfaXX"), "ABCDEFG\uFFFD.㈱X") << "no character crosses the dot";
}

TEST_F(japanese, names_that_fit_need_no_long_name) {
    const auto made = exactly("日本語.txt", code_page::cp932);
    ASSERT_TRUE(made);
    EXPECT_EQ(text(made->bytes), "\x93\xfa\x96\x7b\x8c\xea  TXT");
    EXPECT_EQ(made->case_bits, lower_extension);
    EXPECT_EQ(text_of(made->bytes, made->case_bits, code_page::cp932), "日本語.txt");
    EXPECT_FALSE(exactly("日本語日本", code_page::cp932)) << "ten bytes";
    EXPECT_FALSE(exactly("日.本語", code_page::cp932)) << "four bytes of extension";
    EXPECT_FALSE(exactly("한", code_page::cp932)) << "not in this page";
}

TEST_F(japanese, a_first_byte_e5_differs_from_the_mark_of_free_slots) {
    const auto made = exactly("薇", code_page::cp932);  // 0xe5 0x4e
    ASSERT_TRUE(made);
    EXPECT_EQ(made->bytes[0], e5_substitute);
    EXPECT_EQ(text_of(made->bytes, 0, code_page::cp932), "薇");
}

TEST_F(japanese, names_are_cut_between_characters) {
    EXPECT_EQ(shortened("日本語の長い名前.text"), "\x93\xfa\x96\x7b\x8c\xea~1TEX");
    EXPECT_EQ(shortened("a日本語の長い名前"), "A\x93\xfa\x96\x7b~1    ");
    EXPECT_EQ(shortened("名前.日本"), "\x96\xbc\x91\x4f~1  \x93\xfa ");
    EXPECT_EQ(shortened("1234567日本"), "123456~1   ") << "no half character at the end";
}

}  // namespace
}  // namespace sluice::fat

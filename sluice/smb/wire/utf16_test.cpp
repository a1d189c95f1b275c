#include "sluice/smb/wire/utf16.hpp"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice::smb::wire {
namespace {

bytes_view view(std::string_view bytes) {
    return std::as_bytes(std::span(bytes));
}

struct spelling {
    std::string_view utf8;
    std::string_view utf16;
};

// Manually chosen: one per length of a UTF-8 sequence and one per kind of unpaired surrogate.
using namespace std::string_view_literals;
constexpr spelling spellings[] = {
    {""sv, ""sv},
    {"a\0b"sv, "a\0\0\0b\0"sv},
    {"\xc3\xa4"sv, "\xe4\x00"sv},                          // U+00E4
    {"\xe2\x82\xac"sv, "\xac\x20"sv},                      // U+20AC
    {"\xf0\x9f\x98\x80"sv, "\x3d\xd8\x00\xde"sv},          // U+1F600, a pair
    {"\xed\xa0\xbd"sv, "\x3d\xd8"sv},                      // high surrogate at the end
    {"\xed\xa0\xbdx"sv, "\x3d\xd8x\0"sv},                  // high surrogate before a letter
    {"\xed\xb8\x80\xed\xa0\xbd"sv, "\x00\xde\x3d\xd8"sv},  // low before high: not a pair
    {"\xed\xa0\xbd\xf0\x9f\x98\x80"sv, "\x3d\xd8\x3d\xd8\x00\xde"sv},
};

TEST(utf16, decodes_to_utf8_with_unpaired_surrogates_in_three_bytes) {
    for (const spelling& text : spellings)
        EXPECT_EQ(utf8_of(view(text.utf16)), text.utf8);
}

TEST(utf16, encodes_from_utf8) {
    for (const spelling& text : spellings) {
        EXPECT_EQ(utf16_of(text.utf8), text.utf16);
        EXPECT_EQ(utf16_bytes_of(text.utf8), text.utf16.size());
        std::array<std::byte, 16> room{};
        byte_writer writer{mutable_bytes(room)};
        EXPECT_EQ(put_utf16(writer, text.utf8), text.utf16.size());
        EXPECT_EQ(utf8_of(*writer.finish()), text.utf8);
    }
}

TEST(utf16, with_an_odd_number_of_bytes_is_rejected) {
    EXPECT_EQ(utf8_of(view("a\0b"sv)), std::unexpected(decode_error::bad_text));
}

TEST(utf16, encoding_rejects_bytes_that_are_not_utf8) {
    const std::string_view wrong[] = {
        "\x80",              // continuation without lead
        "\xc3",              // truncated
        "\xe2\x82",          //
        "\xc0\xaf",          // '/' in two bytes
        "\xe0\x80\xaf",      // '/' in three
        "\xf0\x80\x80\xaf",  // '/' in four
        "\xf4\x90\x80\x80",  // beyond U+10FFFF
        "\xf8\x88\x80\x80\x80",
        "\xc3(",
        "\xed\xa0\xbd\xed\xb8\x80",  // a pair encoded as two surrogates
    };
    for (const std::string_view text : wrong) {
        EXPECT_EQ(utf16_of(text), std::unexpected(decode_error::bad_text)) << testing::PrintToString(text);
        std::array<std::byte, 16> room{};
        byte_writer writer{mutable_bytes(room)};
        EXPECT_FALSE(put_utf16(writer, text));
        EXPECT_EQ(writer.position(), 0u);
    }
}

TEST(utf16, any_units_round_trip) {
    seeded_random random(20);
    for (int round = 0; round < 2000; ++round) {
        std::string units;
        for (std::uint64_t count = random.below(8); count > 0; --count) {
            // Half of the units are surrogates. Otherwise pairs would be rare.
            const std::uint64_t unit =
                random.below(2) == 0 ? 0xd800 + random.below(0x800) : random.below(0x10000);
            units += static_cast<char>(unit & 0xff);
            units += static_cast<char>(unit >> 8);
        }
        const auto utf8 = utf8_of(view(units));
        ASSERT_TRUE(utf8);
        EXPECT_EQ(utf16_of(*utf8), units);
    }
}

TEST(utf16, text_that_does_not_fit_overflows_the_writer) {
    std::array<std::byte, 3> room{};
    byte_writer writer{mutable_bytes(room)};
    EXPECT_TRUE(put_utf16(writer, "ab"));
    EXPECT_TRUE(writer.overflowed());
}

}  // namespace
}  // namespace sluice::smb::wire

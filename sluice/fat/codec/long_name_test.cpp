#include "sluice/fat/codec/long_name.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sluice/base/random.hpp"
#include "sluice/fat/codec/short_name.hpp"

// Long and short names.

namespace sluice::fat {
namespace {

short_name_bytes bytes(std::string_view eleven) {
    short_name_bytes made;
    std::ranges::copy(eleven, made.begin());
    return made;
}

std::string text(const short_name_bytes& name) {
    return {name.begin(), name.end()};
}

std::optional<std::string> through_slots(std::u16string_view name, const short_name_bytes& own) {
    long_name_collector collector;
    for (std::size_t number = long_name_slots(name.size()); number > 0; --number)
        collector.add(long_name_slot(name, number, checksum_of(own)));
    const auto found = collector.name_of(own);
    return found ? std::optional(to_utf8(*found)) : std::nullopt;
}

TEST(long_name, text_converts_back_with_pairs_and_lone_surrogates) {
    for (const char* name : {"a", "Grüße", "日本語", "\xf0\x9f\x98\x80.txt", "a\xed\xa0\xbd", "\xed\xb8\x80"})
        EXPECT_EQ(to_utf8(to_utf16(name)), name);
    EXPECT_EQ(to_utf16("\xf0\x9f\x98\x80"), u"\xd83d\xde00");
    EXPECT_EQ(to_utf8(to_utf16("\xff")), "\xef\xbf\xbd");
}

TEST(long_name, the_checksum_is_that_of_the_specification) {
    // "The quick brown.fox", the example of the specification: THEQUI~1.FOX.
    EXPECT_EQ(checksum_of(bytes("THEQUI~1FOX")), 0x07);
}

TEST(long_name, pieces_hold_thirteen_units_and_are_padded) {
    const auto last = long_name_slot(u"The quick brown.fox", 2, 7);
    const auto first = long_name_slot(u"The quick brown.fox", 1, 7);
    EXPECT_EQ(first.name[0], 1U);
    EXPECT_EQ(last.name[0], 0x42U);
    EXPECT_EQ(kind_of(first), slot_kind::long_name);
    const auto raw = bytes_of(last);
    EXPECT_EQ(raw[1], std::byte{'w'});
    EXPECT_EQ(raw[14 + 2], std::byte{0}) << "one zero after the name";
    EXPECT_EQ(raw[14 + 4], std::byte{0xff});
    EXPECT_EQ(raw[13], std::byte{7});
}

TEST(long_name, names_of_every_length_are_read_back_from_slots) {
    const short_name_bytes own = bytes("SHORT      ");
    for (std::size_t units = 1; units <= long_name_units_max; ++units) {
        std::u16string name;
        for (std::size_t i = 0; i < units; ++i)
            name.push_back(static_cast<char16_t>(u'a' + (units + i) % 26));
        ASSERT_EQ(through_slots(name, own), to_utf8(name)) << units;
    }
}

TEST(long_name, inconsistent_pieces_are_discarded) {
    const short_name_bytes own = bytes("SHORT      ");
    const std::uint8_t sum = checksum_of(own);
    const std::u16string name = u"a name of more than one piece, of three";
    const auto piece = [&](std::size_t number) { return long_name_slot(name, number, sum); };
    const auto gather = [&](std::initializer_list<directory_entry> pieces) {
        long_name_collector collector;
        for (const auto& each : pieces)
            collector.add(each);
        return collector.name_of(own).has_value();
    };
    EXPECT_TRUE(gather({piece(3), piece(2), piece(1)}));
    EXPECT_TRUE(gather({piece(3), piece(3), piece(2), piece(1)})) << "the first piece is an orphan";
    EXPECT_FALSE(gather({piece(3), piece(2)}));
    EXPECT_FALSE(gather({piece(2), piece(1)}));
    EXPECT_FALSE(gather({piece(3), piece(1)}));
    EXPECT_FALSE(gather({piece(3), piece(2), piece(1), piece(1)}));
    EXPECT_FALSE(gather({piece(3), piece(2), long_name_slot(name, 1, sum + 1)}));
    long_name_collector collector;
    for (const std::size_t number : {3U, 2U, 1U})
        collector.add(piece(number));
    EXPECT_FALSE(collector.name_of(bytes("OTHER      ")).has_value()) << "another entry";
    collector.drop();
    EXPECT_FALSE(collector.name_of(own).has_value());
}

TEST(long_name, any_bytes_are_safe_as_pieces) {
    seeded_random random(3);
    long_name_collector collector;
    for (int i = 0; i < 100'000; ++i) {
        directory_entry slot;
        random.fill(std::as_writable_bytes(std::span(&slot, 1)));
        slot.name[0] &= 0x43;
        if (i % 2 == 0) *(reinterpret_cast<unsigned char*>(&slot) + 13) = checksum_of(slot.name);
        collector.add(slot);
        if (const auto name = collector.name_of(slot.name)) EXPECT_LE(name->size(), long_name_units_max);
    }
}

TEST(short_name, a_valid_short_name_needs_no_long_name) {
    for (const char* name : {"A", "README.TXT", "readme.txt", "readme.TXT", "README.txt", "NAME",
                             "a-b_c~1.$$$", "12345678.123", "ÅÄÖ.DAT"}) {
        const auto made = exactly(name, code_page::cp437);
        ASSERT_TRUE(made.has_value()) << name;
        EXPECT_EQ(text_of(made->bytes, made->case_bits, code_page::cp437), name);
    }
    EXPECT_EQ(text(exactly("readme.txt", code_page::ascii)->bytes), "README  TXT");
    EXPECT_EQ(exactly("readme.TXT", code_page::ascii)->case_bits, lower_base);
}

TEST(short_name, is_not_made_from_a_name_that_does_not_fit) {
    for (const char* name : {"", ".", "..", ".hidden", "Mixed", "name.tar.gz", "123456789", "a.b123", "a b",
                             "a+b", "naïve", "日本", "a.", "a.b.", "é", "\xff"})
        EXPECT_FALSE(exactly(name, code_page::cp437).has_value()) << name;
    EXPECT_FALSE(exactly("ÅÄÖ", code_page::ascii).has_value());
}

TEST(short_name, a_first_byte_e5_differs_from_the_mark_of_free_slots) {
    const auto made = exactly("Õ", code_page::cp850);
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->bytes[0], e5_substitute);
    EXPECT_EQ(text_of(made->bytes, 0, code_page::cp850), "Õ");
}

TEST(short_name, a_long_name_is_shortened_as_windows_does) {
    const auto shortened = [](std::string_view name, std::uint32_t number = 1) {
        return text(numbered(basis_of(name, code_page::cp437), number));
    };
    EXPECT_EQ(shortened("A long name.text"), "ALONGN~1TEX");
    EXPECT_EQ(shortened(".hidden"), "HIDDEN~1   ");
    EXPECT_EQ(shortened("name.tar.gz"), "NAMETA~1GZ ");
    EXPECT_EQ(shortened("a+b;c"), "A_B_C~1    ");
    EXPECT_EQ(shortened("日本語"), "___~1      ");
    EXPECT_EQ(shortened("naïve café"), std::string("NA\x8bVEC~1   ").replace(2, 1, "_")) << "Ï is not in 437";
    EXPECT_EQ(shortened("..."), "_~1        ");
    EXPECT_EQ(shortened("long name", 10), "LONGN~10   ");
    EXPECT_EQ(shortened("long name", short_name_number_max), "L~999999   ");
}

}  // namespace
}  // namespace sluice::fat

#include "sluice/base/case_fold.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

using namespace std::string_view_literals;

TEST(upcase, maps_letters_of_several_scripts_and_leaves_the_rest) {
    EXPECT_EQ(upcase(u'a'), u'A');
    EXPECT_EQ(upcase(u'ä'), u'Ä');
    EXPECT_EQ(upcase(u'ÿ'), u'Ÿ');
    EXPECT_EQ(upcase(u'я'), u'Я');
    EXPECT_EQ(upcase(u'ω'), u'Ω');
    EXPECT_EQ(upcase(char16_t{0x1F80}), char16_t{0x1F88}) << "whose full upper case is two characters";
    for (const char16_t same :
         {u'A', u'1', u'[', u'{', u'÷', u'ß', u'Ā', u'漢', char16_t{0xD801}, char16_t{0xFFFF}})
        EXPECT_EQ(upcase(same), same) << std::hex << unsigned{same};
}

TEST(upcase, twice_is_the_same_as_once_for_every_code_unit) {
    for (unsigned unit = 0; unit <= 0xFFFF; ++unit) {
        const char16_t once = upcase(static_cast<char16_t>(unit));
        EXPECT_EQ(upcase(once), once) << std::hex << unit;
    }
}

TEST(upcase, maps_no_other_character_to_ascii) {
    for (unsigned unit = 0x80; unit <= 0xFFFF; ++unit)
        EXPECT_GE(upcase(static_cast<char16_t>(unit)), char16_t{0x80}) << std::hex << unit;
}

TEST(upcase, does_not_change_the_supplementary_planes) {
    EXPECT_EQ(upcase(char32_t{0x10428}), char32_t{0x10428});
}

TEST(equal_ignoring_case, compares_whole_names_in_either_encoding) {
    EXPECT_TRUE(equal_ignoring_case("Grüße.TXT"sv, "GRÜßE.txt"sv));
    EXPECT_TRUE(equal_ignoring_case(u"Grüße.TXT"sv, u"GRÜßE.txt"sv));
    EXPECT_TRUE(equal_ignoring_case("ⱥ"sv, "Ⱥ"sv)) << "three bytes and two";
    EXPECT_TRUE(equal_ignoring_case(""sv, ""sv));
    EXPECT_FALSE(equal_ignoring_case("name"sv, "names"sv));
    EXPECT_FALSE(equal_ignoring_case("names"sv, "name"sv));
    EXPECT_FALSE(equal_ignoring_case("ı"sv, "I"sv));
    EXPECT_FALSE(equal_ignoring_case("\xE4"sv, "\xC4"sv)) << "bytes of Latin-1 are not letters";
}

TEST(character_at, reads_complete_characters_and_stray_bytes_one_by_one) {
    EXPECT_EQ(character_at("é"sv, 0).length, 2u);
    EXPECT_EQ(character_at("😀"sv, 0).point, char32_t{0x1F600});
    EXPECT_EQ(character_at(u"😀"sv, 0).point, char32_t{0x1F600});
    EXPECT_EQ(character_at("\xED\xA0\x80"sv, 0).point, char32_t{0xD800}) << "WTF-8";
    for (const std::string_view stray : {"\xC3"sv, "\xE2\x82"sv, "\xC0\x80"sv, "\xE0\x80\x80"sv, "\x80"sv,
                                         "\xF5\x80\x80\x80"sv, "\xF4\x90\x80\x80"sv, "\xC3x"sv}) {
        EXPECT_EQ(character_at(stray, 0).length, 1u);
        EXPECT_GT(character_at(stray, 0).point, char32_t{0x10FFFF});
    }
    EXPECT_EQ(character_at(u"\xD83Dx"sv, 0).length, 1u);
}

TEST(fold, returns_one_key_exactly_for_names_that_are_equal_ignoring_case) {
    const std::vector<std::string_view> pieces = {"a",    "A",    "é", "É", "ß",  "\xE4",
                                                  "\xC3", "\x80", "ⱥ", "Ⱥ", "😀", "\xED\xA0\xBD"};
    seeded_random random(1);
    const auto name = [&] {
        std::string text;
        for (auto i = random.below(3) + 1; i != 0; --i)
            text += pieces[random.below(pieces.size())];
        return text;
    };
    for (int round = 0; round < 20000; ++round) {
        const std::string a = name();
        const std::string b = name();
        const bool are_equal = equal_ignoring_case(std::string_view(a), std::string_view(b));
        EXPECT_EQ(fold(a) == fold(b), are_equal) << a << ' ' << b;
        if (are_equal) EXPECT_EQ(hash_ignoring_case(a), hash_ignoring_case(b)) << a << ' ' << b;
    }
}

TEST(hash_ignoring_case, is_the_same_for_all_spellings_and_differs_between_names) {
    std::string every;
    for (char each = 1; each != 127; ++each)
        every.push_back(each);
    std::set<std::uint32_t> hashes;
    std::set<std::string> folds;
    for (std::size_t length = 0; length != every.size(); ++length) {
        const std::string text = every.substr(length / 2, length);
        EXPECT_EQ(hash_ignoring_case(text), hash_ignoring_case(fold(text)));
        EXPECT_EQ(hash_ignoring_case("é" + text), hash_ignoring_case("É" + fold(text)));
        hashes.insert(hash_ignoring_case(text));
        folds.insert(fold(text));
    }
    EXPECT_EQ(hashes.size(), folds.size());
    EXPECT_GT(folds.size(), 100U);
}

}  // namespace
}  // namespace sluice

#include "sluice/vfs/host/name/short_name_record.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <string>

namespace sluice::vfs {
namespace {

using kind = short_name_record::kind;
using entry = short_name_record::entry;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t version_bytes = 1;
constexpr std::size_t entry_bytes = 5;
constexpr std::size_t choice_bytes = 17;

short_name_record some_entries() {
    return {.entries = {entry{.number = 7, .what = kind::chosen, .name = short_name("CHOSEN.TXT")},
                        entry{.number = 8, .what = kind::chosen}, entry{.number = 0xffff'fffe, .attempt = 3},
                        entry{.number = 9, .what = kind::used_up}}};
}

TEST(short_name_record, is_decoded_as_it_was_encoded) {
    const auto bytes = encode_short_names(some_entries());
    EXPECT_EQ(bytes.size(), version_bytes + 2 * choice_bytes + 2 * entry_bytes);
    EXPECT_EQ(decode_short_names(bytes).entries, some_entries().entries);
    EXPECT_THAT(encode_short_names({}), IsEmpty());
    EXPECT_THAT(decode_short_names({}).entries, IsEmpty());
}

TEST(short_name_record, loses_only_what_is_cut) {
    const auto whole = encode_short_names(some_entries());
    for (std::size_t size = 0; size != whole.size(); ++size) {
        const auto cut = decode_short_names(bytes_view(whole.data(), size));
        ASSERT_LT(cut.entries.size(), 4U) << size;
        for (std::size_t at = 0; at != cut.entries.size(); ++at)
            EXPECT_EQ(cut.entries[at], some_entries().entries[at]) << size;
    }
}

TEST(short_name_record, is_empty_if_its_version_is_unknown) {
    auto bytes = encode_short_names(some_entries());
    bytes[0] = std::byte{2};
    EXPECT_THAT(decode_short_names(bytes).entries, IsEmpty());
}

TEST(short_name_record, is_empty_if_it_is_longer_than_records_are) {
    auto bytes = encode_short_names({.entries = {entry{.number = 1}}});
    const std::vector<std::byte> one(bytes.begin() + version_bytes, bytes.end());
    while (bytes.size() + entry_bytes <= short_name_record_bytes_max)
        bytes.insert(bytes.end(), one.begin(), one.end());
    EXPECT_EQ(decode_short_names(bytes).entries.size(), (short_name_record_bytes_max - 1) / entry_bytes);
    bytes.resize(short_name_record_bytes_max + 1);
    EXPECT_THAT(decode_short_names(bytes).entries, IsEmpty());
}

TEST(short_name_record, ignores_choices_that_are_not_short_names) {
    auto bytes = encode_short_names(some_entries());
    const std::size_t text_at = version_bytes + entry_bytes;
    ASSERT_EQ(std::memcmp(bytes.data() + text_at, "CHOSEN", 6), 0);
    bytes[text_at] = std::byte{'/'};
    EXPECT_EQ(decode_short_names(bytes).entries.front(), some_entries().entries[1]);
}

TEST(short_name_record, leaves_out_the_generated_ones_first) {
    short_name_record large;
    for (std::uint32_t number = 0; number != 500; ++number)
        large.entries.push_back({.number = number});
    large.entries.push_back({.number = 1000, .what = kind::chosen, .name = short_name("C")});
    EXPECT_TRUE(has_room_for_choices(large));
    const auto bytes = encode_short_names(large);
    EXPECT_LE(bytes.size(), short_name_record_bytes_max);
    EXPECT_GT(bytes.size(), short_name_record_bytes_max - entry_bytes);
    EXPECT_EQ(decode_short_names(bytes).entries.front().number, 1000U);
    for (std::uint32_t number = 0; number != 200; ++number)
        large.entries.push_back({.number = number, .what = kind::chosen, .name = short_name("D")});
    EXPECT_FALSE(has_room_for_choices(large));
}

TEST(record_number, is_the_same_for_names_that_differ_in_case) {
    EXPECT_EQ(record_number("A long näme"), record_number("a LONG NÄME"));
    EXPECT_NE(record_number("A long name"), record_number("A long name."));
}

}  // namespace
}  // namespace sluice::vfs

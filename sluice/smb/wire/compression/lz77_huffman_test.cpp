#include "sluice/smb/wire/compression/lz77_huffman.hpp"

#include "sluice/smb/wire/compression/compression_testing.hpp"

namespace sluice::smb::wire {
namespace {

using subject = codec<lz77_huffman::work_area, lz77_huffman::compress, lz77_huffman::decompress>;

// A table of code lengths: pairs of a position and a byte; all others are zero.
message_bytes table_of(std::initializer_list<std::pair<int, int>> bytes) {
    message_bytes table(huffman_table_bytes);
    for (const auto& [at, value] : bytes)
        table[static_cast<std::size_t>(at)] = std::byte(value);
    return table;
}

message_bytes joined(message_bytes first, const message_bytes& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

// [MS-XCA] 3.2.
message_bytes alphabet() {
    message_bytes table = table_of({{48, 0x50}, {59, 0x45}, {60, 0x44}, {61, 0x04}, {128, 0x04}});
    for (std::size_t i = 49; i != 59; ++i)
        table[i] = std::byte{0x55};
    return joined(std::move(table), some_bytes({0xd8, 0x52, 0x3e, 0xd7, 0x94, 0x11, 0x5b, 0xe9, 0x19, 0x5f,
                                                0xf9, 0xd6, 0x7c, 0xdf, 0x8d, 0x04, 0,    0,    0,    0}));
}
message_bytes abc_100_times() {
    return joined(table_of({{48, 0x30}, {49, 0x23}, {128, 0x02}, {143, 0x20}}),
                  some_bytes({0xa8, 0xdc, 0, 0, 0xff, 0x26, 0x01}));
}

std::string abc(int times) {
    std::string text;
    for (; times != 0; --times)
        text += "abc";
    return text;
}

TEST(lz77_huffman, decompresses_the_examples_of_the_specification) {
    EXPECT_EQ(subject::expand(alphabet(), 26), copy_of(text_bytes("abcdefghijklmnopqrstuvwxyz")));
    EXPECT_EQ(subject::expand(abc_100_times(), 300), copy_of(text_bytes(abc(100))));
}

TEST(lz77_huffman, compresses_the_examples_of_the_specification_to_the_same_sizes) {
    EXPECT_EQ(subject().shrink(text_bytes("abcdefghijklmnopqrstuvwxyz"), 1000)->size(), alphabet().size());
    EXPECT_EQ(subject().shrink(text_bytes(abc(100)), 1000)->size(), abc_100_times().size());
}

TEST(lz77_huffman, returns_the_data_that_were_compressed) {
    expect_round_trips<subject>();
}

TEST(lz77_huffman, gives_no_result_that_exceeds_the_room) {
    expect_no_result_without_room<subject>();
}

TEST(lz77_huffman, detects_or_tolerates_damage_without_leaving_its_buffers) {
    expect_damage_is_harmless<subject>();
}

// Windows compresses 65537 zeros in this way: a literal, and a match that exceeds the block.
TEST(lz77_huffman, lets_a_match_exceed_its_block) {
    const message_bytes zeros = joined(table_of({{0, 0x02}, {128, 0x02}, {135, 0x10}}),
                                       some_bytes({0, 0x98, 0, 0, 0xff, 0xfd, 0xff}));
    EXPECT_EQ(subject::expand(zeros, 65'537), message_bytes(65'537));
}

TEST(lz77_huffman, needs_a_mark_of_the_end_except_after_a_whole_block) {
    // `abc` and its match have codes of two bits, and end within the first word.
    const message_bytes table = table_of({{48, 0x20}, {49, 0x22}, {143, 0x20}});
    EXPECT_EQ(subject::expand(joined(table, some_bytes({0x80, 0x1b, 0, 0, 0xff, 0x26, 0x01})), 300),
              std::unexpected(decode_error::too_long));
    const auto block =
        subject::expand(joined(table, some_bytes({0x80, 0x1b, 0, 0, 0xff, 0xfa, 0xff})), 65'536);
    ASSERT_TRUE(block);
    EXPECT_TRUE(std::equal(block->begin(), block->end() - 3, block->begin() + 3));
}

TEST(lz77_huffman, rejects_bytes_after_the_mark_of_the_end) {
    EXPECT_EQ(subject::expand(joined(abc_100_times(), some_bytes({0, 0})), 300),
              std::unexpected(decode_error::too_long));
}

TEST(lz77_huffman, rejects_codes_that_are_not_complete) {
    message_bytes bad = abc_100_times();
    bad[128] = std::byte{0};
    EXPECT_EQ(subject::expand(bad, 300), std::unexpected(decode_error::bad_value));
}

TEST(lz77_huffman, rejects_a_distance_to_before_the_first_byte) {
    const message_bytes bad = joined(table_of({{48, 0x10}, {143, 0x10}}), some_bytes({0, 0x80, 0, 0, 0}));
    EXPECT_EQ(subject::expand(bad, 300), std::unexpected(decode_error::bad_value));
}

}  // namespace
}  // namespace sluice::smb::wire

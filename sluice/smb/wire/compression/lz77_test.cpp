#include "sluice/smb/wire/compression/lz77.hpp"

#include "sluice/smb/wire/compression/compression_testing.hpp"

namespace sluice::smb::wire {
namespace {

using subject = codec<lz77::work_area, lz77::compress, lz77::decompress>;

// [MS-XCA] 3.1.
const message_bytes alphabet =
    some_bytes({0x3f, 0,   0,   0,   'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k',
                'l',  'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z'});
const message_bytes abc_100_times =
    some_bytes({0xff, 0xff, 0xff, 0x1f, 'a', 'b', 'c', 0x17, 0, 0x0f, 0xff, 0x26, 0x01});

std::string abc(int times) {
    std::string text;
    for (; times != 0; --times)
        text += "abc";
    return text;
}

TEST(lz77, decompresses_the_examples_of_the_specification) {
    EXPECT_EQ(subject::expand(alphabet, 26), copy_of(text_bytes("abcdefghijklmnopqrstuvwxyz")));
    EXPECT_EQ(subject::expand(abc_100_times, 300), copy_of(text_bytes(abc(100))));
}

TEST(lz77, compresses_the_examples_of_the_specification_to_the_same_bytes) {
    EXPECT_EQ(subject().shrink(text_bytes("abcdefghijklmnopqrstuvwxyz"), 100), alphabet);
    EXPECT_EQ(subject().shrink(text_bytes(abc(100)), 100), abc_100_times);
}

TEST(lz77, returns_the_data_that_were_compressed) {
    expect_round_trips<subject>();
}

TEST(lz77, gives_no_result_that_exceeds_the_room) {
    expect_no_result_without_room<subject>();
}

TEST(lz77, detects_or_tolerates_damage_without_leaving_its_buffers) {
    expect_damage_is_harmless<subject>();
}

TEST(lz77, shares_the_halves_of_a_byte_between_two_lengths) {
    // After a literal, matches of 12 and 13 bytes: both continue in the byte 0x32.
    const message_bytes shared = some_bytes({0xff, 0xff, 0xff, 0x7f, 'x', 0x07, 0, 0x32, 0x07, 0});
    EXPECT_EQ(subject::expand(shared, 26), message_bytes(26, std::byte{'x'}));
}

TEST(lz77, accepts_a_last_word_of_flags_without_elements) {
    message_bytes all_used(4, std::byte{0});
    for (int i = 0; i != 32; ++i)
        all_used.push_back(std::byte{'x'});
    EXPECT_TRUE(subject::expand(all_used, 32));
    all_used.insert(all_used.end(), 4, std::byte{0xff});
    EXPECT_TRUE(subject::expand(all_used, 32));
    all_used.push_back(std::byte{0});
    EXPECT_EQ(subject::expand(all_used, 32), std::unexpected(decode_error::too_long));
}

TEST(lz77, rejects_a_distance_to_before_the_first_byte) {
    EXPECT_EQ(subject::expand(some_bytes({0xff, 0xff, 0xff, 0x7f, 'x', 0x08, 0}), 4),
              std::unexpected(decode_error::bad_value));
}

TEST(lz77, accepts_a_length_in_32_bits) {
    // 299997 bytes, less three.
    const message_bytes abc_100000_times =
        some_bytes({0xff, 0xff, 0xff, 0x1f, 'a', 'b', 'c', 0x17, 0, 0x0f, 0xff, 0, 0, 0xda, 0x93, 0x04, 0});
    EXPECT_TRUE(subject::expand(abc_100000_times, 300'000) == copy_of(text_bytes(abc(100'000))));
}

TEST(lz77, rejects_a_length_beyond_the_end_in_32_bits) {
    const message_bytes long_match =
        some_bytes({0xff, 0xff, 0xff, 0x7f, 'x', 0x07, 0, 0x0f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff});
    EXPECT_EQ(subject::expand(long_match, 100), std::unexpected(decode_error::too_long));
}

TEST(lz77, rejects_a_long_form_of_a_short_length) {
    EXPECT_EQ(subject::expand(some_bytes({0xff, 0xff, 0xff, 0x7f, 'x', 0x07, 0, 0x0f, 0xff, 21, 0}), 25),
              std::unexpected(decode_error::bad_value));
}

}  // namespace
}  // namespace sluice::smb::wire

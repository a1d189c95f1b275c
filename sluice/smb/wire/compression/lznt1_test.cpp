#include "sluice/smb/wire/compression/lznt1.hpp"

#include "sluice/smb/wire/compression/compression_testing.hpp"

namespace sluice::smb::wire {
namespace {

using subject = codec<lznt1::work_area, lznt1::compress, lznt1::decompress>;

// [MS-XCA] 3.3.
constexpr std::string_view melody =
    "F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E F# G F# E D "
    "E A "
    "F# F# G A A G F# E D D E F# E D D";
const message_bytes short_melody =
    some_bytes({0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2, 0x47,
                0x01, 0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0, 0x45, 0x20,
                0x05, 0x24, 0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09,
                0x16, 0x01, 0x48, 0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00});

message_bytes with_a_zero(std::string_view text) {
    message_bytes made = copy_of(text_bytes(text));
    made.push_back(std::byte{0});
    return made;
}

TEST(lznt1, decompresses_the_example_of_the_specification) {
    const message_bytes expected = with_a_zero(melody);
    EXPECT_EQ(subject::expand(short_melody, expected.size()), expected);
}

TEST(lznt1, compresses_the_example_of_the_specification_to_about_the_same_size) {
    const auto small = subject().shrink(with_a_zero(melody), 1000);
    ASSERT_TRUE(small);
    EXPECT_LE(small->size(), short_melody.size() + 8);
}

TEST(lznt1, returns_the_data_that_were_compressed) {
    expect_round_trips<subject>();
}

TEST(lznt1, gives_no_result_that_exceeds_the_room) {
    expect_no_result_without_room<subject>();
}

TEST(lznt1, detects_or_tolerates_damage_without_leaving_its_buffers) {
    expect_damage_is_harmless<subject>();
}

TEST(lznt1, stores_a_chunk_that_does_not_shrink) {
    const message_bytes random = data_of(data_kind::random, 4096);
    const auto stored = subject().shrink(random, 5000);
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->size(), random.size() + 2);
    EXPECT_EQ(subject::expand(*stored, 4096), random);
}

TEST(lznt1, accepts_an_end_mark_and_nothing_after_it) {
    message_bytes marked = some_bytes({0, 0x30, 'x', 0, 0});
    EXPECT_EQ(subject::expand(marked, 1), some_bytes({'x'}));
    marked.push_back(std::byte{0});
    EXPECT_EQ(subject::expand(marked, 1), std::unexpected(decode_error::too_long));
    EXPECT_EQ(subject::expand(some_bytes({0, 0x30, 'x', 1, 0}), 1), std::unexpected(decode_error::too_long));
}

TEST(lznt1, rejects_data_without_a_chunk) {
    EXPECT_EQ(subject::expand(some_bytes({0, 0x40, 'x'}), 1), std::unexpected(decode_error::bad_value));
}

TEST(lznt1, rejects_a_match_at_the_start_of_a_chunk) {
    EXPECT_EQ(subject::expand(some_bytes({0x02, 0xb0, 0x01, 0, 0}), 3),
              std::unexpected(decode_error::bad_value));
}

TEST(lznt1, rejects_a_short_chunk_before_the_last) {
    EXPECT_EQ(subject::expand(some_bytes({0, 0x30, 'x', 0, 0x30, 'y'}), 2),
              std::unexpected(decode_error::bad_value));
}

TEST(lznt1, rejects_a_match_beyond_the_end_of_its_chunk) {
    // One literal, then 4095 + 3 times the same.
    message_bytes data(4096, std::byte{'x'});
    EXPECT_EQ(subject::expand(some_bytes({0x03, 0xb0, 0x02, 'x', 0xff, 0x0f}), 4096),
              std::unexpected(decode_error::too_long));
    EXPECT_EQ(subject::expand(some_bytes({0x03, 0xb0, 0x02, 'x', 0xfc, 0x0f}), 4096), data);
}

}  // namespace
}  // namespace sluice::smb::wire

#include "sluice/smb/wire/compression/compressed_message.hpp"

#include "sluice/smb/wire/compression/compression_testing.hpp"

namespace sluice::smb::wire {
namespace {

using algorithm = compression_algorithm;

constexpr compression_limits wide = compression_limits_for(8U << 20, 9U << 20);

negotiated_compression agreed_on(std::initializer_list<algorithm> offered, bool is_chained) {
    std::vector<le16> codes;
    for (const algorithm each : offered)
        codes.emplace_back(static_cast<std::uint16_t>(each));
    return negotiated_compression::choose({.flags = is_chained ? compression_chained : 0,
                                           .algorithms = code_list<algorithm>(std::span<const le16>(codes))});
}

message_bytes joined(const message_bytes& first, const message_bytes& second) {
    message_bytes all = first;
    all.insert(all.end(), second.begin(), second.end());
    return all;
}

decoded<message_bytes> expand(bytes_view frame, const negotiated_compression& agreed,
                              const compression_limits& limits = wide) {
    const auto size = decompressed_bytes(frame, agreed, limits);
    if (not size) return std::unexpected(size.error());
    EXPECT_LE(*size, limits.message_bytes_max);
    const auto copy = std::make_unique<std::byte[]>(frame.size());
    std::copy(frame.begin(), frame.end(), copy.get());
    message_bytes message(*size);
    const auto done = decompress_message({copy.get(), frame.size()}, agreed, message);
    if (not done) return std::unexpected(done.error());
    return message;
}

std::optional<message_bytes> shrink(const message_bytes& head, const message_bytes& data,
                                    const negotiated_compression& agreed) {
    const auto work = std::make_unique<compression_work_area>();
    message_bytes out(head.size() + data.size());
    const auto size = compress_message({.head = head, .data = data}, agreed, out, *work);
    if (not size) return std::nullopt;
    out.resize(*size);
    return out;
}

const message_bytes head = data_of(data_kind::random, 80);

TEST(negotiated_compression, has_the_supported_algorithms_in_the_order_of_the_client) {
    const auto agreed =
        agreed_on({algorithm::lz4, algorithm::pattern_v1, algorithm::lz77_huffman, algorithm::none,
                   algorithm::lz77, algorithm::lz77, compression_algorithm(99)},
                  true);
    const compression_capabilities told = agreed.capabilities();
    EXPECT_EQ(copy_of(told.algorithms.bytes()), some_bytes({4, 0, 3, 0, 2, 0}));
    EXPECT_EQ(told.flags, compression_chained);
    EXPECT_EQ(agreed.preferred(), algorithm::lz77_huffman);
    EXPECT_FALSE(agreed.contains(algorithm::lznt1));
}

TEST(negotiated_compression, of_unsupported_algorithms_is_off) {
    const auto agreed = agreed_on({algorithm::lz4}, true);
    EXPECT_FALSE(agreed.is_on());
    EXPECT_FALSE(agreed.is_chained());
    EXPECT_EQ(copy_of(agreed.capabilities().algorithms.bytes()), some_bytes({0, 0}));
}

TEST(compressed_message, comes_back_from_each_algorithm_chained_and_unchained) {
    for (const bool is_chained : {false, true}) {
        for (const algorithm one : {algorithm::lznt1, algorithm::lz77, algorithm::lz77_huffman}) {
            const auto agreed = agreed_on({algorithm::pattern_v1, one}, is_chained);
            for (const data_kind kind :
                 {data_kind::text, data_kind::zeros, data_kind::repetitive, data_kind::sparse}) {
                for (const std::size_t size : {2048U, 65'536U, 300'000U}) {
                    const message_bytes data = data_of(kind, size);
                    const auto small = shrink(head, data, agreed);
                    ASSERT_TRUE(small) << static_cast<int>(one) << static_cast<int>(kind) << size;
                    EXPECT_LT(small->size(), size);
                    EXPECT_EQ(expand(*small, agreed), joined(head, data));
                    EXPECT_EQ((*small)[10], std::byte(is_chained ? 1 : 0));
                }
            }
        }
    }
}

TEST(compressed_message, has_runs_at_both_ends_as_elements) {
    const auto agreed = agreed_on({algorithm::lz77, algorithm::pattern_v1}, true);
    message_bytes data(1000, std::byte{7});
    data = joined(data, data_of(data_kind::random, 500));
    data = joined(data, message_bytes(1000, std::byte{8}));
    const auto small = shrink(head, data, agreed);
    ASSERT_TRUE(small);
    // Four headers, the head, two runs, and the random bytes as they are.
    EXPECT_EQ(small->size(), 8 + 4 * 8 + head.size() + 2 * 8 + 500);
    EXPECT_EQ(expand(*small, agreed), joined(head, data));
}

TEST(compressed_message, of_runs_alone_needs_no_other_algorithm) {
    const auto agreed = agreed_on({algorithm::pattern_v1}, true);
    const auto small = shrink(head, message_bytes(4096), agreed);
    ASSERT_TRUE(small);
    EXPECT_EQ(small->size(), 8 + 2 * 8 + head.size() + 8);
    EXPECT_EQ(expand(*small, agreed), joined(head, message_bytes(4096)));
    EXPECT_FALSE(shrink(head, data_of(data_kind::text, 4096), agreed));
    EXPECT_FALSE(shrink(head, message_bytes(4096), agreed_on({algorithm::pattern_v1}, false)));
}

TEST(compressed_message, of_random_data_gives_no_result) {
    for (const bool is_chained : {false, true})
        for (const algorithm one : {algorithm::lznt1, algorithm::lz77, algorithm::lz77_huffman})
            for (const std::size_t size : {0U, 1U, 100U, 4096U, 1'000'000U})
                EXPECT_FALSE(shrink(head, data_of(data_kind::random, size), agreed_on({one}, is_chained)));
}

TEST(compressed_message, of_skewed_data_without_repetitions_shrinks_by_codes) {
    std::mt19937 random(1);
    message_bytes data(100'000);
    for (std::byte& each : data)
        each = std::byte('0' + random() % 16);
    EXPECT_TRUE(shrink(head, data, agreed_on({algorithm::lz77_huffman}, false)));
}

TEST(compressed_message, that_is_truncated_is_rejected) {
    for (const bool is_chained : {false, true}) {
        const auto agreed = agreed_on({algorithm::lz77, algorithm::pattern_v1}, is_chained);
        const auto small = shrink(head, data_of(data_kind::text, 5000), agreed);
        for (std::size_t length = 0; length != small->size(); ++length)
            ASSERT_FALSE(expand(*bytes_view(*small).first(length), agreed)) << length;
    }
}

message_bytes with(message_bytes frame, std::size_t at, std::initializer_list<int> values) {
    for (const int value : values)
        frame[at++] = std::byte(value);
    return frame;
}

// An unchained frame of two bytes and a run of 3 'x', LZ77.
const message_bytes unchained =
    some_bytes({0xfc, 'S',  'M',  'B',  4,   0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0,  // header
                'a',  'b',                                                     // as it is
                0xff, 0xff, 0xff, 0x7f, 'x', 0, 0});
// A chain of two bytes as they are, and a run of 5.
const message_bytes chain = some_bytes({0xfc, 'S', 'M', 'B', 7, 0, 0, 0,            // header
                                        0,    0,   1,   0,   2, 0, 0, 0, 'a', 'b',  // as they are
                                        4,    0,   0,   0,   8, 0, 0, 0,            // a run
                                        'x',  0,   0,   0,   5, 0, 0, 0});

const negotiated_compression one = agreed_on({algorithm::lz77}, false);
const negotiated_compression all = agreed_on({algorithm::lz77, algorithm::pattern_v1}, true);

TEST(compressed_message, has_the_form_of_the_specification) {
    EXPECT_EQ(expand(unchained, one), copy_of(text_bytes("abxxxx")));
    EXPECT_EQ(expand(unchained, all), copy_of(text_bytes("abxxxx")));
    EXPECT_EQ(expand(chain, all), copy_of(text_bytes("abxxxxx")));
}

TEST(compressed_message, of_another_algorithm_than_negotiated_is_rejected) {
    EXPECT_EQ(expand(with(unchained, 8, {1}), one), std::unexpected(decode_error::unsupported));
    EXPECT_EQ(expand(with(unchained, 8, {0}), one), std::unexpected(decode_error::unsupported));
    EXPECT_EQ(expand(with(unchained, 8, {4}), all), std::unexpected(decode_error::unsupported));
    EXPECT_EQ(expand(with(unchained, 8, {5}), all), std::unexpected(decode_error::unsupported));
    EXPECT_EQ(expand(with(chain, 18, {5}), all), std::unexpected(decode_error::unsupported));
    EXPECT_EQ(expand(chain, agreed_on({algorithm::lz77}, true)), std::unexpected(decode_error::unsupported));
    EXPECT_EQ(expand(unchained, {}), std::unexpected(decode_error::unsupported));
}

TEST(compressed_message, that_is_chained_without_agreement_is_rejected) {
    EXPECT_EQ(expand(chain, agreed_on({algorithm::lz77, algorithm::pattern_v1}, false)),
              std::unexpected(decode_error::bad_value));
    EXPECT_EQ(expand(with(unchained, 10, {2}), all), std::unexpected(decode_error::bad_value));
}

TEST(compressed_message, that_announces_another_size_is_rejected) {
    EXPECT_EQ(expand(with(unchained, 4, {3}), one), std::unexpected(decode_error::too_long));
    EXPECT_EQ(expand(with(unchained, 4, {5}), one), std::unexpected(decode_error::truncated));
    EXPECT_EQ(expand(with(chain, 4, {6}), all), std::unexpected(decode_error::too_long));
    EXPECT_EQ(expand(with(chain, 4, {8}), all), std::unexpected(decode_error::truncated));
    EXPECT_EQ(expand(with(chain, 4, {2}), all), std::unexpected(decode_error::too_long));
}

TEST(compressed_message, beyond_the_limits_is_rejected_before_memory_is_reserved) {
    const compression_limits limits{.segment_bytes_max = 4, .message_bytes_max = 6};
    EXPECT_TRUE(expand(unchained, one, limits));
    EXPECT_EQ(decompressed_bytes(with(unchained, 4, {5}), one, limits),
              std::unexpected(decode_error::too_long));
    EXPECT_EQ(decompressed_bytes(with(unchained, 12, {3}), one, limits),
              std::unexpected(decode_error::too_long));
    EXPECT_EQ(decompressed_bytes(with(unchained, 4, {0xff, 0xff, 0xff, 0xff}), one, wide),
              std::unexpected(decode_error::too_long));
    EXPECT_EQ(decompressed_bytes(with(unchained, 12, {0xff, 0xff, 0xff, 0xff}), one, wide),
              std::unexpected(decode_error::truncated));
}

TEST(compressed_message, with_an_element_that_gives_nothing_is_rejected) {
    EXPECT_EQ(expand(with(chain, 26 + 4, {0}), all), std::unexpected(decode_error::bad_chain));
    const message_bytes empty = some_bytes({0xfc, 'S', 'M', 'B', 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0});
    EXPECT_EQ(expand(empty, all), std::unexpected(decode_error::bad_chain));
}

TEST(compressed_message, with_two_first_elements_is_rejected_and_other_flags_of_later_ones_are_ignored) {
    EXPECT_EQ(expand(with(chain, 20, {1}), all), std::unexpected(decode_error::bad_chain));
    EXPECT_TRUE(expand(with(chain, 20, {0x40, 0x12}), all));
}

TEST(compressed_message, with_a_run_of_another_length_is_rejected) {
    EXPECT_EQ(expand(with(chain, 26 + 4, {6}), all), std::unexpected(decode_error::too_long));
    EXPECT_EQ(expand(with(chain, 22, {7}), all), std::unexpected(decode_error::truncated));
    message_bytes longer = with(chain, 22, {9});
    longer.push_back(std::byte{0});
    EXPECT_EQ(expand(longer, all), std::unexpected(decode_error::too_long));
}

TEST(compressed_message_death, is_made_only_after_an_agreement) {
    const auto work = std::make_unique<compression_work_area>();
    message_bytes out(100);
    EXPECT_DEATH((void)compress_message({.head = head, .data = out}, {}, out, *work), "after an agreement");
}

}  // namespace
}  // namespace sluice::smb::wire

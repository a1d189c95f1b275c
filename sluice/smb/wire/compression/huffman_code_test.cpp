#include "sluice/smb/wire/compression/huffman_code.hpp"

#include <gtest/gtest.h>

#include <random>

namespace sluice::smb::wire {
namespace {

using table = std::array<std::byte, huffman_table_bytes>;

// Checks that the decoder finds each symbol by its code, whatever follows.
void expect_agreement(const symbol_counts& counts) {
    huffman_encoder encoder;
    encoder.assign(counts);
    table lengths;
    encoder.write_table(lengths);
    huffman_decoder decoder;
    ASSERT_TRUE(decoder.read_table(lengths));
    for (std::size_t symbol = 0; symbol != huffman_symbols; ++symbol) {
        const unsigned bits = encoder.bits_of(symbol);
        ASSERT_EQ(bits != 0, counts[symbol] != 0);
        if (bits == 0) continue;
        ASSERT_LE(bits, huffman_bits_max);
        const std::uint32_t first = encoder.code_of(symbol) << (huffman_bits_max - bits);
        for (const std::uint32_t rest : {0U, (1U << (huffman_bits_max - bits)) - 1}) {
            const auto found = decoder.decode(first | rest);
            EXPECT_EQ(found.symbol, symbol);
            EXPECT_EQ(found.bits, bits);
        }
    }
}

TEST(huffman_code, has_one_bit_for_each_of_two_symbols) {
    symbol_counts counts{};
    counts[3] = 1;
    counts[500] = 1'000'000;
    huffman_encoder encoder;
    encoder.assign(counts);
    EXPECT_EQ(encoder.bits_of(3), 1U);
    EXPECT_EQ(encoder.bits_of(500), 1U);
    EXPECT_EQ(encoder.code_of(3), 0U);
    expect_agreement(counts);
}

TEST(huffman_code, has_no_more_than_15_bits_for_the_rarest_symbols) {
    symbol_counts counts{};
    std::uint32_t next = 1;
    std::uint32_t after = 1;
    // Fibonacci numbers give the deepest tree.
    for (std::size_t i = 0; i != 24; ++i) {
        counts[i * 20] = next;
        next = std::exchange(after, next + after);
    }
    expect_agreement(counts);
    for (std::size_t i = 0; i != huffman_symbols; ++i)
        counts[i] = std::max(counts[i], 1U);
    expect_agreement(counts);
}

TEST(huffman_code, decodes_its_own_codes_for_random_counts) {
    std::mt19937 random(1);
    for (int i = 0; i != 200; ++i) {
        symbol_counts counts{};
        counts[256] = 1;
        counts[0] = 1;
        const auto skew = static_cast<unsigned>(random() % 20);
        for (std::size_t used = random() % 600; used != 0; --used)
            counts[random() % huffman_symbols] =
                1 + (static_cast<std::uint32_t>(random()) >> (12 + random() % (skew + 1)));
        expect_agreement(counts);
    }
}

TEST(huffman_code, that_is_not_complete_or_ambiguous_is_rejected) {
    huffman_decoder decoder;
    table lengths{};
    EXPECT_FALSE(decoder.read_table(lengths)) << "no codes";
    lengths[0] = std::byte{0x01};
    EXPECT_FALSE(decoder.read_table(lengths)) << "one code of one bit";
    lengths[0] = std::byte{0x11};
    EXPECT_TRUE(decoder.read_table(lengths));
    lengths[1] = std::byte{0x01};
    EXPECT_FALSE(decoder.read_table(lengths)) << "three codes of one bit";
    lengths.fill(std::byte{0x99});
    EXPECT_TRUE(decoder.read_table(lengths)) << "512 codes of nine bits";
    lengths.fill(std::byte{0xff});
    EXPECT_FALSE(decoder.read_table(lengths)) << "512 codes of 15 bits";
}

TEST(huffman_code_death, stops_the_program_if_there_is_one_symbol) {
    symbol_counts counts{};
    counts[1] = 1;
    huffman_encoder encoder;
    EXPECT_DEATH(encoder.assign(counts), "two symbols at least");
}

}  // namespace
}  // namespace sluice::smb::wire

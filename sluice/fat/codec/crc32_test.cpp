#include "sluice/fat/codec/crc32.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice::fat {
namespace {

// Computes the CRC bit by bit, following the definition.
std::uint32_t by_definition(std::span<const std::byte> bytes) {
    std::uint32_t rest = ~std::uint32_t{0};
    for (const std::byte each : bytes) {
        rest ^= std::to_integer<std::uint32_t>(each);
        for (int bit = 0; bit != 8; ++bit)
            rest = rest >> 1 ^ (rest % 2 == 1 ? 0xedb8'8320 : 0);
    }
    return ~rest;
}

std::vector<std::byte> random_bytes(std::size_t count) {
    seeded_random random(3);
    std::vector<std::byte> bytes(count);
    for (std::byte& each : bytes)
        each = static_cast<std::byte>(random.below(256));
    return bytes;
}

TEST(crc32, has_the_standard_check_value) {
    const std::string_view text = "123456789";
    EXPECT_EQ(crc32(std::as_bytes(std::span(text))), 0xcbf4'3926U);
    EXPECT_EQ(crc32({}), 0U);
}

TEST(crc32, agrees_with_the_definition_for_every_length_and_alignment) {
    const auto bytes = random_bytes(600);
    for (std::size_t length = 0; length != 512; ++length) {
        const auto part = std::span(bytes).subspan(length % 17, length);
        ASSERT_EQ(crc32(part), by_definition(part)) << length;
    }
    EXPECT_EQ(crc32(std::vector<std::byte>(100'001)), by_definition(std::vector<std::byte>(100'001)));
}

TEST(crc32, continues_from_the_crc_of_the_preceding_bytes) {
    const auto bytes = random_bytes(400);
    const std::uint32_t whole = crc32(bytes);
    for (std::size_t first = 0; first <= bytes.size(); ++first)
        ASSERT_EQ(crc32(std::span(bytes).subspan(first), crc32(std::span(bytes).first(first))), whole)
            << first;
}

}  // namespace
}  // namespace sluice::fat

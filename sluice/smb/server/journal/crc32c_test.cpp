#include "sluice/smb/server/journal/crc32c.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice::smb::server {
namespace {

bytes_view bytes_in(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Bit by bit, as RFC 3720 defines it.
std::uint32_t by_definition(bytes_view bytes) {
    std::uint32_t rest = ~0U;
    for (const std::byte each : bytes) {
        rest ^= std::to_integer<std::uint32_t>(each);
        for (int bit = 0; bit != 8; ++bit)
            rest = rest >> 1 ^ (rest % 2 == 1 ? 0x82f6'3b78U : 0);
    }
    return ~rest;
}

TEST(crc32c, is_that_of_the_examples_in_the_specification) {
    EXPECT_EQ(crc32c(bytes_in("123456789")), 0xe306'9283U);
    std::array<std::byte, 32> data{};
    EXPECT_EQ(crc32c(data), 0x8a91'36aaU);
    data.fill(std::byte{0xff});
    EXPECT_EQ(crc32c(data), 0x62a8'ab43U);
}

TEST(crc32c, is_the_same_in_parts_and_for_every_length) {
    seeded_random random(1);
    std::vector<std::byte> data(300);
    random.fill(data);
    for (std::size_t length = 0; length != data.size(); ++length) {
        const bytes_view all(data.data(), length);
        const std::size_t middle = random.below(length + 1);
        EXPECT_EQ(crc32c(all), by_definition(all));
        EXPECT_EQ(crc32c(*all.from(middle), crc32c(*all.first(middle))), crc32c(all));
    }
}

}  // namespace
}  // namespace sluice::smb::server

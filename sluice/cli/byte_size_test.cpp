#include "sluice/cli/byte_size.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(byte_size, is_a_number_with_an_optional_unit_of_a_power_of_1024) {
    EXPECT_EQ(parse_size("512"), 512U);
    EXPECT_EQ(parse_size("64k"), 65'536U);
    for (const char* const mebibyte : {"1m", "1M", "1MB", "1 MiB", "1mi"})
        EXPECT_EQ(parse_size(mebibyte), 1U << 20) << mebibyte;
    EXPECT_EQ(parse_size("16777215t"), 16'777'215ULL << 40);
}

TEST(byte_size, is_refused_if_it_is_not_a_number_with_a_known_unit_or_exceeds_64_bits) {
    for (const char* const wrong :
         {"", "k", "-1", "1x", "1i", "1ib", "1kk", "1.5m", "0x10", "16777216t", "18446744073709551616"}) {
        EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
        EXPECT_NE(validate_size(wrong), "") << wrong;
    }
    EXPECT_EQ(validate_size("1g"), "");
}

TEST(byte_size, is_shown_in_the_largest_unit_that_it_fills) {
    EXPECT_EQ(size_text(1023), "1023 bytes");
    EXPECT_EQ(size_text(1536), "1.5 KiB");
    EXPECT_EQ(size_text(std::uint64_t{5} << 40), "5.0 TiB");
}

}  // namespace
}  // namespace sluice::cli

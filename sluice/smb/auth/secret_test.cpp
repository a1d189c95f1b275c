#include "sluice/smb/auth/secret.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <ostream>

#include "sluice/smb/auth/hex_testing.hpp"

namespace sluice::smb::auth {
namespace {

template <class T>
concept printable = requires(std::ostream& out, const T& value) { out << value; };
static_assert(!std::is_copy_constructible_v<secret_bytes<16>> and !printable<secret_bytes<16>>);
static_assert(!std::equality_comparable<secret_bytes<16>>);

TEST(secret_bytes, are_zero_after_a_move) {
    secret_bytes<4> secret(array_from_hex<4>("01020304"));
    const secret_bytes<4> moved = std::move(secret);
    EXPECT_EQ(to_hex(moved.view()), "01020304");
    EXPECT_EQ(to_hex(secret.view()), "00000000");  // NOLINT: this is the tested property
}

TEST(secret_bytes, are_overwritten_when_they_are_destroyed) {
    alignas(secret_bytes<16>) std::array<std::byte, sizeof(secret_bytes<16>)> memory;
    auto* const secret = new (memory.data()) secret_bytes<16>(bytes_view(from_hex(std::string(32, 'a'))));
    ASSERT_EQ(to_hex(memory), std::string(32, 'a'));
    std::destroy_at(secret);
    EXPECT_EQ(to_hex(memory), std::string(32, '0'));
}

TEST(equal_in_constant_time, differs_exactly_when_a_bit_or_the_length_differs) {
    const auto secret = from_hex("00112233445566778899aabbccddeeff");
    EXPECT_TRUE(equal_in_constant_time(secret, secret));
    EXPECT_TRUE(equal_in_constant_time({}, {}));
    EXPECT_FALSE(equal_in_constant_time(secret, *bytes_view(secret).first(15)));
    for (std::size_t bit = 0; bit < 128; ++bit) {
        auto guess = secret;
        guess[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(equal_in_constant_time(secret, guess)) << bit;
    }
}

}  // namespace
}  // namespace sluice::smb::auth

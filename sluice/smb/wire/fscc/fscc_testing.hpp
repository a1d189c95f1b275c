#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/utf16.hpp"

// Helpers of the fscc tests: structures of random values, and the properties of every codec.

namespace sluice::smb::wire::testing {

/// A source of values for the fields of one random structure.
class field_source {
public:
    explicit field_source(std::uint64_t seed) noexcept : random_(seed) {}

    [[nodiscard]] std::uint64_t u64() noexcept { return random_.next_u64(); }
    [[nodiscard]] std::uint64_t size() noexcept { return random_.next_u64() >> 1; }
    [[nodiscard]] std::uint32_t u32() noexcept { return static_cast<std::uint32_t>(random_.next_u64()); }
    [[nodiscard]] std::uint16_t u16() noexcept { return static_cast<std::uint16_t>(random_.next_u64()); }
    [[nodiscard]] std::uint8_t u8() noexcept { return static_cast<std::uint8_t>(random_.next_u64()); }
    [[nodiscard]] bool yes() noexcept { return random_.below(2) == 0; }
    [[nodiscard]] std::size_t below(std::size_t bound) noexcept { return random_.below(bound); }
    template <std::size_t Size>
    [[nodiscard]] std::array<std::byte, Size> bytes() noexcept {
        std::array<std::byte, Size> filled{};
        random_.fill(filled);
        return filled;
    }
    /// Returns up to `characters_max` characters, of one to four bytes and one or two UTF-16 units.
    [[nodiscard]] std::string name(std::size_t characters_max = 12) {
        static constexpr std::array<std::string_view, 6> characters = {"a", "B", ".", "ß", "漢", "😀"};
        std::string text;
        for (std::size_t left = below(characters_max + 1); left != 0; --left)
            text += characters[below(characters.size())];
        return text;
    }

private:
    seeded_random random_;
};

/// Returns the bytes that `write(byte_writer&)` writes.
template <class Write>
std::vector<std::byte> written(Write&& write) {
    std::vector<std::byte> room(4096);
    byte_writer writer{mutable_bytes(room)};
    write(writer);
    const auto bytes = writer.finish();
    EXPECT_TRUE(bytes.has_value());
    return {bytes->begin(), bytes->end()};
}

/// Checks a structure and its codec: the bytes are `fixed_bytes` plus the length of the text; they
/// decode to the structure, also with bytes after them; every shorter prefix is rejected; and a
/// buffer that is one byte too small overflows.
template <class T, class Decode>
void expect_round_trip(const T& structure, Decode&& decode, std::size_t text_bytes, std::size_t fixed_bytes) {
    std::vector<std::byte> bytes = written([&](byte_writer& writer) { (void)encode(writer, structure); });
    EXPECT_EQ(bytes.size(), fixed_bytes + text_bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(decode(*bytes_view(bytes).first(size)).has_value()) << size << " bytes are not enough";
        std::vector<std::byte> room(size);
        byte_writer writer{mutable_bytes(room)};
        (void)encode(writer, structure);
        EXPECT_TRUE(writer.overflowed());
    }
    const auto again = decode(bytes_view(bytes));
    ASSERT_TRUE(again.has_value()) << name_of(again.error());
    EXPECT_TRUE(*again == structure);
    bytes.push_back(std::byte{0xFF});
    const auto with_more = decode(bytes_view(bytes));
    ASSERT_TRUE(with_more.has_value());
    EXPECT_TRUE(*with_more == structure);
}

inline std::string text_of(bytes_view utf16) {
    return utf8_of(utf16).value_or("(no text)");
}

}  // namespace sluice::smb::wire::testing

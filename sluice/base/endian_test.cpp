#include "sluice/base/endian.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>

namespace sluice {
namespace {

template <class Field, class Other>
concept comparable = requires(Field field, Other other) { field == other; };
template <class Field, class Other>
concept ordered = requires(Field field, Other other) { field < other; };
template <class Field, class Other>
concept assignable = requires(Field field, Other other) { field = other; };

// Checks that invalid uses of a field type do not compile.
template <class Field>
consteval bool is_strict() {
    using integer = typename Field::value_type;
    static_assert(!std::convertible_to<integer, Field> and std::constructible_from<Field, integer>);
    static_assert(!std::convertible_to<Field, integer> and !std::constructible_from<integer, Field>);
    static_assert(!std::constructible_from<bool, Field>);
    static_assert(!comparable<Field, integer> and !comparable<integer, Field> and !comparable<Field, int>);
    static_assert(!ordered<Field, integer> and !ordered<Field, int> and !ordered<Field, Field>);
    static_assert(!assignable<Field, integer> and !assignable<Field, int>);
    static_assert(comparable<Field, Field>);
    static_assert(std::is_trivially_copyable_v<Field> and alignof(Field) == 1 and
                  sizeof(Field) == sizeof(integer));
    return true;
}
static_assert(is_strict<le8>() and is_strict<le16>() and is_strict<le32>() and is_strict<le64>());
static_assert(is_strict<be16>() and is_strict<be32>() and is_strict<be64>());
static_assert(!comparable<le16, be16> and !assignable<le16, be16> and !std::constructible_from<le16, be16>);
static_assert(!comparable<le16, le32> and !std::constructible_from<le32, le16>);

static_assert(le32(0x01020304).value() == 0x01020304);  // usable at compile time

template <class Field>
std::string bytes_of(Field field) {
    std::string bytes(sizeof(field), '\0');
    std::memcpy(bytes.data(), &field, sizeof(field));
    return bytes;
}

TEST(endian, little_endian_fields_put_the_least_byte_first) {
    EXPECT_EQ(bytes_of(le8(0x01)), "\x01");
    EXPECT_EQ(bytes_of(le16(0x0102)), "\x02\x01");
    EXPECT_EQ(bytes_of(le32(0x01020304)), "\x04\x03\x02\x01");
    EXPECT_EQ(bytes_of(le64(0x0102030405060708)), "\x08\x07\x06\x05\x04\x03\x02\x01");
}

TEST(endian, big_endian_fields_put_the_greatest_byte_first) {
    EXPECT_EQ(bytes_of(be16(0x0102)), "\x01\x02");
    EXPECT_EQ(bytes_of(be32(0x01020304)), "\x01\x02\x03\x04");
    EXPECT_EQ(bytes_of(be64(0x0102030405060708)), "\x01\x02\x03\x04\x05\x06\x07\x08");
}

TEST(endian, value_returns_the_stored_number) {
    EXPECT_EQ(le16(0xfffe).value(), 0xfffe);
    EXPECT_EQ(be16(0xfffe).value(), 0xfffe);
    EXPECT_EQ(le64(0xfedcba9876543210).value(), 0xfedcba9876543210);
    EXPECT_EQ(be64(0xfedcba9876543210).value(), 0xfedcba9876543210);
}

TEST(endian, a_field_is_zero_by_default) {
    EXPECT_EQ(le32().value(), 0u);
}

TEST(endian, a_struct_of_fields_has_no_padding) {
    struct header {
        le8 kind;
        le64 offset;
        be16 port;
        le32 length;
    };
    static_assert(sizeof(header) == 15 and alignof(header) == 1 and offsetof(header, length) == 11);
    const header changed = {.kind = le8(1), .offset = le64(2), .port = be16(3), .length = le32(4)};
    EXPECT_EQ(changed.offset.value(), 2u);
}

}  // namespace
}  // namespace sluice

#include "sluice/base/byte_cursor.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "sluice/base/endian.hpp"
#include "sluice/base/random.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();

std::vector<std::byte> some_bytes(std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (const int value : values)
        bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

std::vector<std::byte> copy_of(bytes_view bytes) {
    return {bytes.begin(), bytes.end()};
}

TEST(byte_reader, reads_from_front_to_back) {
    const auto buffer = some_bytes({1, 2, 3, 4, 5, 6, 7});
    byte_reader reader(buffer);
    EXPECT_EQ(reader.take<le16>()->value(), 0x0201);
    EXPECT_TRUE(reader.skip(1));
    EXPECT_EQ(copy_of(*reader.take_bytes(2)), some_bytes({4, 5}));
    EXPECT_EQ(reader.position(), 5u);
    EXPECT_EQ(reader.remaining(), 2u);
    EXPECT_EQ(copy_of(reader.rest()), some_bytes({6, 7}));
}

TEST(byte_reader, a_step_that_does_not_fit_consumes_nothing) {
    const auto buffer = some_bytes({1, 2, 3});
    byte_reader reader(buffer);
    EXPECT_TRUE(reader.skip(1));
    EXPECT_FALSE(reader.take<le32>());
    EXPECT_FALSE(reader.take_bytes(3));
    EXPECT_FALSE(reader.take_bytes(u64_max));
    EXPECT_FALSE(reader.skip(3));
    EXPECT_FALSE(reader.skip(u64_max));
    EXPECT_FALSE(reader.align_to(8));
    EXPECT_EQ(reader.take<le16>()->value(), 0x0302);
    EXPECT_TRUE(reader.skip(0));
    EXPECT_EQ(reader.take_bytes(0)->size(), 0u);
}

TEST(byte_reader, aligns_relative_to_where_it_began) {
    const std::vector<std::byte> buffer(9);
    byte_reader reader(bytes_view(buffer.data() + 1, 8));
    EXPECT_TRUE(reader.align_to(8));
    EXPECT_EQ(reader.position(), 0u);
    EXPECT_TRUE(reader.skip(1) and reader.align_to(4));
    EXPECT_EQ(reader.position(), 4u);
    EXPECT_TRUE(reader.align_to(1) and reader.align_to(4));
    EXPECT_EQ(reader.position(), 4u);
}

TEST(byte_reader, of_no_bytes_is_at_its_end) {
    byte_reader reader{bytes_view()};
    EXPECT_EQ(reader.remaining(), 0u);
    EXPECT_FALSE(reader.take<le8>());
    EXPECT_TRUE(reader.align_to(8));
}

TEST(byte_writer, writes_from_front_to_back) {
    std::array<std::byte, 16> room;
    room.fill(std::byte{0xee});
    byte_writer writer(room);
    writer.put(le16(0x0201));
    writer.put_zeros(1);
    writer.put_bytes(some_bytes({7, 8}));
    writer.align_to(8);
    writer.put(be16(0x0102));
    EXPECT_EQ(writer.position(), 10u);
    EXPECT_EQ(copy_of(*writer.finish()), some_bytes({1, 2, 0, 7, 8, 0, 0, 0, 1, 2}));
    EXPECT_EQ(room[10], std::byte{0xee});
}

TEST(byte_writer, fills_its_buffer_to_the_last_byte) {
    std::array<std::byte, 4> room;
    byte_writer writer(room);
    writer.put(le32(1));
    writer.put_zeros(0);
    EXPECT_FALSE(writer.overflowed());
    EXPECT_EQ(writer.finish()->size(), 4u);
}

TEST(byte_writer, a_value_that_does_not_fit_is_not_written_nor_any_later_one) {
    std::array<std::byte, 3> room{};
    byte_writer writer(room);
    writer.put(le8(1));
    writer.put(le32(0xffffffff));
    writer.put(le8(0xff));
    EXPECT_TRUE(writer.overflowed());
    EXPECT_EQ(writer.position(), 1u);
    EXPECT_FALSE(writer.finish());
    EXPECT_EQ(copy_of(room), some_bytes({1, 0, 0}));
}

TEST(byte_writer, a_length_near_the_greatest_does_not_wrap) {
    std::array<std::byte, 8> room{};
    byte_writer writer(room);
    writer.put(le32(1));
    writer.put_zeros(std::numeric_limits<std::size_t>::max());
    EXPECT_TRUE(writer.overflowed());
}

TEST(byte_writer, patches_a_field_reserved_before_its_value_was_known) {
    std::array<std::byte, 8> room{};
    byte_writer writer(room);
    writer.put(le8(9));
    const auto length = writer.reserve<le16>();
    EXPECT_EQ(copy_of(*writer.finish()), some_bytes({9, 0, 0}));
    const std::size_t start = writer.position();
    writer.put_bytes(some_bytes({1, 2, 3}));
    writer.patch(length, le16(static_cast<std::uint16_t>(writer.position() - start)));
    EXPECT_EQ(copy_of(*writer.finish()), some_bytes({9, 3, 0, 1, 2, 3}));
}

TEST(byte_writer, patching_after_an_overflow_does_nothing) {
    std::array<std::byte, 2> room{};
    byte_writer writer(room);
    const auto fits = writer.reserve<le16>();
    const auto too_much = writer.reserve<le16>();
    writer.patch(fits, le16(0xffff));
    writer.patch(too_much, le16(0xffff));
    EXPECT_EQ(copy_of(room), some_bytes({0, 0}));
    EXPECT_FALSE(writer.finish());
}

TEST(byte_writer, claims_bytes_for_the_caller_to_fill) {
    std::array<std::byte, 4> room{};
    byte_writer writer(room);
    writer.put(le8(1));
    const auto claimed = writer.claim(2);
    ASSERT_TRUE(claimed);
    (*claimed)[1] = std::byte{5};
    EXPECT_EQ(copy_of(*writer.finish()), some_bytes({1, 0, 5}));
    EXPECT_FALSE(writer.claim(2));
    EXPECT_TRUE(writer.overflowed());
}

TEST(byte_writer, without_a_buffer_accepts_only_empty_values) {
    byte_writer writer{mutable_bytes()};
    writer.put_bytes({});
    writer.put_zeros(0);
    EXPECT_TRUE(writer.claim(0));
    EXPECT_TRUE(writer.finish());
    writer.put(le8(0));
    EXPECT_FALSE(writer.finish());
}

TEST(byte_cursor, written_values_read_back_the_same) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        seeded_random random(seed);
        std::vector<std::byte> room(random.below(400));
        byte_writer writer(room);
        for (int field = 0; field < 20; ++field) {
            writer.put(le64(seed * 100 + field));
            writer.align_to(std::size_t{1} << field % 5);
        }
        if (!writer.finish()) {
            EXPECT_LT(room.size(), 20u * 24u);
            continue;
        }
        byte_reader reader(*writer.finish());
        for (int field = 0; field < 20; ++field) {
            ASSERT_EQ(reader.take<le64>()->value(), seed * 100 + field);
            ASSERT_TRUE(reader.align_to(std::size_t{1} << field % 5));
        }
        EXPECT_EQ(reader.remaining(), 0u);
    }
}

TEST(byte_cursor_death, misuse_stops_the_program) {
    EXPECT_DEATH(
        {
            byte_reader reader{bytes_view()};
            (void)reader.align_to(3);
        },
        "single_bit");
    EXPECT_DEATH(
        {
            std::vector<std::byte> room(8);
            byte_writer writer(room);
            writer.put(le32(0));
            const auto field = writer.reserve<le16>();
            byte_writer(room).patch(field, le16(1));
        },
        "another writer");
}

}  // namespace
}  // namespace sluice

#include "sluice/smb/wire/file/lock.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const lock_element first{.offset_bytes = 1, .length_bytes = 2, .flags = lock_flags::exclusive};
const lock_element second{.offset_bytes = ~0ULL, .length_bytes = ~0ULL, .flags = lock_flags::unlock};
const std::array elements{encode_lock_element(first), encode_lock_element(second)};
const lock_args request{.file = {.persistent_part = le64(3), .volatile_part = le64(4)},
                        .sequence_number = 15,
                        .sequence_index = 0x0abcdef1,
                        .elements = lock_list(elements)};

TEST(lock, has_its_fields_where_the_specification_puts_them) {
    const message_bytes body = body_of(request);
    const bytes_view view(body);
    ASSERT_EQ(body.size(), 72u);
    EXPECT_EQ(view.take_at<le16>(0)->value(), 48);
    EXPECT_EQ(view.take_at<le16>(2)->value(), 2);
    EXPECT_EQ(view.take_at<le32>(4)->value(), 0xabcdef1fu);
    EXPECT_EQ(view.take_at<le64>(8)->value(), 3u);
    EXPECT_EQ(view.take_at<le64>(24)->value(), 1u);
    EXPECT_EQ(view.take_at<le64>(32)->value(), 2u);
    EXPECT_EQ(view.take_at<le32>(40)->value(), 2u);
    EXPECT_EQ(view.take_at<le64>(48)->value(), ~0ULL);
}

TEST(lock, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_lock);
    expect_round_trip(lock_reply{}, decode_lock_reply);
    const message_bytes message = message_of(request);
    const auto args = decode_bytes(message, decode_lock);
    ASSERT_EQ(args->elements.size(), 2u);
    EXPECT_EQ(args->elements[0], first);
    EXPECT_EQ(args->elements[1], second);
}

TEST(lock, fixed_parts_are_checked) {
    expect_fixed_part_checked(request, 24, decode_lock);
    expect_fixed_part_checked(lock_reply{}, 4, decode_lock_reply);
}

TEST(lock, no_range_or_fewer_than_announced_is_rejected) {
    const message_bytes message = message_of(request);
    expect_refused(with_field(message, 2, le16(0)), decode_error::missing, decode_lock);
    expect_refused(with_field(message, 2, le16(3)), decode_error::range_outside_message, decode_lock);
    const message_bytes cut(message.begin(), message.end() - 1);
    expect_refused(cut, decode_error::range_outside_message, decode_lock);
}

}  // namespace
}  // namespace sluice::smb::wire

#include "sluice/smb/wire/file/read.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const read_args request{.file = {.persistent_part = le64(1), .volatile_part = le64(2)},
                        .offset_bytes = 0x1122334455667788,
                        .length_bytes = 3,
                        .minimum_bytes = 4,
                        .padding = 0x50,
                        .flags = read_flags::unbuffered,
                        .channel = io_channel::rdma_v1,
                        .remaining_bytes = 5,
                        .channel_info = text_bytes("sixteen in a row")};
const read_reply reply{.data = text_bytes("data"), .remaining_bytes = 6, .flags = 7};

TEST(read, request_has_its_fields_where_the_specification_puts_them) {
    const message_bytes body = body_of(request);
    const bytes_view view(body);
    ASSERT_EQ(body.size(), 64u);
    EXPECT_EQ(view.take_at<le16>(0)->value(), 49);
    EXPECT_EQ(view.take_at<le8>(2)->value(), 0x50);
    EXPECT_EQ(view.take_at<le8>(3)->value(), 1);
    EXPECT_EQ(view.take_at<le32>(4)->value(), 3u);
    EXPECT_EQ(view.take_at<le64>(8)->value(), 0x1122334455667788u);
    EXPECT_EQ(view.take_at<le64>(16)->value(), 1u);
    EXPECT_EQ(view.take_at<le64>(24)->value(), 2u);
    EXPECT_EQ(view.take_at<le32>(32)->value(), 4u);
    EXPECT_EQ(view.take_at<le32>(36)->value(), 1u);
    EXPECT_EQ(view.take_at<le32>(40)->value(), 5u);
    EXPECT_EQ(view.take_at<le16>(44)->value(), 112);
    EXPECT_EQ(view.take_at<le16>(46)->value(), 16);
}

TEST(read, reply_has_its_data_after_16_bytes) {
    EXPECT_EQ(body_of(reply),
              some_bytes({17, 0, 80, 0, 4, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 'd', 'a', 't', 'a'}));
}

TEST(read, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_read);
    expect_round_trip(read_args{}, decode_read);
    expect_round_trip(reply, decode_read_reply);
    expect_round_trip(read_reply{}, decode_read_reply);
}

TEST(read, request_without_channel_information_still_has_its_one_byte) {
    EXPECT_EQ(body_of(read_args{}).size(), 49u);
}

TEST(read, head_of_a_reply_leaves_the_data_to_the_caller) {
    message_bytes room(256);
    byte_writer writer{mutable_bytes(room)};
    encode(writer, header{.flags = header_flags::response});
    encode_read_reply_head(writer, 4);
    EXPECT_EQ(writer.position(), read_reply_data_offset);
    writer.put_bytes(text_bytes("data"));
    const message_bytes message = copy_of(*writer.finish());
    EXPECT_EQ(decode_bytes(message, decode_read_reply), read_reply{.data = text_bytes("data")});
}

TEST(read, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request, 48, decode_read);
    expect_fixed_part_checked(reply, 16, decode_read_reply);
    expect_range_checked<le16, le16>(request, {.offset_at = 44, .length_at = 46}, decode_read);
    expect_range_checked<le8, le32>(reply, {.offset_at = 2, .length_at = 4}, decode_read_reply);
}

}  // namespace
}  // namespace sluice::smb::wire

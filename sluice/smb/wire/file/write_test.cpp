#include "sluice/smb/wire/file/write.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const write_args request{.file = {.persistent_part = le64(1), .volatile_part = le64(2)},
                         .offset_bytes = 0x1122334455667788,
                         .flags = write_flags::write_through,
                         .channel = io_channel::none,
                         .remaining_bytes = 3,
                         .channel_info = {},
                         .data = text_bytes("data")};

TEST(write, request_has_its_fields_where_the_specification_puts_them) {
    const message_bytes body = body_of(request);
    const bytes_view view(body);
    ASSERT_EQ(body.size(), 52u);
    EXPECT_EQ(view.take_at<le16>(0)->value(), 49);
    EXPECT_EQ(view.take_at<le16>(2)->value(), 112);
    EXPECT_EQ(view.take_at<le32>(4)->value(), 4u);
    EXPECT_EQ(view.take_at<le64>(8)->value(), 0x1122334455667788u);
    EXPECT_EQ(view.take_at<le64>(16)->value(), 1u);
    EXPECT_EQ(view.take_at<le64>(24)->value(), 2u);
    EXPECT_EQ(view.take_at<le32>(36)->value(), 3u);
    EXPECT_EQ(view.take_at<le32>(44)->value(), 1u);
}

TEST(write, reply_is_the_count_and_reserved_fields) {
    EXPECT_EQ(body_of(write_reply{.count_bytes = 258}),
              some_bytes({17, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(write, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_write);
    expect_round_trip(write_args{}, decode_write);
    write_args by_rdma = request;
    by_rdma.channel = io_channel::rdma_v1_invalidate;
    by_rdma.channel_info = text_bytes("sixteen in a row");
    expect_round_trip(by_rdma, decode_write);
    expect_round_trip(write_reply{.count_bytes = 4}, decode_write_reply);
}

TEST(write, head_of_a_request_leaves_the_data_to_the_caller) {
    message_bytes room(256);
    byte_writer writer{mutable_bytes(room)};
    encode(writer, header{});
    encode_write_request_head(writer, request, 4);
    EXPECT_EQ(writer.position(), write_request_fixed_bytes);
    writer.put_bytes(text_bytes("data"));
    const message_bytes message = copy_of(*writer.finish());
    EXPECT_EQ(decode_bytes(message, decode_write), request);
}

TEST(write, fixed_parts_are_checked) {
    expect_fixed_part_checked(request, 48, decode_write);
    expect_fixed_part_checked(write_reply{}, 16, decode_write_reply);
}

TEST(write, data_outside_the_message_are_rejected) {
    const message_bytes message = message_of(request);
    expect_refused(with_field(message, 4, le32(5)), decode_error::range_outside_message, decode_write);
    expect_refused(with_field(message, 4, le32(0xffffffff)), decode_error::range_outside_message,
                   decode_write);
    expect_refused(with_field(message, 2, le16(111)), decode_error::range_outside_message, decode_write);
    expect_refused(with_field(message, 2, le16(113)), decode_error::range_outside_message, decode_write);
    EXPECT_TRUE(decode_bytes(with_field(with_field(message, 2, le16(0)), 4, le32(0)), decode_write));
}

TEST(write, data_at_an_offset_above_256_are_rejected_even_if_empty) {
    const message_bytes message = with_field(message_of(request), 4, le32(0));
    EXPECT_TRUE(decode_bytes(with_field(message, 2, le16(0x100)), decode_write));
    expect_refused(with_field(message, 2, le16(0x101)), decode_error::bad_value, decode_write);
}

TEST(write, channel_information_outside_the_message_is_rejected) {
    write_args by_rdma = request;
    by_rdma.channel_info = text_bytes("sixteen in a row");
    expect_range_checked<le16, le16>(by_rdma, {.offset_at = 40, .length_at = 42}, decode_write);
}

}  // namespace
}  // namespace sluice::smb::wire

#include "sluice/smb/wire/file/ioctl.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const ioctl_args request{.code = control_code::srv_copychunk,
                         .file = {.persistent_part = le64(1), .volatile_part = le64(2)},
                         .flags = ioctl_flags::is_fsctl,
                         .input_bytes_max = 3,
                         .output_bytes_max = 4,
                         .input = text_bytes("input")};
const ioctl_reply reply{.code = control_code::pipe_transceive,
                        .file = file_id_of_no_file,
                        .input = text_bytes("in"),
                        .output = text_bytes("output")};

TEST(ioctl, request_has_its_fields_where_the_specification_puts_them) {
    const message_bytes body = body_of(request);
    const bytes_view view(body);
    ASSERT_EQ(body.size(), 61u);
    EXPECT_EQ(view.take_at<le16>(0)->value(), 57);
    EXPECT_EQ(view.take_at<le32>(4)->value(), 0x001440f2u);
    EXPECT_EQ(view.take_at<le64>(8)->value(), 1u);
    EXPECT_EQ(view.take_at<le32>(24)->value(), 120u);
    EXPECT_EQ(view.take_at<le32>(28)->value(), 5u);
    EXPECT_EQ(view.take_at<le32>(32)->value(), 3u);
    EXPECT_EQ(view.take_at<le32>(40)->value(), 0u);
    EXPECT_EQ(view.take_at<le32>(44)->value(), 4u);
    EXPECT_EQ(view.take_at<le32>(48)->value(), 1u);
}

TEST(ioctl, reply_has_its_output_aligned_after_its_input) {
    const message_bytes body = body_of(reply);
    const bytes_view view(body);
    EXPECT_EQ(view.take_at<le16>(0)->value(), 49);
    EXPECT_EQ(view.take_at<le32>(4)->value(), 0x0011c017u);
    EXPECT_EQ(view.take_at<le64>(8)->value(), ~0ULL);
    EXPECT_EQ(view.take_at<le32>(24)->value(), 112u);
    EXPECT_EQ(view.take_at<le32>(28)->value(), 2u);
    EXPECT_EQ(view.take_at<le32>(32)->value(), 120u);
    EXPECT_EQ(view.take_at<le32>(36)->value(), 6u);
    EXPECT_EQ(body.size(), 62u);
}

TEST(ioctl, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_ioctl);
    expect_round_trip(ioctl_args{}, decode_ioctl);
    expect_round_trip(reply, decode_ioctl_reply);
    expect_round_trip(ioctl_reply{}, decode_ioctl_reply);
}

TEST(ioctl, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request, 56, decode_ioctl);
    expect_fixed_part_checked(reply, 48, decode_ioctl_reply);
    expect_range_checked<le32, le32>(request, {.offset_at = 24, .length_at = 28}, decode_ioctl);
    expect_range_checked<le32, le32>(reply, {.offset_at = 24, .length_at = 28}, decode_ioctl_reply);
    expect_range_checked<le32, le32>(reply, {.offset_at = 32, .length_at = 36}, decode_ioctl_reply);
}

}  // namespace
}  // namespace sluice::smb::wire

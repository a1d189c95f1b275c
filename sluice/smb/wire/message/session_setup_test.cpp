#include "sluice/smb/wire/message/session_setup.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

session_setup_args request() {
    return {.flags = session_setup_flags::binding,
            .security_mode = security_mode::signing_required,
            .capabilities = capabilities::dfs,
            .previous_session_id = 0x1122334455667788,
            .security_blob = text_bytes("token")};
}

session_setup_reply reply() {
    return {.flags = session_flags::encrypt_data, .security_blob = text_bytes("answer")};
}

TEST(session_setup, has_its_fields_where_the_specification_puts_them) {
    const message_bytes body = body_of(request());
    const bytes_view view(body);
    EXPECT_EQ(view.take_at<le16>(0)->value(), 25);
    EXPECT_EQ(view.take_at<le8>(2)->value(), 1);
    EXPECT_EQ(view.take_at<le8>(3)->value(), 2);
    EXPECT_EQ(view.take_at<le32>(4)->value(), 1u);
    EXPECT_EQ(view.take_at<le16>(12)->value(), 88);
    EXPECT_EQ(view.take_at<le16>(14)->value(), 5);
    EXPECT_EQ(view.take_at<le64>(16)->value(), 0x1122334455667788u);
    EXPECT_EQ(body.size(), 29u);
}

TEST(session_setup, is_unchanged_by_a_round_trip) {
    expect_round_trip(request(), decode_session_setup);
    expect_round_trip(session_setup_args{}, decode_session_setup);
    expect_round_trip(reply(), decode_session_setup_reply);
    expect_round_trip(session_setup_reply{}, decode_session_setup_reply);
}

TEST(session_setup, a_request_without_a_blob_still_has_its_one_byte) {
    EXPECT_EQ(body_of(session_setup_args{}).size(), 25u);
}

TEST(session_setup, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request(), 24, decode_session_setup);
    expect_fixed_part_checked(reply(), 8, decode_session_setup_reply);
    expect_range_checked<le16, le16>(request(), {.offset_at = 12, .length_at = 14}, decode_session_setup);
    expect_range_checked<le16, le16>(reply(), {.offset_at = 4, .length_at = 6}, decode_session_setup_reply);
}

}  // namespace
}  // namespace sluice::smb::wire

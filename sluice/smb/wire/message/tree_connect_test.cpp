#include "sluice/smb/wire/message/tree_connect.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

using namespace std::string_view_literals;

tree_connect_args request() {
    return {.flags = tree_connect_flags::cluster_reconnect,
            .path = text_bytes("a\0b\0c\0"sv),
            .remoted_identity = {}};
}

tree_connect_args extended() {
    return {.flags = tree_connect_flags::extension_present,
            .path = text_bytes("a\0b\0c\0"sv),
            .remoted_identity = text_bytes("who")};
}

TEST(tree_connect, has_its_fields_where_the_specification_puts_them) {
    const message_bytes body = body_of(request());
    EXPECT_EQ(body, some_bytes({9, 0, 1, 0, 72, 0, 6, 0, 'a', 0, 'b', 0, 'c', 0}));
    const tree_connect_reply reply{.type = share_type::pipe,
                                   .flags = share_flags::no_caching,
                                   .capabilities = share_capabilities::dfs,
                                   .maximal_access = file_all_access};
    EXPECT_EQ(body_of(reply), some_bytes({16, 0, 2, 0, 0x30, 0, 0, 0, 8, 0, 0, 0, 0xff, 1, 0x1f, 0}));
}

TEST(tree_connect, is_unchanged_by_a_round_trip) {
    expect_round_trip(request(), decode_tree_connect);
    expect_round_trip(tree_connect_args{}, decode_tree_connect);
    expect_round_trip(tree_connect_reply{.type = share_type::disk,
                                         .flags = share_flags::encrypt_data,
                                         .capabilities = share_capabilities::scaleout,
                                         .maximal_access = access_mask::read_data},
                      decode_tree_connect_reply);
}

TEST(tree_connect, extension_round_trips_with_and_without_an_identity) {
    expect_round_trip(extended(), decode_tree_connect);
    tree_connect_args anonymous = extended();
    anonymous.remoted_identity.reset();
    expect_round_trip(anonymous, decode_tree_connect);
    tree_connect_args without_path = extended();
    without_path.path = {};
    expect_round_trip(without_path, decode_tree_connect);
}

TEST(tree_connect, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request(), 8, decode_tree_connect);
    expect_fixed_part_checked(tree_connect_reply{}, 16, decode_tree_connect_reply);
    expect_range_checked<le16, le16>(request(), {.offset_at = 4, .length_at = 6}, decode_tree_connect);
}

TEST(tree_connect, a_path_of_an_odd_number_of_bytes_is_rejected) {
    expect_refused(with_field(message_of(request()), 6, le16(5)), decode_error::bad_text,
                   decode_tree_connect);
}

TEST(tree_connect, an_incomplete_extension_is_rejected) {
    const message_bytes plain = message_of(request());
    const message_bytes flagged = with_field(plain, 2, le16(4));
    expect_refused(flagged, decode_error::truncated, decode_tree_connect);

    const message_bytes message = message_of(extended());
    expect_refused(with_field(message, 8, le32(0xffffffff)), decode_error::range_outside_message,
                   decode_tree_connect);
    expect_refused(with_field(message, 12, le16(2)), decode_error::truncated, decode_tree_connect);
    expect_refused(with_field(message, 12, le16(17)), decode_error::too_many, decode_tree_connect);
    const message_bytes cut(message.begin(), message.end() - 1);
    expect_refused(cut, decode_error::truncated, decode_tree_connect);
}

}  // namespace
}  // namespace sluice::smb::wire

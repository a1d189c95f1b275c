#include "sluice/smb/wire/message/error_response.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

using namespace std::string_view_literals;

const symlink_error link{.unparsed_path_bytes = 10,
                         .relative = true,
                         .substitute_name = text_bytes("a\0b\0"sv),
                         .print_name = text_bytes("c\0"sv)};

message_bytes data_of(const symlink_error& error) {
    message_bytes room(256);
    byte_writer writer{mutable_bytes(room)};
    encode(writer, error);
    return copy_of(*writer.finish());
}

TEST(error_response, without_data_is_nine_bytes) {
    EXPECT_EQ(body_of(error_reply{}), some_bytes({9, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(error_response, is_unchanged_by_a_round_trip) {
    expect_round_trip(error_reply{}, decode_error_reply);
    expect_round_trip(error_reply{.data = text_bytes("data")}, decode_error_reply);
    expect_round_trip(error_reply{.data = text_bytes("data"), .id = error_id::none}, decode_error_reply);
    expect_round_trip(error_reply{.data = {}, .id = error_id::share_redirect}, decode_error_reply);
}

TEST(error_response, fixed_part_and_data_are_checked) {
    const error_reply reply{.data = text_bytes("data")};
    expect_fixed_part_checked(reply, 8, decode_error_reply);
    const message_bytes message = message_of(reply);
    expect_refused(with_field(message, 4, le32(5)), decode_error::range_outside_message, decode_error_reply);
    expect_refused(with_field(message, 4, le32(0xffffffff)), decode_error::range_outside_message,
                   decode_error_reply);
}

TEST(error_response, a_context_that_does_not_fit_the_data_is_truncated) {
    const message_bytes message = message_of(error_reply{.data = text_bytes("data"), .id = error_id::none});
    expect_refused(with_field(message, 4, le32(7)), decode_error::truncated, decode_error_reply);
    expect_refused(with_field(message, 8, le32(5)), decode_error::truncated, decode_error_reply);
}

TEST(error_response, required_length_is_one_number) {
    const auto data = some_bytes({1, 2, 0, 0});
    EXPECT_EQ(decode_required_bytes(data), 0x201u);
    EXPECT_EQ(decode_required_bytes(*bytes_view(data).first(3)), std::unexpected(decode_error::truncated));
    message_bytes room(8);
    byte_writer writer{mutable_bytes(room)};
    encode_required_bytes(writer, 0x201);
    EXPECT_EQ(copy_of(*writer.finish()), data);
}

TEST(symlink_error, has_its_fields_where_the_specification_puts_them) {
    EXPECT_EQ(data_of(link),
              some_bytes({30, 0, 0, 0, 'S', 'Y', 'M', 'L', 0x0c, 0, 0, 0xa0, 18, 0,   10, 0,   0,
                          0,  4, 0, 4, 0,   2,   0,   1,   0,    0, 0, 'a',  0,  'b', 0,  'c', 0}));
}

TEST(symlink_error, is_unchanged_by_a_round_trip) {
    const message_bytes data = data_of(link);
    EXPECT_EQ(decode_symlink_error(data), link);
    const message_bytes empty = data_of({});
    EXPECT_EQ(decode_symlink_error(empty), symlink_error{});
}

TEST(symlink_error, truncation_at_any_byte_is_rejected) {
    const message_bytes data = data_of(link);
    for (std::size_t length = 0; length < data.size(); ++length) {
        const auto refused = decode_symlink_error(*bytes_view(data).first(length));
        EXPECT_EQ(refused.error(),
                  length < 28 ? decode_error::truncated : decode_error::range_outside_message);
    }
}

TEST(symlink_error, another_tag_or_an_odd_number_of_bytes_is_rejected) {
    const auto error_with = [](std::size_t offset, int value) {
        message_bytes data = data_of(link);
        data[offset] = static_cast<std::byte>(value);
        return decode_symlink_error(data).error();
    };
    EXPECT_EQ(error_with(4, 'X'), decode_error::bad_value);
    EXPECT_EQ(error_with(8, 3), decode_error::bad_value);
    EXPECT_EQ(error_with(18, 3), decode_error::bad_text);
    EXPECT_EQ(error_with(22, 1), decode_error::bad_text);
    EXPECT_EQ(error_with(16, 3), decode_error::range_outside_message);
}

}  // namespace
}  // namespace sluice::smb::wire

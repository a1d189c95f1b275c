#include "sluice/smb/wire/message/header.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/message/message_body.hpp"
#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

message_bytes encoded(const header& header) {
    message_bytes room(header_bytes);
    byte_writer writer{mutable_bytes(room)};
    encode(writer, header);
    return copy_of(*writer.finish());
}

const header request{.credit_charge = 2,
                     .channel_sequence = 7,
                     .command = command::read,
                     .credits = 33,
                     .flags = header_flags::signed_message | header_flags::related,
                     .next_command_bytes = 128,
                     .message_id = 0x1122334455667788,
                     .tree_id = 0xaabbccdd,
                     .session_id = 0x99,
                     .signature = {std::byte{1}, std::byte{2}}};

const header interim{.status = nt_status::pending,
                     .command = command::lock,
                     .credits = 1,
                     .flags = header_flags::response | header_flags::async,
                     .message_id = 5,
                     .async_id = 0x0102030405060708,
                     .session_id = 6};

TEST(header, has_its_fields_where_the_specification_puts_them) {
    const message_bytes bytes = encoded(request);
    ASSERT_EQ(bytes.size(), 64u);
    const bytes_view view(bytes);
    EXPECT_EQ(view.take_at<be32>(0)->value(), 0xfe534d42u);
    EXPECT_EQ(view.take_at<le16>(4)->value(), 64);
    EXPECT_EQ(view.take_at<le16>(6)->value(), 2);
    EXPECT_EQ(view.take_at<le32>(8)->value(), 7u);
    EXPECT_EQ(view.take_at<le16>(12)->value(), 8);
    EXPECT_EQ(view.take_at<le16>(14)->value(), 33);
    EXPECT_EQ(view.take_at<le32>(16)->value(), 0xcu);
    EXPECT_EQ(view.take_at<le32>(20)->value(), 128u);
    EXPECT_EQ(view.take_at<le64>(24)->value(), 0x1122334455667788u);
    EXPECT_EQ(view.take_at<le32>(36)->value(), 0xaabbccddu);
    EXPECT_EQ(view.take_at<le64>(40)->value(), 0x99u);
    EXPECT_EQ(view.take_at<be16>(48)->value(), 0x0102);
}

TEST(header, async_message_has_an_async_id_instead_of_the_tree_id) {
    const message_bytes bytes = encoded(interim);
    EXPECT_EQ(bytes_view(bytes).take_at<le64>(32)->value(), 0x0102030405060708u);
    EXPECT_EQ(bytes_view(bytes).take_at<le32>(8)->value(), 0x103u);
}

TEST(header, is_unchanged_by_a_round_trip) {
    EXPECT_EQ(decode_header(encoded(request)), request);
    EXPECT_EQ(decode_header(encoded(interim)), interim);
}

TEST(header, shorter_than_64_bytes_is_truncated) {
    const message_bytes bytes = encoded(request);
    for (std::size_t length = 0; length < 64; ++length) {
        EXPECT_EQ(decode_header(*bytes_view(bytes).first(length)), std::unexpected(decode_error::truncated));
    }
}

TEST(header, with_another_protocol_id_or_size_is_rejected) {
    message_bytes bytes = encoded(request);
    bytes[0] = std::byte{0xfd};
    EXPECT_EQ(decode_header(bytes), std::unexpected(decode_error::bad_protocol_id));
    bytes = encoded(request);
    bytes[4] = std::byte{65};
    EXPECT_EQ(decode_header(bytes), std::unexpected(decode_error::bad_structure_size));
}

TEST(header, commands_have_names) {
    EXPECT_EQ(name_of(command::negotiate), "negotiate");
    EXPECT_EQ(name_of(command::query_directory), "query_directory");
    EXPECT_EQ(name_of(command::oplock_break), "oplock_break");
    EXPECT_EQ(name_of(command(0x14)), "?");
}

TEST(message_view, counts_slices_from_the_header_and_returns_the_body_after_it) {
    message_bytes bytes = encoded(request);
    bytes.push_back(std::byte{0xaa});
    bytes.push_back(std::byte{0xbb});
    const auto message = message_view::of(bytes);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->header(), request);
    EXPECT_EQ(copy_of(message->body()), some_bytes({0xaa, 0xbb}));
    EXPECT_EQ(copy_of(*message->slice({.offset = 65, .length = 1})), some_bytes({0xbb}));
    EXPECT_FALSE(message->slice({.offset = 65, .length = 2}));
    EXPECT_FALSE(message->slice({.offset = ~0ULL, .length = 2}));
}

TEST(credit_charge, is_one_per_64_kib_rounded_up) {
    EXPECT_EQ(credit_charge_of(0), 1u);
    EXPECT_EQ(credit_charge_of(1), 1u);
    EXPECT_EQ(credit_charge_of(65536), 1u);
    EXPECT_EQ(credit_charge_of(65537), 2u);
    EXPECT_EQ(credit_charge_of(8 << 20), 128u);
    EXPECT_EQ(credit_charge_of(~0ULL), 1ULL << 48);
}

TEST(message_body_death, a_number_too_long_for_its_field_stops_the_program) {
    EXPECT_EQ(narrow<le16>(std::size_t{65535}).value(), 65535);
    EXPECT_DEATH((void)narrow<le16>(std::size_t{65536}), "too long");
}

}  // namespace
}  // namespace sluice::smb::wire

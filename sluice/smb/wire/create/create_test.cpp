#include "sluice/smb/wire/create/create.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

using namespace std::string_view_literals;

create_args request() {
    return {.oplock_level = oplock_level::batch,
            .impersonation_level = impersonation_level::delegate,
            .desired_access = file_generic_read,
            .file_attributes = file_attributes::hidden,
            .share_access = share_access::read | share_access::remove,
            .disposition = create_disposition::open_if,
            .options = create_options::non_directory_file,
            .name = text_bytes("a\0\\\0b\0"sv)};
}

create_reply reply() {
    return {.oplock_level = oplock_level::lease,
            .flags = create_reply_flags::reparse_point,
            .action = create_action::created,
            .information = {.creation_time = filetime(std::uint64_t{1}),
                            .last_access_time = filetime(std::uint64_t{2}),
                            .last_write_time = filetime(std::uint64_t{3}),
                            .change_time = filetime(std::uint64_t{4}),
                            .allocation_bytes = 5,
                            .end_of_file_bytes = 6,
                            .attributes = file_attributes::archive},
            .file = {.persistent_part = le64(7), .volatile_part = le64(8)}};
}

create_args with_context() {
    create_args args = request();
    args.contexts.allocation_bytes = 4096;
    args.contexts.on_disk_id = true;
    return args;
}

create_reply reply_with_context() {
    create_reply result = reply();
    result.contexts.on_disk_id = on_disk_id{.file = 1, .volume = 2};
    return result;
}

TEST(create, request_has_its_fields_where_the_specification_puts_them) {
    const message_bytes body = body_of(with_context());
    const bytes_view view(body);
    EXPECT_EQ(view.take_at<le16>(0)->value(), 57);
    EXPECT_EQ(view.take_at<le8>(3)->value(), 9);
    EXPECT_EQ(view.take_at<le32>(4)->value(), 3u);
    EXPECT_EQ(view.take_at<le32>(24)->value(), 0x00120089u);
    EXPECT_EQ(view.take_at<le32>(28)->value(), 2u);
    EXPECT_EQ(view.take_at<le32>(32)->value(), 5u);
    EXPECT_EQ(view.take_at<le32>(36)->value(), 3u);
    EXPECT_EQ(view.take_at<le32>(40)->value(), 0x40u);
    EXPECT_EQ(view.take_at<le16>(44)->value(), 120);
    EXPECT_EQ(view.take_at<le16>(46)->value(), 6);
    EXPECT_EQ(view.take_at<le32>(48)->value(), 128u);
    EXPECT_EQ(view.take_at<le32>(52)->value(), 32u + 24u);
}

TEST(create, reply_has_its_fields_where_the_specification_puts_them) {
    const message_bytes body = body_of(reply());
    const bytes_view view(body);
    EXPECT_EQ(view.take_at<le16>(0)->value(), 89);
    EXPECT_EQ(view.take_at<le8>(2)->value(), 0xff);
    EXPECT_EQ(view.take_at<le32>(4)->value(), 2u);
    for (std::uint64_t i = 0; i < 6; ++i)
        EXPECT_EQ(view.take_at<le64>(8 + 8 * i)->value(), i + 1);
    EXPECT_EQ(view.take_at<le32>(56)->value(), 0x20u);
    EXPECT_EQ(view.take_at<le64>(64)->value(), 7u);
    EXPECT_EQ(view.take_at<le64>(72)->value(), 8u);
    EXPECT_EQ(body.size(), 88u);
}

TEST(create, is_unchanged_by_a_round_trip) {
    expect_round_trip(request(), decode_create);
    expect_round_trip(with_context(), decode_create);
    expect_round_trip(create_args{}, decode_create);
    expect_round_trip(reply(), decode_create_reply);
    expect_round_trip(reply_with_context(), decode_create_reply);
}

TEST(create, request_for_the_root_still_has_its_one_variable_byte) {
    EXPECT_EQ(body_of(create_args{}).size(), 57u);
}

TEST(create, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request(), 56, decode_create);
    expect_fixed_part_checked(reply(), 88, decode_create_reply);
    expect_range_checked<le16, le16>(request(), {.offset_at = 44, .length_at = 46}, decode_create);
}

TEST(create, a_name_of_an_odd_number_of_bytes_is_rejected) {
    expect_refused(with_field(message_of(request()), 46, le16(5)), decode_error::bad_text, decode_create);
}

TEST(create, contexts_outside_the_message_or_misaligned_are_rejected) {
    const auto check = [](const message_bytes& message, std::size_t offset_at, auto decode) {
        expect_refused(with_field(message, offset_at, le32(129)), decode_error::misaligned, decode);
        expect_refused(with_field(message, offset_at, le32(64)), decode_error::range_outside_message, decode);
        expect_refused(with_field(message, offset_at, le32(0xfffffff8)), decode_error::range_outside_message,
                       decode);
        expect_refused(with_field(message, offset_at + 4, le32(0xffffffff)),
                       decode_error::range_outside_message, decode);
        EXPECT_TRUE(decode_bytes(with_field(with_field(message, offset_at, le32(3)), offset_at + 4, le32(0)),
                                 decode));
    };
    check(message_of(with_context()), 48, decode_create);
    check(message_of(reply_with_context()), 80, decode_create_reply);
}

TEST(create, an_invalid_list_of_contexts_is_rejected_with_the_error_of_the_list) {
    // The next context would begin 8 bytes into the first.
    expect_refused(with_field(message_of(with_context()), 64, le32(8)), decode_error::bad_chain,
                   decode_create);
}

}  // namespace
}  // namespace sluice::smb::wire

#include "sluice/smb/wire/message/negotiate.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

using namespace std::string_view_literals;

const std::array dialects{le16(0x0202), le16(0x0210), le16(0x0300), le16(0x0302), le16(0x0311)};
const std::array hashes{le16(1)};
const std::array ciphers{le16(2), le16(1), le16(4)};
const std::array signing{le16(2), le16(1), le16(0)};
const std::array compression{le16(3), le16(2)};
const std::array rdma{le16(1)};
const guid some_guid{.bytes = {std::byte{1}, std::byte{2}, std::byte{3}}};

negotiate_contexts every_context() {
    return {
        .preauth =
            preauth_integrity{.hashes = code_list<hash_algorithm>(hashes), .salt = text_bytes("saltsalt")},
        .ciphers = code_list<cipher>(ciphers),
        .compression =
            compression_capabilities{.flags = 1, .algorithms = code_list<compression_algorithm>(compression)},
        .netname = text_bytes("s\0r\0v\0"sv),
        .transport = 1,
        .rdma = code_list<rdma_transform>(rdma),
        .signing = code_list<signing_algorithm>(signing),
        .posix = true};
}

negotiate_args request() {
    return {.security_mode = security_mode::signing_enabled,
            .capabilities = capabilities::large_mtu | capabilities::encryption,
            .client_guid = some_guid,
            .dialects = code_list<dialect>(dialects),
            .contexts = every_context()};
}

negotiate_reply reply() {
    return {.security_mode = security_mode::signing_required,
            .dialect = dialect::smb_3_1_1,
            .server_guid = some_guid,
            .capabilities = capabilities::multi_channel,
            .transact_bytes_max = 1,
            .read_bytes_max = 2,
            .write_bytes_max = 3,
            .system_time = filetime(std::uint64_t{4}),
            .start_time = filetime(std::uint64_t{5}),
            .security_blob = text_bytes("blob!"),
            .contexts = every_context()};
}

TEST(negotiate, request_round_trips) {
    expect_round_trip(request(), decode_negotiate);
    negotiate_args old = request();
    old.dialects = code_list<dialect>(std::span(dialects).first(2));
    old.contexts = {};
    expect_round_trip(old, decode_negotiate);
}

TEST(negotiate, reply_round_trips) {
    expect_round_trip(reply(), decode_negotiate_reply);
    negotiate_reply old = reply();
    old.dialect = dialect::smb_2_wildcard;
    old.contexts = {};
    expect_round_trip(old, decode_negotiate_reply);
}

TEST(negotiate, dialects_keep_their_order_and_unknown_ones_are_kept) {
    const std::array offered{le16(0x0311), le16(0x7777)};
    negotiate_args args = request();
    args.dialects = code_list<dialect>(offered);
    const message_bytes message = message_of(args);
    const auto decoded_args = decode_bytes(message, decode_negotiate);
    ASSERT_EQ(decoded_args->dialects.size(), 2u);
    EXPECT_EQ(decoded_args->dialects[0], dialect::smb_3_1_1);
    EXPECT_EQ(decoded_args->dialects[1], dialect(0x7777));
    EXPECT_FALSE(decoded_args->dialects.contains(dialect::smb_3_0));
}

TEST(negotiate, fixed_parts_are_checked) {
    expect_fixed_part_checked(request(), 36, decode_negotiate);
    expect_fixed_part_checked(reply(), 64, decode_negotiate_reply);
    expect_range_checked<le16, le16>(reply(), {.offset_at = 56, .length_at = 58}, decode_negotiate_reply);
}

TEST(negotiate, without_a_dialect_or_with_fewer_than_announced_is_rejected) {
    const message_bytes message = message_of(request());
    expect_refused(with_field(message, 2, le16(0)), decode_error::missing, decode_negotiate);
    expect_refused(with_field(message, 2, le16(65)), decode_error::too_many, decode_negotiate);
    const message_bytes cut(message.begin(), message.begin() + 64 + 36 + 9);
    expect_refused(cut, decode_error::range_outside_message, decode_negotiate);
}

TEST(negotiate, contexts_count_only_if_3_1_1_is_offered) {
    negotiate_args old = request();
    old.dialects = code_list<dialect>(std::span(dialects).first(4));
    old.contexts = {};
    // In older dialects the same bytes are a time, which may be anything.
    const message_bytes message = with_field(message_of(old), 28, le64(0xffff'ffff'ffff'ffff));
    EXPECT_TRUE(decode_bytes(message, decode_negotiate));
}

// The list of contexts in message_of(request()): 64 + 36 + 10 dialect bytes, padded to 112; the
// first of them is the preauthentication integrity context of 14 bytes of data.
constexpr std::size_t first_context = 112 - 64;

TEST(negotiate, a_misplaced_list_of_contexts_is_rejected) {
    const message_bytes message = message_of(request());
    const auto refuse_offset = [&](std::uint32_t offset, decode_error why) {
        expect_refused(with_field(message, 28, le32(offset)), why, decode_negotiate);
    };
    refuse_offset(113, decode_error::misaligned);
    refuse_offset(56, decode_error::range_outside_message);
    refuse_offset(0xfffffff8, decode_error::range_outside_message);
    expect_refused(with_field(message, 32, le16(65)), decode_error::too_many, decode_negotiate);
    expect_refused(with_field(message, 32, le16(9)), decode_error::truncated, decode_negotiate);
}

TEST(negotiate, a_context_longer_than_the_message_is_truncated) {
    const message_bytes message = message_of(request());
    expect_refused(with_field(message, first_context + 2, le16(0xffff)), decode_error::truncated,
                   decode_negotiate);
    for (std::size_t length = 112; length < message.size(); ++length) {
        const message_bytes cut(message.begin(), message.begin() + static_cast<long>(length));
        expect_refused(cut, decode_error::truncated, decode_negotiate);
    }
}

TEST(negotiate, a_list_or_salt_longer_than_its_context_is_truncated) {
    const message_bytes message = message_of(request());
    expect_refused(with_field(message, first_context + 8, le16(9)), decode_error::truncated,
                   decode_negotiate);
    expect_refused(with_field(message, first_context + 10, le16(9)), decode_error::truncated,
                   decode_negotiate);
}

TEST(negotiate, an_empty_list_of_algorithms_is_rejected) {
    const message_bytes message = message_of(request());
    expect_refused(with_field(message, first_context + 8, le16(0)), decode_error::bad_value,
                   decode_negotiate);
}

TEST(negotiate, an_empty_list_of_compression_algorithms_is_decoded) {
    negotiate_args args = request();
    args.contexts = {.compression = compression_capabilities{}};
    expect_round_trip(args, decode_negotiate);
    negotiate_reply said = reply();
    said.contexts = args.contexts;
    expect_round_trip(said, decode_negotiate_reply);
}

TEST(negotiate, contexts_of_unknown_kinds_are_ignored) {
    const message_bytes message = with_field(message_of(request()), first_context, le16(0x99));
    const auto args = decode_bytes(message, decode_negotiate);
    ASSERT_TRUE(args);
    EXPECT_FALSE(args->contexts.preauth);
    EXPECT_TRUE(args->contexts.ciphers);
}

TEST(negotiate, a_second_context_of_one_kind_is_rejected) {
    // The second context, of 8 bytes of data, becomes a list of hashes too.
    negotiate_args args = request();
    args.contexts = {.ciphers = code_list<cipher>(ciphers), .signing = code_list<signing_algorithm>(signing)};
    const message_bytes message = message_of(args);
    expect_refused(with_field(message, first_context, le16(8)), decode_error::duplicate, decode_negotiate);
}

TEST(negotiate, a_netname_of_an_odd_number_of_bytes_is_rejected) {
    negotiate_args args = request();
    args.contexts = {.netname = text_bytes("abc")};
    expect_refused(message_of(args), decode_error::bad_text, decode_negotiate);
}

}  // namespace
}  // namespace sluice::smb::wire

#include "sluice/smb/wire/rpc/rpc_pipe.hpp"

#include <gtest/gtest.h>

#include <span>

#include "sluice/smb/wire/rpc/rpc_host_testing.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"

namespace sluice::smb::wire {
namespace {

using namespace rpc_testing;

TEST(rpc_pipe, lists_the_shares_for_the_client_of_this_project) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    ASSERT_TRUE(pipe.write(encode_share_enum_request(2, "\\\\SERVER")));
    std::vector<std::byte> room(4280);
    const auto read = pipe.read(room);
    const auto piece = decode_rpc_response(*bytes_view(room).first(read.bytes));
    ASSERT_TRUE(piece.has_value());
    EXPECT_TRUE(piece->last);
    EXPECT_EQ(piece->call, 2u);
    const auto results = decode_share_enum_results(piece->bytes);
    ASSERT_TRUE(results.has_value());
    EXPECT_EQ(results->status, 0u);
    EXPECT_EQ(results->shares, host.shares_);
    for (std::size_t size = 0; size < piece->bytes.size(); ++size)
        EXPECT_FALSE(decode_share_enum_results(*piece->bytes.first(size)).has_value());
    EXPECT_EQ(pipe.readable_bytes(), 0u);
    EXPECT_EQ(pipe.read(room).bytes, 0u);
}

TEST(rpc_pipe, splits_long_results_into_fragments_that_the_client_accepts) {
    host_of_tests host;
    host.shares_.clear();
    for (int i = 0; i < 500; ++i)
        host.shares_.push_back({.name = "share" + std::to_string(i), .comment = "a comment of some length"});
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    ASSERT_TRUE(pipe.write(encode_share_enum_request(2, "\\\\SERVER")));
    std::vector<std::byte> results;
    std::size_t fragments = 0;
    for (bool last = false; !last; ++fragments) {
        std::vector<std::byte> room(rpc_fragment_bytes_sent_max);
        const auto read = pipe.read(room);
        ASSERT_FALSE(read.more);
        const auto piece = decode_rpc_response(*bytes_view(room).first(read.bytes));
        ASSERT_TRUE(piece.has_value());
        EXPECT_EQ((bytes_view(room).take<rpc_head>()->flags.value() & rpc_first_fragment) != 0,
                  fragments == 0);
        results.insert(results.end(), piece->bytes.begin(), piece->bytes.end());
        last = piece->last;
    }
    EXPECT_GT(fragments, 5u);
    EXPECT_EQ(decode_share_enum_results(results)->shares, host.shares_);
}

TEST(rpc_pipe, accepts_single_bytes_and_returns_replies_in_segments) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    auto bytes = encode_srvsvc_bind(1);
    const auto enumerate = encode_share_enum_request(2, "s");
    bytes.insert(bytes.end(), enumerate.begin(), enumerate.end());
    for (const std::byte& byte : bytes)
        ASSERT_TRUE(pipe.write({&byte, 1}));
    std::vector<std::byte> received;
    std::vector<std::size_t> message_ends;
    while (pipe.readable_bytes() != 0) {
        std::array<std::byte, 10> room;
        const auto read = pipe.read(room);
        received.insert(received.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(read.bytes));
        if (!read.more) message_ends.push_back(received.size());
    }
    ASSERT_EQ(message_ends.size(), 2u);
    EXPECT_TRUE(decode_srvsvc_bind_ack(*bytes_view(received).first(message_ends[0])).has_value());
    EXPECT_TRUE(decode_rpc_response(*bytes_view(received).from(message_ends[0])).has_value());
}

TEST(rpc_pipe, accepts_only_ndr_among_the_proposals_of_windows) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::wkssvc, host);
    const auto syntax = [](unsigned first) {
        rpc_syntax other = rpc_ndr_syntax;
        other.id.bytes[0] = static_cast<std::byte>(first);
        return other;
    };
    std::vector<std::byte> room(1024);
    byte_writer writer{mutable_bytes(room)};
    writer.put(le32(5840u << 16 | 5840u));
    writer.put(le32());
    writer.put(le32(4));
    const rpc_syntax transfers[] = {rpc_ndr_syntax, syntax(0x33), syntax(0x2C), rpc_ndr_syntax};
    for (std::uint16_t id = 0; id < 4; ++id) {
        writer.put(le16(id));
        writer.put(le16(1));
        writer.put(id == 3 ? rpc_srvsvc_interface : rpc_wkssvc_interface);
        writer.put(transfers[id]);
    }
    std::vector<std::byte> out;
    append_rpc_fragment(out, {.packet = rpc_packet::bind, .call = 1}, *writer.finish());
    for (std::size_t size = 0; size != writer.position(); ++size)
        EXPECT_FALSE(decode_rpc_bind(*bytes_view(room).first(size)).has_value()) << size;
    ASSERT_TRUE(pipe.write(out));
    const message reply = next_message(pipe);
    EXPECT_EQ(kind(reply), rpc_packet::bind_ack);
    const bytes_view results = *bytes_view(reply.body).from(10 + 13 + 1);
    ASSERT_EQ(results.size(), 4 + 4 * 24u);
    const auto result = [&](std::size_t i) { return results.take_at<le32>(4 + 24 * i)->value(); };
    EXPECT_EQ(result(0), 0u);
    EXPECT_EQ(result(1), 0x00020002u);
    EXPECT_EQ(result(2), 0x00020002u);
    EXPECT_EQ(result(3), 0x00010002u) << "another interface";
}

TEST(rpc_pipe, rejects_authentication_inside_the_pipe) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    auto bytes = encode_srvsvc_bind(1);
    bytes[10] = std::byte{8};
    ASSERT_TRUE(pipe.write(bytes));
    EXPECT_EQ(kind(next_message(pipe)), rpc_packet::bind_nak);
}

TEST(rpc_pipe, faults_unknown_calls_and_continues) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    ASSERT_TRUE(pipe.write(request(21, server_and(101).bytes())));
    EXPECT_EQ(fault_of(next_message(pipe)), 0x1C010003u) << "no context yet";
    bind(pipe);
    ASSERT_TRUE(pipe.write(request(999, {})));
    EXPECT_EQ(fault_of(next_message(pipe)), 0x1C010002u);
    ASSERT_TRUE(pipe.write(request(21, {})));
    EXPECT_EQ(fault_of(next_message(pipe)), 0x6F7u) << "arguments missing";
    EXPECT_FALSE(call(pipe, 21, server_and(101)).empty());
}

TEST(rpc_pipe, joins_fragments_of_a_request) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    const ndr_writer arguments = server_and(100);
    const std::size_t half = arguments.bytes().size() / 2;
    ASSERT_TRUE(pipe.write(request(21, *arguments.bytes().first(half), rpc_first_fragment)));
    EXPECT_EQ(pipe.readable_bytes(), 0u);
    ASSERT_TRUE(pipe.write(request(21, *arguments.bytes().from(half), rpc_last_fragment)));
    EXPECT_EQ(kind(next_message(pipe)), rpc_packet::response);
}

TEST(rpc_pipe, disconnects_on_a_violation_of_the_protocol_or_a_limit) {
    host_of_tests host;
    const auto breaks = [&](const std::vector<std::byte>& bytes, rpc_limits limits = {}) {
        whole_pipe pipe(rpc_service::srvsvc, host, limits);
        bind(pipe);
        const bool broke = !pipe.write(bytes);
        EXPECT_EQ(pipe.broken(), broke);
        EXPECT_EQ(pipe.write({}), !broke);
        return broke;
    };
    auto bytes = request(21, {});
    EXPECT_FALSE(breaks(bytes));
    bytes[0] = std::byte{4};
    EXPECT_TRUE(breaks(bytes)) << "version";
    bytes = request(21, {});
    bytes[4] = std::byte{0};
    EXPECT_TRUE(breaks(bytes)) << "big-endian";
    bytes = request(21, {});
    bytes[8] = std::byte{15};
    EXPECT_TRUE(breaks(bytes)) << "shorter than its header";
    bytes = request(21, {});
    bytes[9] = std::byte{0x20};
    EXPECT_TRUE(breaks(bytes)) << "longer than allowed";
    EXPECT_TRUE(breaks(request(21, {}, rpc_last_fragment))) << "a continuation without a beginning";
    EXPECT_TRUE(breaks(request(21, std::vector<std::byte>(100)), {.arguments_bytes_max = 99}));
    EXPECT_FALSE(breaks(request(21, std::vector<std::byte>(100)), {.arguments_bytes_max = 100}));
    EXPECT_TRUE(breaks(request(21, server_and(101).bytes()), {.unread_bytes_max = 90}));
}

TEST(rpc_pipe, keeps_no_replies_that_were_read) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    const auto asks = request(21, server_and(101).bytes());
    ASSERT_TRUE(pipe.write(asks));
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(pipe.write(asks)) << "one reply is always unread";
        EXPECT_EQ(kind(next_message(pipe)), rpc_packet::response);
    }
    EXPECT_LT(pipe.kept_bytes(), 16'000u);
    (void)next_message(pipe);
    EXPECT_EQ(pipe.readable_bytes(), 0u);
    EXPECT_LE(pipe.kept_bytes(), 2 * rpc_fragment_bytes_received_max);
}

TEST(rpc_pipe, keeps_no_more_of_a_long_write_than_a_fragment) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    constexpr int fragments = 15;
    std::vector<std::byte> long_call;
    for (int i = 1; i <= fragments; ++i) {
        const unsigned flags = (i == 1 ? rpc_first_fragment : 0) | (i == fragments ? rpc_last_fragment : 0);
        const auto part = request(999, std::vector<std::byte>(4200), static_cast<std::uint8_t>(flags));
        long_call.insert(long_call.end(), part.begin(), part.end());
    }
    ASSERT_TRUE(pipe.write(long_call));
    EXPECT_EQ(fault_of(next_message(pipe)), 0x1C010002u);
    EXPECT_LE(pipe.kept_bytes(), 2 * rpc_fragment_bytes_received_max);
}

TEST(rpc_pipe, executes_a_limited_number_of_calls_per_write) {
    host_of_tests host;
    for (const bool is_one_more : {false, true}) {
        whole_pipe pipe(rpc_service::srvsvc, host);
        bind(pipe);
        std::vector<std::byte> calls;
        for (std::size_t i = 0; i != rpc_limits().calls_per_write_max + (is_one_more ? 1 : 0); ++i) {
            const auto one = request(999, {});
            calls.insert(calls.end(), one.begin(), one.end());
        }
        EXPECT_EQ(pipe.write(calls), not is_one_more);
        EXPECT_EQ(pipe.broken(), is_one_more);
    }
}

TEST(rpc_pipe, keeps_nothing_once_it_is_disconnected) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    ASSERT_TRUE(pipe.write(request(21, server_and(101).bytes())));
    EXPECT_FALSE(pipe.write(std::vector<std::byte>(100)));
    EXPECT_EQ(pipe.kept_bytes(), 0u);
    EXPECT_EQ(pipe.readable_bytes(), 0u);
}

TEST(rpc_pipe, counts_the_objects_that_its_client_has_open) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::samr, host);
    bind(pipe, rpc_samr_interface);
    const std::size_t before = pipe.kept_bytes();
    ndr_writer arguments(100);
    arguments.pointer(false);
    arguments.u32(0);
    for (std::size_t i = 0; i != rpc_handle_table::handles_max; ++i)
        (void)call(pipe, 57, arguments);
    EXPECT_GE(pipe.kept_bytes(), before + rpc_handle_table::handles_max * sizeof(rpc_handle));
    EXPECT_FALSE(pipe.write(std::vector<std::byte>(100)));
    EXPECT_EQ(pipe.kept_bytes(), 0u);
}

TEST(rpc_pipe, results_beyond_the_limit_become_a_fault) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host, {.results_bytes_max = 40});
    bind(pipe);
    ASSERT_TRUE(pipe.write(request(21, server_and(101).bytes())));
    EXPECT_EQ(fault_of(next_message(pipe)), 0x1C00001Bu);
}

// Checks the strings at the end of some results, and the status after them.
void expect_texts_and_status(ndr_reader& in, std::initializer_list<std::string_view> texts) {
    for (const std::string_view expected : texts)
        EXPECT_EQ(in.text(), expected);
    EXPECT_EQ(in.u32(), 0u);
    EXPECT_EQ(in.remaining(), 0u);
}

void skip_numbers(ndr_reader& in, std::size_t count) {
    for (; count != 0; --count)
        ASSERT_TRUE(in.u32().has_value());
}

constexpr access_mask read_only = file_generic_read | file_generic_execute;

// Returns the rights that a self-relative descriptor gives to everyone, as its only entry.
access_mask rights_of_everyone(ndr_reader& in) {
    const auto bytes = in.byte_array();
    EXPECT_TRUE(bytes.has_value());
    if (!bytes) return access_mask::none;
    const auto descriptor = decode_security_descriptor(*bytes);
    EXPECT_TRUE(descriptor.has_value() and descriptor->dacl and descriptor->dacl->entries.size() == 1);
    if (!descriptor or !descriptor->dacl or descriptor->dacl->entries.size() != 1) return access_mask::none;
    const ace& only = descriptor->dacl->entries.front();
    EXPECT_EQ(only.type, ace_type::allow);
    EXPECT_EQ(only.who, sid_everyone);
    return only.rights;
}

TEST(srvsvc, enumerates_shares_at_every_level) {
    host_of_tests host;
    host.shares_.front().access_max = read_only;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    for (const std::uint32_t level : {0u, 1u, 2u, 501u, 502u, 3u}) {
        ndr_writer arguments = server_and(level);
        arguments.u32(level);
        arguments.pointer(true);
        arguments.u32(0);
        arguments.pointer(false);
        arguments.u32(0xFFFFFFFF);
        arguments.pointer(true);
        arguments.u32(0);
        const auto results = call(pipe, 15, arguments);
        ndr_reader in(results);
        EXPECT_EQ(in.u32(), level);
        EXPECT_EQ(in.u32(), level);
        if (level == 3) {
            EXPECT_EQ(in.pointer(), false);
            skip_numbers(in, 3);
            EXPECT_EQ(in.u32(), 124u) << "ERROR_INVALID_LEVEL";
            continue;
        }
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), 2u);
        skip_numbers(in, 2);
        const std::size_t numbers = level == 0 ? 1 : level == 1 ? 3 : level == 501 ? 4 : level == 2 ? 8 : 10;
        skip_numbers(in, 2 * numbers);
        for (const rpc_share& share : host.shares_) {
            EXPECT_EQ(in.text(), share.name);
            if (level != 0) EXPECT_EQ(in.text(), share.comment);
            if (level == 2 or level == 502) EXPECT_EQ(in.text(), "C:\\" + share.name);
            if (level == 502) EXPECT_EQ(rights_of_everyone(in), share.access_max);
        }
        EXPECT_EQ(in.u32(), 2u);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), 0u);
        EXPECT_EQ(in.u32(), 0u);
        EXPECT_EQ(in.remaining(), 0u);
    }
}

TEST(srvsvc, refuses_to_change_a_share) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    ndr_writer arguments(1000);
    arguments.pointer(false);
    arguments.text("Data");
    arguments.u32(1005);
    expect_truncated_fault(pipe, 17, arguments.bytes());
    // The rest of the arguments, which no call needs, is ignored.
    arguments.u32(1005);
    arguments.pointer(true);
    arguments.u32(0);
    arguments.pointer(true);
    arguments.u32(0);
    const auto results = execute(pipe, 17, arguments);
    ndr_reader in(results);
    EXPECT_EQ(in.pointer(), false) << "no parameter is wrong";
    EXPECT_EQ(in.u32(), 5u) << "ERROR_ACCESS_DENIED";
    EXPECT_EQ(in.remaining(), 0u);
}

TEST(srvsvc, returns_one_share_at_every_level_and_ignores_the_case_of_its_name) {
    host_of_tests host;
    host.shares_.front().flags = rpc_share::access_based_directory_enum;
    host.shares_.front().access_max = read_only;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    const auto ask = [&](std::string_view name, std::uint32_t level) {
        ndr_writer arguments(1000);
        arguments.pointer(false);
        arguments.text(name);
        arguments.u32(level);
        return call(pipe, 16, arguments);
    };
    for (const std::uint32_t level : {0u, 1u, 2u, 501u, 502u, 1005u}) {
        const auto results = ask("DATA", level);
        ndr_reader in(results);
        EXPECT_EQ(in.u32(), level);
        EXPECT_EQ(in.pointer(), true);
        if (level == 1005) {
            EXPECT_EQ(in.u32(), rpc_share::access_based_directory_enum);
            expect_texts_and_status(in, {});
            continue;
        }
        skip_numbers(in, level <= 1 ? 1 + 2 * level : level == 2 ? 8 : level == 501 ? 4 : 10);
        if (level == 0) {
            expect_texts_and_status(in, {"Data"});
        } else if (level == 502) {
            for (const char* const expected : {"Data", "files", "C:\\Data"})
                EXPECT_EQ(in.text(), expected);
            EXPECT_EQ(rights_of_everyone(in), read_only);
            expect_texts_and_status(in, {});
        } else if (level == 2) {
            expect_texts_and_status(in, {"Data", "files", "C:\\Data"});
        } else {
            expect_texts_and_status(in, {"Data", "files"});
        }
    }
    const auto status = [](const std::vector<std::byte>& results) {
        return bytes_view(results).take_at<le32>(results.size() - 4)->value();
    };
    EXPECT_EQ(status(ask("missing", 1)), 2310u);
    EXPECT_EQ(status(ask("data", 77)), 124u);
}

TEST(srvsvc, returns_the_server_and_the_time) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::srvsvc, host);
    bind(pipe);
    for (const std::uint32_t level : {100u, 101u, 102u}) {
        const auto results = call(pipe, 21, server_and(level));
        ndr_reader in(results);
        EXPECT_EQ(in.u32(), level);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), 500u);
        skip_numbers(in, level == 100 ? 1 : level == 101 ? 5 : 12);
        if (level == 100) expect_texts_and_status(in, {"SERVER"});
        if (level == 101) expect_texts_and_status(in, {"SERVER", "töst"});
        if (level == 102) expect_texts_and_status(in, {"SERVER", "töst", "C:\\"});
    }
    ndr_writer arguments(100);
    arguments.pointer(false);
    const auto results = call(pipe, 28, arguments);
    ndr_reader in(results);
    EXPECT_EQ(in.pointer(), true);
    // 1700000000 is Tuesday, 14 November 2023, 22:13:20.
    for (const std::uint32_t expected :
         {1'700'000'000u, 0u, 22u, 13u, 20u, 25u, 0u, 310u, 14u, 11u, 2023u, 2u, 0u})
        EXPECT_EQ(in.u32(), expected);
    EXPECT_EQ(in.remaining(), 0u);
}

TEST(share_enum_client, rejects_refusals_and_lists_with_wrong_lengths) {
    host_of_tests host;
    whole_pipe pipe(rpc_service::wkssvc, host);
    ASSERT_TRUE(pipe.write(encode_srvsvc_bind(1)));
    std::vector<std::byte> room(4280);
    const auto read = pipe.read(room);
    EXPECT_EQ(decode_srvsvc_bind_ack(*bytes_view(room).first(read.bytes)).error(), decode_error::unsupported);
    ndr_writer lie(1000);
    for (const std::uint32_t number : {1u, 1u, 1u, 0xFFFFFFFFu, 1u, 0xFFFFFFFFu})
        lie.u32(number);
    EXPECT_EQ(decode_share_enum_results(lie.bytes()).error(), decode_error::too_many);
}

}  // namespace
}  // namespace sluice::smb::wire

#include "sluice/smb/wire/create/create_contexts.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

using namespace std::string_view_literals;

const guid some_guid{.bytes = {std::byte{1}, std::byte{2}}};
const file_id some_file{.persistent_part = le64(3), .volatile_part = le64(4)};
const lease some_lease{.key = {.bytes = {std::byte{5}}},
                       .state = lease_state::read | lease_state::handle,
                       .flags = lease_flags::parent_key_set,
                       .v2 = lease_v2_part{.parent_key = {.bytes = {std::byte{6}}}, .epoch = 7}};

create_request_contexts every_request_context() {
    create_request_contexts all;
    all.extended_attributes = text_bytes("eas");
    all.security_descriptor = text_bytes("descriptor");
    all.durable = true;
    all.durable_reconnect = some_file;
    all.allocation_bytes = 4096;
    all.maximal_access = maximal_access_query{.timestamp = filetime(std::uint64_t{8})};
    all.timewarp = filetime(std::uint64_t{9});
    all.on_disk_id = true;
    all.lease = some_lease;
    all.durable_v2 =
        durable_request_v2{.timeout_ms = 10, .flags = durable_flags::persistent, .create_guid = some_guid};
    all.durable_reconnect_v2 =
        durable_reconnect_v2{.file = some_file, .create_guid = some_guid, .flags = durable_flags::persistent};
    all.aapl = aapl_request{.query = aapl_server_query{.fields = aapl_fields::model,
                                                       .client_capabilities = aapl_capabilities::unix_based}};
    all.app_instance_id = some_guid;
    all.app_instance_version = app_instance_version{.high = 11, .low = 12};
    all.posix_mode = 0644;
    return all;
}

create_reply_contexts every_reply_context() {
    create_reply_contexts all;
    all.durable = true;
    all.maximal_access = maximal_access_answer{.status = nt_status::none_mapped, .access = file_all_access};
    all.on_disk_id = on_disk_id{.file = 1, .volume = 2};
    all.lease = some_lease;
    all.durable_v2 = durable_answer_v2{.timeout_ms = 3, .flags = durable_flags::persistent};
    all.aapl = aapl_answer{.server = aapl_capabilities::read_directory_attributes,
                           .volume = aapl_volume_capabilities::full_sync,
                           .model = text_bytes("M\0a\0c\0"sv)};
    all.posix = text_bytes("posix");
    return all;
}

template <class Contexts>
message_bytes list_of(const Contexts& contexts) {
    message_bytes room(4096);
    byte_writer writer{mutable_bytes(room)};
    ENSURE(encode(writer, contexts) == writer.position());
    return copy_of(*writer.finish());
}

message_bytes list_of(std::string_view name, std::string_view data) {
    message_bytes room(1024);
    byte_writer writer{mutable_bytes(room)};
    create_context_writer(writer).put({.name = text_bytes(name), .data = text_bytes(data)});
    return copy_of(*writer.finish());
}

decode_error request_error(std::string_view name, std::size_t data_bytes) {
    const auto refused = decode_create_request_contexts(list_of(name, std::string(data_bytes, '\0')));
    EXPECT_FALSE(refused) << name << " of " << data_bytes;
    return refused ? decode_error{} : refused.error();
}

TEST(create_contexts, request_contexts_round_trip) {
    const message_bytes list = list_of(every_request_context());
    EXPECT_TRUE(decode_create_request_contexts(list) == every_request_context());
    EXPECT_TRUE(decode_create_request_contexts({}) == create_request_contexts{});
    EXPECT_EQ(list_of(create_request_contexts{}).size(), 0u);
}

TEST(create_contexts, reply_contexts_round_trip) {
    const message_bytes list = list_of(every_reply_context());
    EXPECT_TRUE(decode_create_reply_contexts(list) == every_reply_context());
    EXPECT_TRUE(decode_create_reply_contexts({}) == create_reply_contexts{});
}

TEST(create_contexts, optional_parts_may_be_absent) {
    create_request_contexts contexts;
    contexts.maximal_access = maximal_access_query{};
    contexts.lease = lease{.key = some_lease.key, .state = lease_state::write};
    contexts.aapl = aapl_request{.query = {}, .resolve = aapl_resolve_id{.file = 13}};
    const message_bytes list = list_of(contexts);
    EXPECT_TRUE(decode_create_request_contexts(list) == contexts);

    create_reply_contexts reply;
    reply.aapl = aapl_answer{.server = {}, .volume = aapl_volume_capabilities::case_sensitive, .model = {}};
    const message_bytes reply_list = list_of(reply);
    EXPECT_TRUE(decode_create_reply_contexts(reply_list) == reply);
}

TEST(create_contexts, a_lease_of_version_1_has_the_published_bytes) {
    create_request_contexts contexts;
    contexts.lease =
        lease{.key = {.bytes = {std::byte{0xaa}}}, .state = lease_state::read | lease_state::write};
    const message_bytes list = list_of(contexts);
    ASSERT_EQ(list.size(), 24u + 32u);
    EXPECT_EQ(copy_of(*bytes_view(list).slice({.offset = 16, .length = 4})),
              some_bytes({'R', 'q', 'L', 's'}));
    EXPECT_EQ(bytes_view(list).take_at<le8>(24)->value(), 0xaa);
    EXPECT_EQ(bytes_view(list).take_at<le32>(40)->value(), 5u);
}

TEST(create_contexts, unknown_names_are_ignored) {
    EXPECT_TRUE(decode_create_request_contexts(list_of("what", "ever")) == create_request_contexts{});
    EXPECT_TRUE(decode_create_reply_contexts(list_of("what", "ever")) == create_reply_contexts{});
}

TEST(create_contexts, request_contexts_with_data_of_the_wrong_length_are_rejected) {
    for (const auto& [name, bytes] : {std::pair{"DHnQ"sv, 16},
                                      {"DHnC"sv, 16},
                                      {"AlSi"sv, 8},
                                      {"MxAc"sv, 8},
                                      {"TWrp"sv, 8},
                                      {"QFid"sv, 0},
                                      {"RqLs"sv, 32},
                                      {"RqLs"sv, 52},
                                      {"DH2Q"sv, 32},
                                      {"DH2C"sv, 36}}) {
        EXPECT_EQ(request_error(name, static_cast<std::size_t>(bytes) + 1), decode_error::bad_value) << name;
        if (bytes > 1)
            EXPECT_EQ(request_error(name, static_cast<std::size_t>(bytes) - 1), decode_error::bad_value)
                << name;
        EXPECT_TRUE(
            decode_create_request_contexts(list_of(name, std::string(static_cast<std::size_t>(bytes), '\0'))))
            << name;
    }
    EXPECT_EQ(request_error("AAPL", 7), decode_error::truncated);
    EXPECT_TRUE(decode_create_request_contexts(list_of("AAPL", "\3\0\0\0\0\0\0\0"sv)));
    EXPECT_EQ(decode_create_request_contexts(list_of("AAPL", "\1\0\0\0\0\0\0\0"sv)).error(),
              decode_error::bad_value);
}

TEST(create_contexts, reply_contexts_with_data_of_the_wrong_length_are_rejected) {
    for (const auto& [name, bytes] : {std::pair{"DHnQ"sv, 8}, {"MxAc"sv, 8}, {"QFid"sv, 32}, {"DH2Q"sv, 8}}) {
        for (const int off_by : {-1, 1}) {
            const message_bytes list =
                list_of(name, std::string(static_cast<std::size_t>(bytes + off_by), '\0'));
            EXPECT_EQ(decode_create_reply_contexts(list).error(), decode_error::bad_value) << name;
        }
    }
}

TEST(create_contexts, an_incomplete_aapl_answer_is_truncated) {
    create_reply_contexts reply;
    reply.aapl = every_reply_context().aapl;
    const message_bytes list = list_of(reply);
    const std::size_t data_bytes = list.size() - 24;
    for (std::size_t length = 1; length < data_bytes; ++length) {
        message_bytes cut(list.begin(), list.begin() + static_cast<long>(24 + length));
        cut[12] = static_cast<std::byte>(length);
        EXPECT_EQ(decode_create_reply_contexts(cut).error(), decode_error::truncated) << length;
    }
}

TEST(create_contexts, an_instance_id_of_another_structure_size_is_rejected) {
    create_request_contexts contexts;
    contexts.app_instance_id = some_guid;
    message_bytes list = list_of(contexts);
    list[32] = std::byte{21};
    EXPECT_EQ(decode_create_request_contexts(list).error(), decode_error::bad_structure_size);
}

TEST(create_contexts, a_second_context_of_the_same_name_is_rejected) {
    message_bytes room(256);
    byte_writer writer{mutable_bytes(room)};
    create_context_writer list(writer);
    for (int i = 0; i < 2; ++i)
        list.put({.name = text_bytes("AlSi"), .data = text_bytes("12345678")});
    EXPECT_EQ(decode_create_request_contexts(*writer.finish()).error(), decode_error::duplicate);
}

}  // namespace
}  // namespace sluice::smb::wire

// Writes the seeds of smb2_message and smb2_negotiate with our own encoders: one message
// of each kind, a compound, and the other kinds of frames. Run `smb2_seeds fuzz/seeds`
// after a change of format.

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/flush.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/message/cancel.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/error_response.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/smb/wire/message/server_notification.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"
#include "sluice/smb/wire/message/smb1_negotiate.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"
#include "sluice/smb/wire/message/tree_disconnect.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;
using namespace std::string_view_literals;

bytes_view text(std::string_view bytes) {
    return std::as_bytes(std::span(bytes));
}

const file_id some_file{.persistent_part = le64(1), .volatile_part = le64(2)};
const std::array dialects{le16(0x0202), le16(0x0210), le16(0x0300), le16(0x0302), le16(0x0311)};
const std::array hashes{le16(1)};
const std::array ciphers{le16(4), le16(3), le16(2), le16(1)};
const std::array signing{le16(2), le16(1), le16(0)};
const std::array compression{le16(3), le16(2), le16(1)};
const std::array rdma{le16(1)};
const std::array ranges{
    encode_lock_element({.offset_bytes = 0, .length_bytes = 10, .flags = lock_flags::exclusive}),
    encode_lock_element({.offset_bytes = 20, .length_bytes = 1, .flags = lock_flags::shared})};

class seed_directory {
public:
    explicit seed_directory(std::filesystem::path directory) : directory_(std::move(directory)) {
        std::filesystem::create_directories(directory_);
    }

    void write(std::string_view name, bytes_view bytes) {
        std::ofstream file(directory_ / name, std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }

    template <class Body>
    void message(std::string_view name, const header& header, const Body& body) {
        writer_ = byte_writer{mutable_bytes(room_)};
        encode(writer_, header);
        encode(writer_, body);
        write(name, *writer_.finish());
    }
    template <class Body>
    void request(std::string_view name, command code, const Body& body) {
        message(name, {.credit_charge = 1, .command = code, .credits = 8, .message_id = 3}, body);
    }
    template <class Body>
    void reply(std::string_view name, command code, const Body& body) {
        message(name, {.command = code, .credits = 8, .flags = header_flags::response, .message_id = 3},
                body);
    }

private:
    std::filesystem::path directory_;
    std::array<std::byte, 4096> room_{};
    byte_writer writer_{mutable_bytes(room_)};
};

negotiate_contexts every_negotiate_context() {
    return {
        .preauth =
            preauth_integrity{.hashes = code_list<hash_algorithm>(hashes), .salt = text("0123456789abcdef")},
        .ciphers = code_list<cipher>(ciphers),
        .compression =
            compression_capabilities{.flags = 1, .algorithms = code_list<compression_algorithm>(compression)},
        .netname = text("s\0r\0v\0"sv),
        .transport = 1,
        .rdma = code_list<rdma_transform>(rdma),
        .signing = code_list<signing_algorithm>(signing),
        .posix = true};
}

const lease some_lease{.key = {},
                       .state = lease_state::read | lease_state::handle,
                       .flags = lease_flags::parent_key_set,
                       .v2 = lease_v2_part{.parent_key = {}, .epoch = 7}};

create_request_contexts every_create_context() {
    create_request_contexts all;
    all.extended_attributes = text("eas");
    all.security_descriptor = text("descriptor");
    all.durable = true;
    all.durable_reconnect = some_file;
    all.allocation_bytes = 4096;
    all.maximal_access = maximal_access_query{.timestamp = filetime(std::uint64_t{8})};
    all.timewarp = filetime(std::uint64_t{9});
    all.on_disk_id = true;
    all.lease = some_lease;
    all.durable_v2 =
        durable_request_v2{.timeout_ms = 10, .flags = durable_flags::persistent, .create_guid = {}};
    all.durable_reconnect_v2 =
        durable_reconnect_v2{.file = some_file, .create_guid = {}, .flags = durable_flags::persistent};
    all.aapl = aapl_request{.query = aapl_server_query{.fields = aapl_fields::model}};
    all.app_instance_id = guid{};
    all.app_instance_version = app_instance_version{.high = 11, .low = 12};
    all.posix_mode = 0644;
    return all;
}

create_reply_contexts every_create_answer() {
    create_reply_contexts all;
    all.durable = true;
    all.maximal_access = maximal_access_answer{.access = file_all_access};
    all.on_disk_id = on_disk_id{.file = 1, .volume = 2};
    all.lease = lease{.key = {}, .state = lease_state::write};
    all.durable_v2 = durable_answer_v2{.timeout_ms = 3};
    all.aapl = aapl_answer{.server = aapl_capabilities::unix_based,
                           .volume = aapl_volume_capabilities::full_sync,
                           .model = text("M\0a\0c\0"sv)};
    all.posix = text("posix");
    return all;
}

negotiate_args negotiate_request() {
    return {
        .client_guid = {}, .dialects = code_list<dialect>(dialects), .contexts = every_negotiate_context()};
}
negotiate_reply negotiate_response() {
    return {
        .dialect = dialect::smb_3_1_1, .security_blob = text("blob"), .contexts = every_negotiate_context()};
}

void write_connection_seeds(seed_directory& to) {
    to.request("negotiate", command::negotiate, negotiate_request());
    to.reply("negotiate_reply", command::negotiate, negotiate_response());
    to.request("session_setup", command::session_setup, session_setup_args{.security_blob = text("token")});
    to.reply("session_setup_reply", command::session_setup,
             session_setup_reply{.security_blob = text("token")});
    to.request("logoff", command::logoff, logoff_args{});
    to.reply("server_notification", command::server_to_client_notification, session_closed_notification{});
    to.request("tree_connect", command::tree_connect,
               tree_connect_args{.path = text("\\\0\\\0s\0\\\0x\0"sv)});
    to.request("tree_connect_extended", command::tree_connect,
               tree_connect_args{.flags = tree_connect_flags::extension_present,
                                 .path = text("\\\0\\\0s\0\\\0x\0"sv),
                                 .remoted_identity = text("who")});
    to.request(
        "tree_connect_extended_without_path", command::tree_connect,
        tree_connect_args{.flags = tree_connect_flags::extension_present, .remoted_identity = text("who")});
    to.reply("tree_connect_reply", command::tree_connect, tree_connect_reply{});
    to.request("tree_disconnect", command::tree_disconnect, tree_disconnect_args{});
    to.request("cancel", command::cancel, cancel_args{});
    to.request("echo", command::echo, echo_args{});
}

void write_file_seeds(seed_directory& to) {
    to.request("create", command::create,
               create_args{.name = text("a\0\\\0b\0"sv), .contexts = every_create_context()});
    to.request("create_lone_surrogates", command::create,
               create_args{.name = text("\x3d\xd8\x00\xde\x3d\xd8"sv)});
    to.reply("create_reply", command::create,
             create_reply{.file = some_file, .contexts = every_create_answer()});
    to.request("close", command::close, close_args{.file = some_file});
    to.reply("close_reply", command::close, close_reply{});
    to.request("flush", command::flush, flush_args{.file = some_file});
    to.request("read", command::read, read_args{.length_bytes = 9, .channel_info = text("sixteen in a row")});
    to.reply("read_reply", command::read, read_reply{.data = text("data")});
    to.request("write", command::write,
               write_args{.channel_info = text("sixteen in a row"), .data = text("data")});
    to.reply("write_reply", command::write, write_reply{.count_bytes = 4});
    to.request("lock", command::lock, lock_args{.file = some_file, .elements = lock_list(ranges)});
    to.request("ioctl", command::ioctl,
               ioctl_args{.code = control_code::srv_copychunk, .input = text("input")});
    to.reply("ioctl_reply", command::ioctl, ioctl_reply{.input = text("in"), .output = text("output")});
    to.request("oplock_break", command::oplock_break, oplock_break_args{oplock_break{.file = some_file}});
    to.request("lease_break", command::oplock_break,
               oplock_break_args{lease_break{.state = lease_state::read}});
    to.reply("lease_break_notification", command::oplock_break,
             oplock_break_reply{lease_break_notification{}});
}

void write_query_seeds(seed_directory& to) {
    to.request("query_directory", command::query_directory, query_directory_args{.pattern = text("*\0"sv)});
    to.reply("query_directory_reply", command::query_directory,
             query_directory_reply{.entries = text("entries")});
    to.request("change_notify", command::change_notify, change_notify_args{.file = some_file});
    to.request("query_info", command::query_info, query_info_args{.input = text("input")});
    to.reply("query_info_reply", command::query_info, query_info_reply{.output = text("output")});
    to.request("set_info", command::set_info, set_info_args{.input = text("12345678")});
    to.reply("set_info_reply", command::set_info, set_info_reply{});
}

void write_error_seeds(seed_directory& to) {
    std::array<std::byte, 64> room{};
    byte_writer writer{mutable_bytes(room)};
    encode(writer, symlink_error{.substitute_name = text("a\0b\0"sv), .print_name = text("c\0"sv)});
    to.reply("error", command::create, error_reply{});
    to.reply("error_symlink", command::create, error_reply{.data = *writer.finish()});
    to.reply("error_symlink_in_context", command::create,
             error_reply{.data = *writer.finish(), .id = error_id::none});
}

void write_frame_seeds(seed_directory& to) {
    std::array<std::byte, 1024> room{};
    byte_writer compound{mutable_bytes(room)};
    encode(compound, header{.command = command::echo, .next_command_bytes = 72});
    encode(compound, echo_args{});
    compound.align_to(8);
    encode(compound, header{.command = command::close, .flags = header_flags::related, .message_id = 1});
    encode(compound, close_args{.file = file_id_of_previous});
    to.write("compound", *compound.finish());

    byte_writer smb1{mutable_bytes(room)};
    encode(smb1, smb1_negotiate{.smb_2_002 = true, .smb_2_wildcard = true});
    to.write("smb1_negotiate", *smb1.finish());

    byte_writer encrypted{mutable_bytes(room)};
    encode(encrypted, transform_header{.message_bytes = 4});
    encrypted.put_bytes(text("data"));
    to.write("encrypted", *encrypted.finish());
}

/// Bodies without headers, the input of that target.
void write_negotiate_seeds(seed_directory& to) {
    std::array<std::byte, 1024> room{};
    const auto write_body = [&](std::string_view name, const auto& body) {
        byte_writer writer{mutable_bytes(room)};
        encode(writer, header{});
        encode(writer, body);
        to.write(name, *writer.finish()->from(header_bytes));
    };
    write_body("request", negotiate_request());
    write_body("reply", negotiate_response());
    negotiate_args old = negotiate_request();
    old.dialects = code_list<dialect>(std::span(dialects).first(2));
    write_body("request_of_2_1", old);
    negotiate_reply wildcard = negotiate_response();
    wildcard.dialect = dialect::smb_2_wildcard;
    write_body("reply_to_smb1", wildcard);
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count != 2) {
        std::fprintf(stderr, "usage: smb2_seeds fuzz/seeds\n");
        return 2;
    }
    const std::filesystem::path seeds(arguments[1]);
    seed_directory messages(seeds / "smb2_message");
    write_connection_seeds(messages);
    write_file_seeds(messages);
    write_query_seeds(messages);
    write_error_seeds(messages);
    write_frame_seeds(messages);
    seed_directory negotiations(seeds / "smb2_negotiate");
    write_negotiate_seeds(negotiations);
    return 0;
}

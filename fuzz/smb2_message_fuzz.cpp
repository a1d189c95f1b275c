// A complete frame as a server receives it: its kind, the split of a compound, every header, and
// every body by its command, decoded both as request and as response, because each end must handle
// all messages of the other. Everything that is accepted is equal after encoding and decoding.

#include <string>

#include "fuzz/wire_round_trip.hpp"
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
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/error_response.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/smb/wire/message/server_notification.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"
#include "sluice/smb/wire/message/smb1_negotiate.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"
#include "sluice/smb/wire/message/tree_disconnect.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;

constexpr std::size_t messages_max = 32;

void check_connection_message(const message_view& message) {
    switch (message.header().command) {
        case command::negotiate:
            check_round_trip(message, decode_negotiate);
            check_round_trip(message, decode_negotiate_reply);
            break;
        case command::session_setup:
            check_round_trip(message, decode_session_setup);
            check_round_trip(message, decode_session_setup_reply);
            break;
        case command::logoff:
            check_round_trip(message, decode_logoff);
            check_round_trip(message, decode_logoff_reply);
            break;
        case command::server_to_client_notification:
            (void)decode_server_notification(message);
            break;
        case command::tree_connect:
            check_round_trip(message, decode_tree_connect);
            check_round_trip(message, decode_tree_connect_reply);
            break;
        case command::tree_disconnect:
            check_round_trip(message, decode_tree_disconnect);
            check_round_trip(message, decode_tree_disconnect_reply);
            break;
        case command::cancel:
            check_round_trip(message, decode_cancel);
            break;
        case command::echo:
            check_round_trip(message, decode_echo);
            check_round_trip(message, decode_echo_reply);
            break;
        default:
            break;
    }
}

void check_file_message(const message_view& message) {
    switch (message.header().command) {
        case command::create:
            check_round_trip(message, decode_create);
            check_round_trip(message, decode_create_reply);
            break;
        case command::close:
            check_round_trip(message, decode_close);
            check_round_trip(message, decode_close_reply);
            break;
        case command::flush:
            check_round_trip(message, decode_flush);
            check_round_trip(message, decode_flush_reply);
            break;
        case command::read:
            check_round_trip(message, decode_read);
            check_round_trip(message, decode_read_reply);
            break;
        case command::write:
            check_round_trip(message, decode_write);
            check_round_trip(message, decode_write_reply);
            break;
        case command::lock:
            check_round_trip(message, decode_lock);
            check_round_trip(message, decode_lock_reply);
            break;
        case command::ioctl:
            check_round_trip(message, decode_ioctl);
            check_round_trip(message, decode_ioctl_reply);
            break;
        case command::oplock_break:
            check_round_trip(message, decode_oplock_break);
            check_round_trip(message, decode_oplock_break_reply);
            break;
        default:
            break;
    }
}

void check_query_message(const message_view& message) {
    switch (message.header().command) {
        case command::query_directory:
            check_round_trip(message, decode_query_directory);
            check_round_trip(message, decode_query_directory_reply);
            break;
        case command::change_notify:
            check_round_trip(message, decode_change_notify);
            check_round_trip(message, decode_change_notify_reply);
            break;
        case command::query_info:
            check_round_trip(message, decode_query_info);
            check_round_trip(message, decode_query_info_reply);
            break;
        case command::set_info:
            check_round_trip(message, decode_set_info);
            check_round_trip(message, decode_set_info_reply);
            break;
        default:
            break;
    }
}

/// Any name converts to UTF-8 and back without loss.
void check_name(const message_view& message) {
    const auto args = decode_create(message);
    if (message.header().command != command::create or !args) return;
    const auto utf8 = utf8_of(args->name);
    ENSURE(utf8.has_value());
    const auto utf16 = utf16_of(*utf8);
    ENSURE(utf16.has_value() and bytes_view(std::as_bytes(std::span(*utf16))) == args->name);
}

void check_error(const message_view& message) {
    check_round_trip(message, decode_error_reply);
    const auto reply = decode_error_reply(message);
    if (!reply) return;
    if (const auto link = decode_symlink_error(reply->data)) {
        std::vector<std::byte> room(2 * reply->data.size() + 64);
        byte_writer writer{mutable_bytes(room)};
        encode(writer, *link);
        ENSURE(decode_symlink_error(*writer.finish()) == link);
    }
}

void check_compound(bytes_view frame) {
    const auto count = count_messages(frame, messages_max);
    std::size_t taken = 0;
    for (compound_reader messages(frame, messages_max); !messages.done();) {
        const auto message = messages.next();
        if (!message) break;
        ++taken;
        check_connection_message(*message);
        check_file_message(*message);
        check_query_message(*message);
        check_name(*message);
        check_error(*message);
    }
    if (count) ENSURE(*count == taken);
}

void check_smb1(bytes_view frame) {
    const auto offered = decode_smb1_negotiate(frame);
    if (!offered) return;
    std::byte room[128];
    byte_writer writer{mutable_bytes(room)};
    encode(writer, *offered);
    ENSURE(decode_smb1_negotiate(*writer.finish()) == offered);
}

void check_encrypted(bytes_view frame) {
    const auto message = decode_transform(frame);
    if (message) ENSURE(message->ciphertext.size() == message->header.message_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > fuzzed_bytes_max) return 0;
    const bytes_view frame(reinterpret_cast<const std::byte*>(data), size);
    static_cast<void>(decode_frame_prefix(frame, frame_bytes_max));
    const auto kind = kind_of_frame(frame);
    if (!kind) return 0;
    switch (*kind) {
        case frame_kind::smb2:
            check_compound(frame);
            break;
        case frame_kind::smb1:
            check_smb1(frame);
            break;
        case frame_kind::encrypted:
        case frame_kind::compressed:
            check_encrypted(frame);
            break;
    }
    return 0;
}

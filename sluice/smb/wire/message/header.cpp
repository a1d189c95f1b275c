#include "sluice/smb/wire/message/header.hpp"

#include <iterator>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::uint32_t protocol_id = 0x424d53fe;  // FE 'S' 'M' 'B'

struct raw_header {
    le32 protocol_id;             //  0
    le16 structure_size;          //  4  always 64
    le16 credit_charge;           //  6
    le32 status;                  //  8  in a request: channel sequence and 16 reserved bits
    le16 command;                 // 12
    le16 credits;                 // 14
    le32 flags;                   // 16
    le32 next_command;            // 20
    le64 message_id;              // 24
    le32 reserved;                // 32  with tree_id: the async id, if the async flag is set
    le32 tree_id;                 // 36
    le64 session_id;              // 40
    message_signature signature;  // 48
};
static_assert(sizeof(raw_header) == header_bytes and wire_type<raw_header>);
static_assert(offsetof(raw_header, credits) == header_credits_offset);
static_assert(offsetof(raw_header, flags) == header_flags_offset);
static_assert(offsetof(raw_header, next_command) == header_next_command_offset);
static_assert(offsetof(raw_header, signature) == header_signature_offset);

}  // namespace

std::string_view name_of(command code) noexcept {
    constexpr std::string_view names[] = {
        "negotiate",     "session_setup", "logoff",   "tree_connect", "tree_disconnect",
        "create",        "close",         "flush",    "read",         "write",
        "lock",          "ioctl",         "cancel",   "echo",         "query_directory",
        "change_notify", "query_info",    "set_info", "oplock_break", "server_to_client_notification",
    };
    const auto index = static_cast<std::size_t>(code);
    return index < std::size(names) ? names[index] : "?";
}

decoded<header> decode_header(bytes_view message) noexcept {
    const auto raw = message.take<raw_header>();
    if (!raw) return std::unexpected(decode_error::truncated);
    if (raw->protocol_id.value() != protocol_id) return std::unexpected(decode_error::bad_protocol_id);
    if (raw->structure_size.value() != header_bytes) return std::unexpected(decode_error::bad_structure_size);

    header result{.credit_charge = raw->credit_charge.value(),
                  .command = wire::command(raw->command.value()),
                  .credits = raw->credits.value(),
                  .flags = header_flags(raw->flags.value()),
                  .next_command_bytes = raw->next_command.value(),
                  .message_id = raw->message_id.value(),
                  .session_id = raw->session_id.value(),
                  .signature = raw->signature};
    if (has(result.flags, header_flags::response)) {
        result.status = nt_status(raw->status.value());
    } else {
        result.channel_sequence = static_cast<std::uint16_t>(raw->status.value());
    }
    if (has(result.flags, header_flags::async)) {
        result.async_id = raw->tree_id.value() * 0x1'0000'0000ULL + raw->reserved.value();
    } else {
        result.tree_id = raw->tree_id.value();
    }
    return result;
}

void encode(byte_writer& writer, const header& header) noexcept {
    const bool is_response = has(header.flags, header_flags::response);
    const bool is_async = has(header.flags, header_flags::async);
    const std::uint32_t status =
        is_response ? static_cast<std::uint32_t>(header.status) : header.channel_sequence;
    writer.put(raw_header{
        .protocol_id = le32(protocol_id),
        .structure_size = le16(header_bytes),
        .credit_charge = le16(header.credit_charge),
        .status = le32(status),
        .command = le16(static_cast<std::uint16_t>(header.command)),
        .credits = le16(header.credits),
        .flags = le32(bits_of(header.flags)),
        .next_command = le32(header.next_command_bytes),
        .message_id = le64(header.message_id),
        .reserved = le32(is_async ? static_cast<std::uint32_t>(header.async_id) : 0),
        .tree_id = le32(is_async ? static_cast<std::uint32_t>(header.async_id >> 32) : header.tree_id),
        .session_id = le64(header.session_id),
        .signature = header.signature});
}

decoded<message_view> message_view::of(bytes_view message) noexcept {
    const auto header = decode_header(message);
    if (!header) return std::unexpected(header.error());
    return message_view(*header, message);
}

}  // namespace sluice::smb::wire

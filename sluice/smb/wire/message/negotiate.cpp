#include "sluice/smb/wire/message/negotiate.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct negotiate_request {
    le16 structure_size;  //  0  always 36
    le16 dialect_count;   //  2
    le16 security_mode;   //  4
    le16 reserved;        //  6
    le32 capabilities;    //  8
    guid client_guid;     // 12
    le32 context_offset;  // 28  these eight bytes are a start time, always zero, in
                          //     dialects before 3.1.1
    le16 context_count;   // 32
    le16 reserved2;       // 34
};
static_assert(sizeof(negotiate_request) == 36 and wire_type<negotiate_request>);
static_assert(offsetof(negotiate_request, client_guid) == 12 and
              offsetof(negotiate_request, context_count) == 32);

struct negotiate_response {
    le16 structure_size;     //  0  always 65: 64 fixed bytes plus "at least one" of the blob
    le16 security_mode;      //  2
    le16 dialect;            //  4
    le16 context_count;      //  6
    guid server_guid;        //  8
    le32 capabilities;       // 24
    le32 max_transact_size;  // 28
    le32 max_read_size;      // 32
    le32 max_write_size;     // 36
    le64 system_time;        // 40
    le64 start_time;         // 48
    le16 blob_offset;        // 56
    le16 blob_length;        // 58
    le32 context_offset;     // 60
};
static_assert(sizeof(negotiate_response) == 64 and wire_type<negotiate_response>);
static_assert(offsetof(negotiate_response, capabilities) == 24 and
              offsetof(negotiate_response, blob_offset) == 56);

/// Returns the next multiple of eight, where contexts begin.
constexpr std::size_t aligned(std::size_t position) noexcept {
    return (position + 7) & ~std::size_t{7};
}

}  // namespace

decoded<negotiate_args> decode_negotiate(const message_view& message) noexcept {
    const auto body = take_body<negotiate_request>(message, 36);
    if (!body) return std::unexpected(body.error());
    const std::size_t count = body->dialect_count.value();
    if (count == 0) return std::unexpected(decode_error::missing);
    if (count > negotiate_dialects_max) return std::unexpected(decode_error::too_many);
    const auto listed =
        message.body().slice({.offset = sizeof(negotiate_request), .length = count * sizeof(le16)});
    if (!listed) return std::unexpected(decode_error::range_outside_message);

    negotiate_args args{.security_mode = security_mode(body->security_mode.value()),
                        .capabilities = capabilities(body->capabilities.value()),
                        .client_guid = body->client_guid,
                        .dialects = code_list<dialect>(*listed),
                        .contexts = {}};
    if (args.dialects.contains(dialect::smb_3_1_1)) {
        const auto contexts = decode_negotiate_contexts(
            message, {.offset_bytes = body->context_offset.value(), .count = body->context_count.value()});
        if (!contexts) return std::unexpected(contexts.error());
        args.contexts = *contexts;
    }
    return args;
}

void encode(byte_writer& writer, const negotiate_args& args) noexcept {
    const bool with_contexts = args.dialects.contains(dialect::smb_3_1_1);
    const std::size_t dialects_end =
        writer.position() + sizeof(negotiate_request) + args.dialects.bytes().size();
    writer.put(
        negotiate_request{.structure_size = le16(36),
                          .dialect_count = narrow<le16>(args.dialects.size()),
                          .security_mode = le16(bits_of(args.security_mode)),
                          .reserved = {},
                          .capabilities = le32(bits_of(args.capabilities)),
                          .client_guid = args.client_guid,
                          .context_offset = with_contexts ? narrow<le32>(aligned(dialects_end)) : le32(),
                          .context_count = with_contexts ? narrow<le16>(args.contexts.count()) : le16(),
                          .reserved2 = {}});
    writer.put_bytes(args.dialects.bytes());
    if (with_contexts) encode(writer, args.contexts);
}

decoded<negotiate_reply> decode_negotiate_reply(const message_view& message) noexcept {
    const auto body = take_body<negotiate_response>(message, 65);
    if (!body) return std::unexpected(body.error());
    const auto blob = variable_part<negotiate_response>(
        message, {.offset = body->blob_offset.value(), .length = body->blob_length.value()});
    if (!blob) return std::unexpected(blob.error());

    negotiate_reply reply{.security_mode = security_mode(body->security_mode.value()),
                          .dialect = dialect(body->dialect.value()),
                          .server_guid = body->server_guid,
                          .capabilities = capabilities(body->capabilities.value()),
                          .transact_bytes_max = body->max_transact_size.value(),
                          .read_bytes_max = body->max_read_size.value(),
                          .write_bytes_max = body->max_write_size.value(),
                          .system_time = filetime(body->system_time),
                          .start_time = filetime(body->start_time),
                          .security_blob = *blob,
                          .contexts = {}};
    if (reply.dialect == dialect::smb_3_1_1) {
        const auto contexts = decode_negotiate_contexts(
            message, {.offset_bytes = body->context_offset.value(), .count = body->context_count.value()});
        if (!contexts) return std::unexpected(contexts.error());
        reply.contexts = *contexts;
    }
    return reply;
}

void encode(byte_writer& writer, const negotiate_reply& reply) noexcept {
    const bool with_contexts = reply.dialect == dialect::smb_3_1_1;
    const std::size_t blob_offset = writer.position() + sizeof(negotiate_response);
    writer.put(negotiate_response{
        .structure_size = le16(65),
        .security_mode = le16(bits_of(reply.security_mode)),
        .dialect = le16(static_cast<std::uint16_t>(reply.dialect)),
        .context_count = with_contexts ? narrow<le16>(reply.contexts.count()) : le16(),
        .server_guid = reply.server_guid,
        .capabilities = le32(bits_of(reply.capabilities)),
        .max_transact_size = le32(reply.transact_bytes_max),
        .max_read_size = le32(reply.read_bytes_max),
        .max_write_size = le32(reply.write_bytes_max),
        .system_time = reply.system_time.wire(),
        .start_time = reply.start_time.wire(),
        .blob_offset = narrow<le16>(blob_offset),
        .blob_length = narrow<le16>(reply.security_blob.size()),
        .context_offset =
            with_contexts ? narrow<le32>(aligned(blob_offset + reply.security_blob.size())) : le32()});
    writer.put_bytes(reply.security_blob);
    if (with_contexts) encode(writer, reply.contexts);
}

}  // namespace sluice::smb::wire

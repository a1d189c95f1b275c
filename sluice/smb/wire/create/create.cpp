#include "sluice/smb/wire/create/create.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::size_t context_alignment = 8;

struct create_request {
    le16 structure_size;       //  0  always 57: 56 fixed bytes plus "at least one" variable byte
    le8 security_flags;        //  2  reserved
    le8 oplock_level;          //  3
    le32 impersonation_level;  //  4
    le64 smb_create_flags;     //  8  reserved
    le64 reserved;             // 16
    le32 desired_access;       // 24
    le32 file_attributes;      // 28
    le32 share_access;         // 32
    le32 disposition;          // 36
    le32 options;              // 40
    le16 name_offset;          // 44
    le16 name_length;          // 46
    le32 contexts_offset;      // 48
    le32 contexts_length;      // 52
};
static_assert(sizeof(create_request) == 56 and wire_type<create_request>);
static_assert(offsetof(create_request, desired_access) == 24 and offsetof(create_request, name_offset) == 44);

struct create_response {
    le16 structure_size;        //  0  always 89
    le8 oplock_level;           //  2
    le8 flags;                  //  3
    le32 action;                //  4
    raw_open_information info;  //  8
    le32 reserved;              // 60
    file_id file;               // 64
    le32 contexts_offset;       // 80
    le32 contexts_length;       // 84
};
static_assert(sizeof(create_response) == 88 and wire_type<create_response>);
static_assert(offsetof(create_response, file) == 64 and offsetof(create_response, contexts_offset) == 80);

/// Returns the list of contexts after a `Body`. It starts at a multiple of eight.
template <wire_type Body>
decoded<bytes_view> context_list(const message_view& message, const Body& body) noexcept {
    if (body.contexts_length.value() != 0 and body.contexts_offset.value() % context_alignment != 0) {
        return std::unexpected(decode_error::misaligned);
    }
    return variable_part<Body>(
        message, {.offset = body.contexts_offset.value(), .length = body.contexts_length.value()});
}

struct context_place {
    le32 offset;
    le32 length;
};

/// Writes the contexts, aligned, and stores their offset and length, which are zero if there are
/// none.
template <class Contexts>
context_place put_contexts(byte_writer& writer, const Contexts& contexts) noexcept {
    if (contexts == Contexts{}) return {};
    writer.align_to(context_alignment);
    const std::size_t offset = writer.position();
    const std::size_t length = encode(writer, contexts);
    if (length == 0) return {};
    return {.offset = narrow<le32>(offset), .length = narrow<le32>(length)};
}

}  // namespace

decoded<create_args> decode_create(const message_view& message) noexcept {
    const auto body = take_body<create_request>(message, 57);
    if (!body) return std::unexpected(body.error());
    const auto name = text_part<create_request>(
        message, {.offset = body->name_offset.value(), .length = body->name_length.value()});
    if (!name) return std::unexpected(name.error());
    const auto list = context_list(message, *body);
    if (!list) return std::unexpected(list.error());
    const auto contexts = decode_create_request_contexts(*list);
    if (!contexts) return std::unexpected(contexts.error());
    return create_args{.oplock_level = oplock_level(body->oplock_level.value()),
                       .impersonation_level = impersonation_level(body->impersonation_level.value()),
                       .desired_access = access_mask(body->desired_access.value()),
                       .file_attributes = file_attributes(body->file_attributes.value()),
                       .share_access = share_access(body->share_access.value()),
                       .disposition = create_disposition(body->disposition.value()),
                       .options = create_options(body->options.value()),
                       .name = *name,
                       .contexts = *contexts};
}

void encode(byte_writer& writer, const create_args& args) noexcept {
    const auto fixed = writer.reserve<create_request>();
    const std::size_t name_offset = writer.position();
    put_at_least_one_byte(writer, args.name);
    const context_place contexts = put_contexts(writer, args.contexts);
    writer.patch(fixed, create_request{
                            .structure_size = le16(57),
                            .security_flags = {},
                            .oplock_level = le8(static_cast<std::uint8_t>(args.oplock_level)),
                            .impersonation_level = le32(static_cast<std::uint32_t>(args.impersonation_level)),
                            .smb_create_flags = {},
                            .reserved = {},
                            .desired_access = le32(bits_of(args.desired_access)),
                            .file_attributes = le32(bits_of(args.file_attributes)),
                            .share_access = le32(bits_of(args.share_access)),
                            .disposition = le32(static_cast<std::uint32_t>(args.disposition)),
                            .options = le32(bits_of(args.options)),
                            .name_offset = narrow<le16>(name_offset),
                            .name_length = narrow<le16>(args.name.size()),
                            .contexts_offset = contexts.offset,
                            .contexts_length = contexts.length});
}

decoded<create_reply> decode_create_reply(const message_view& message) noexcept {
    const auto body = take_body<create_response>(message, 89);
    if (!body) return std::unexpected(body.error());
    const auto list = context_list(message, *body);
    if (!list) return std::unexpected(list.error());
    const auto contexts = decode_create_reply_contexts(*list);
    if (!contexts) return std::unexpected(contexts.error());
    return create_reply{.oplock_level = oplock_level(body->oplock_level.value()),
                        .flags = create_reply_flags(body->flags.value()),
                        .action = create_action(body->action.value()),
                        .information = decode_open_information(body->info),
                        .file = body->file,
                        .contexts = *contexts};
}

void encode(byte_writer& writer, const create_reply& reply) noexcept {
    const auto fixed = writer.reserve<create_response>();
    const context_place contexts = put_contexts(writer, reply.contexts);
    writer.patch(fixed, create_response{.structure_size = le16(89),
                                        .oplock_level = le8(static_cast<std::uint8_t>(reply.oplock_level)),
                                        .flags = le8(bits_of(reply.flags)),
                                        .action = le32(static_cast<std::uint32_t>(reply.action)),
                                        .info = encode_open_information(reply.information),
                                        .reserved = {},
                                        .file = reply.file,
                                        .contexts_offset = contexts.offset,
                                        .contexts_length = contexts.length});
}

}  // namespace sluice::smb::wire

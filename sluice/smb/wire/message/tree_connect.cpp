#include "sluice/smb/wire/message/tree_connect.hpp"

#include <array>

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct tree_connect_request {
    le16 structure_size;  // 0  always 9: 8 fixed bytes plus "at least one" of the path
    le16 flags;           // 2
    le16 path_offset;     // 4
    le16 path_length;     // 6
};
static_assert(sizeof(tree_connect_request) == 8 and wire_type<tree_connect_request>);
static_assert(offsetof(tree_connect_request, flags) == 2 and
              offsetof(tree_connect_request, path_offset) == 4);

/// The extension between the fixed part and the path, if `extension_present` is set.
struct tree_connect_extension {
    le32 context_offset;                 //  0  from the start of the body,
                                         //     unlike every other offset
    le16 context_count;                  //  4
    std::array<std::byte, 10> reserved;  //  6
};
static_assert(sizeof(tree_connect_extension) == 16 and wire_type<tree_connect_extension>);

struct tree_connect_context {
    le16 type;         // 0
    le16 data_length;  // 2
    le32 reserved;     // 4
};
static_assert(sizeof(tree_connect_context) == 8 and wire_type<tree_connect_context>);

constexpr std::uint16_t remoted_identity_type = 1;
constexpr std::size_t context_alignment = 8;

struct tree_connect_response {
    le16 structure_size;  //  0  always 16
    le8 share_type;       //  2
    le8 reserved;         //  3
    le32 share_flags;     //  4
    le32 capabilities;    //  8
    le32 maximal_access;  // 12
};
static_assert(sizeof(tree_connect_response) == 16 and wire_type<tree_connect_response>);
static_assert(offsetof(tree_connect_response, share_flags) == 4 and
              offsetof(tree_connect_response, maximal_access) == 12);

/// Returns the data of the remoted identity in the contexts of the extension, if present.
decoded<std::optional<bytes_view>> decode_contexts(bytes_view body) noexcept {
    const auto extension = body.take_at<tree_connect_extension>(sizeof(tree_connect_request));
    if (!extension) return std::unexpected(decode_error::truncated);
    std::optional<bytes_view> identity;
    const std::size_t count = extension->context_count.value();
    if (count == 0) return identity;
    if (count > tree_connect_contexts_max) return std::unexpected(decode_error::too_many);
    const auto contexts = body.from(extension->context_offset.value());
    if (!contexts) return std::unexpected(decode_error::range_outside_message);
    byte_reader reader(*contexts);
    for (std::size_t i = 0; i < count; ++i) {
        if (!reader.align_to(context_alignment)) return std::unexpected(decode_error::truncated);
        const auto context = reader.take<tree_connect_context>();
        if (!context) return std::unexpected(decode_error::truncated);
        const auto data = reader.take_bytes(context->data_length.value());
        if (!data) return std::unexpected(decode_error::truncated);
        if (context->type.value() != remoted_identity_type) continue;
        if (identity) return std::unexpected(decode_error::duplicate);
        identity = *data;
    }
    return identity;
}

/// Returns the offset of the context that encode() writes, from the start of the body.
constexpr std::size_t context_offset(std::size_t path_bytes) noexcept {
    const std::size_t path_end = sizeof(tree_connect_request) + sizeof(tree_connect_extension) + path_bytes;
    return (path_end + context_alignment - 1) & ~(context_alignment - 1);
}

}  // namespace

decoded<tree_connect_args> decode_tree_connect(const message_view& message) noexcept {
    const auto body = take_body<tree_connect_request>(message, 9);
    if (!body) return std::unexpected(body.error());
    const auto path = text_part<tree_connect_request>(
        message, {.offset = body->path_offset.value(), .length = body->path_length.value()});
    if (!path) return std::unexpected(path.error());
    tree_connect_args args{
        .flags = tree_connect_flags(body->flags.value()), .path = *path, .remoted_identity = {}};
    if (has(args.flags, tree_connect_flags::extension_present)) {
        const auto identity = decode_contexts(message.body());
        if (!identity) return std::unexpected(identity.error());
        args.remoted_identity = *identity;
    }
    return args;
}

void encode(byte_writer& writer, const tree_connect_args& args) noexcept {
    const bool extended = has(args.flags, tree_connect_flags::extension_present);
    ENSURE(extended or !args.remoted_identity);
    const std::size_t path_offset =
        writer.position() + sizeof(tree_connect_request) + (extended ? sizeof(tree_connect_extension) : 0);
    writer.put(tree_connect_request{.structure_size = le16(9),
                                    .flags = le16(bits_of(args.flags)),
                                    .path_offset = narrow<le16>(path_offset),
                                    .path_length = narrow<le16>(args.path.size())});
    if (extended) {
        writer.put(tree_connect_extension{
            .context_offset = args.remoted_identity ? narrow<le32>(context_offset(args.path.size())) : le32(),
            .context_count = le16(args.remoted_identity ? 1 : 0),
            .reserved = {}});
    }
    if (extended) {
        writer.put_bytes(args.path);
    } else {
        put_at_least_one_byte(writer, args.path);
    }
    if (args.remoted_identity) {
        writer.align_to(context_alignment);
        writer.put(tree_connect_context{.type = le16(remoted_identity_type),
                                        .data_length = narrow<le16>(args.remoted_identity->size()),
                                        .reserved = {}});
        writer.put_bytes(*args.remoted_identity);
    }
}

decoded<tree_connect_reply> decode_tree_connect_reply(const message_view& message) noexcept {
    const auto body = take_body<tree_connect_response>(message, 16);
    if (!body) return std::unexpected(body.error());
    return tree_connect_reply{.type = share_type(body->share_type.value()),
                              .flags = share_flags(body->share_flags.value()),
                              .capabilities = share_capabilities(body->capabilities.value()),
                              .maximal_access = access_mask(body->maximal_access.value())};
}

void encode(byte_writer& writer, const tree_connect_reply& reply) noexcept {
    writer.put(tree_connect_response{.structure_size = le16(16),
                                     .share_type = le8(static_cast<std::uint8_t>(reply.type)),
                                     .reserved = {},
                                     .share_flags = le32(bits_of(reply.flags)),
                                     .capabilities = le32(bits_of(reply.capabilities)),
                                     .maximal_access = le32(bits_of(reply.maximal_access))});
}

}  // namespace sluice::smb::wire

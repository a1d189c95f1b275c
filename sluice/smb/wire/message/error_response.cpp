#include "sluice/smb/wire/message/error_response.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct error_response {
    le16 structure_size;  // 0  always 9: 8 fixed bytes plus "at least one" of data
    le8 context_count;    // 2  always 0 before 3.1.1
    le8 reserved;         // 3
    le32 byte_count;      // 4
};
static_assert(sizeof(error_response) == 8 and wire_type<error_response>);
static_assert(offsetof(error_response, context_count) == 2 and offsetof(error_response, byte_count) == 4);

struct error_context {
    le32 data_length;  // 0
    le32 id;           // 4
};
static_assert(sizeof(error_context) == 8 and wire_type<error_context>);

struct raw_symlink_error {
    le32 symlink_length;          //  0  of all following fields
    le32 error_tag;               //  4  "SYML"
    le32 reparse_tag;             //  8
    le16 reparse_data_length;     // 12  of all bytes after the next field
    le16 unparsed_path_length;    // 14
    le16 substitute_name_offset;  // 16  within the names
    le16 substitute_name_length;  // 18
    le16 print_name_offset;       // 20
    le16 print_name_length;       // 22
    le32 flags;                   // 24  1: relative
};
static_assert(sizeof(raw_symlink_error) == 28 and wire_type<raw_symlink_error>);
static_assert(offsetof(raw_symlink_error, reparse_tag) == 8 and
              offsetof(raw_symlink_error, substitute_name_offset) == 16);

constexpr std::uint32_t symlink_error_tag = 0x4c4d5953;
constexpr std::uint32_t symlink_reparse_tag = 0xa000000c;
constexpr std::uint32_t symlink_relative = 1;

decoded<bytes_view> name_in(bytes_view names, byte_extent extent) noexcept {
    const auto name = names.slice(extent);
    if (!name) return std::unexpected(decode_error::range_outside_message);
    if (name->size() % 2 != 0) return std::unexpected(decode_error::bad_text);
    return *name;
}

}  // namespace

decoded<error_reply> decode_error_reply(const message_view& message) noexcept {
    const auto body = take_body<error_response>(message, 9);
    if (!body) return std::unexpected(body.error());
    const auto data = variable_part<error_response>(
        message, {.offset = header_bytes + sizeof(error_response), .length = body->byte_count.value()});
    if (!data) return std::unexpected(data.error());
    if (body->context_count.value() == 0) return error_reply{.data = *data};

    byte_reader contexts(*data);
    const auto context = contexts.take<error_context>();
    if (!context) return std::unexpected(decode_error::truncated);
    const auto context_data = contexts.take_bytes(context->data_length.value());
    if (!context_data) return std::unexpected(decode_error::truncated);
    return error_reply{.data = *context_data, .id = error_id(context->id.value())};
}

void encode(byte_writer& writer, const error_reply& reply) noexcept {
    const std::size_t context_bytes = reply.id ? sizeof(error_context) : 0;
    writer.put(error_response{.structure_size = le16(9),
                              .context_count = le8(reply.id ? 1 : 0),
                              .reserved = {},
                              .byte_count = narrow<le32>(context_bytes + reply.data.size())});
    if (reply.id) {
        writer.put(error_context{.data_length = narrow<le32>(reply.data.size()),
                                 .id = le32(static_cast<std::uint32_t>(*reply.id))});
        writer.put_bytes(reply.data);
    } else {
        put_at_least_one_byte(writer, reply.data);
    }
}

decoded<std::uint32_t> decode_required_bytes(bytes_view data) noexcept {
    const auto required = data.take<le32>();
    if (!required) return std::unexpected(decode_error::truncated);
    return required->value();
}

void encode_required_bytes(byte_writer& writer, std::uint32_t required_bytes) noexcept {
    writer.put(le32(required_bytes));
}

decoded<symlink_error> decode_symlink_error(bytes_view data) noexcept {
    byte_reader reader(data);
    const auto raw = reader.take<raw_symlink_error>();
    if (!raw) return std::unexpected(decode_error::truncated);
    if (raw->error_tag.value() != symlink_error_tag or raw->reparse_tag.value() != symlink_reparse_tag) {
        return std::unexpected(decode_error::bad_value);
    }
    const auto substitute = name_in(reader.rest(), {.offset = raw->substitute_name_offset.value(),
                                                    .length = raw->substitute_name_length.value()});
    if (!substitute) return std::unexpected(substitute.error());
    const auto print = name_in(
        reader.rest(), {.offset = raw->print_name_offset.value(), .length = raw->print_name_length.value()});
    if (!print) return std::unexpected(print.error());
    return symlink_error{.unparsed_path_bytes = raw->unparsed_path_length.value(),
                         .relative = (raw->flags.value() & symlink_relative) != 0,
                         .substitute_name = *substitute,
                         .print_name = *print};
}

void encode(byte_writer& writer, const symlink_error& error) noexcept {
    const std::size_t names_bytes = error.substitute_name.size() + error.print_name.size();
    const std::size_t fixed_reparse_bytes =
        sizeof(raw_symlink_error) - offsetof(raw_symlink_error, substitute_name_offset);
    writer.put(raw_symlink_error{
        .symlink_length = narrow<le32>(sizeof(raw_symlink_error) - sizeof(le32) + names_bytes),
        .error_tag = le32(symlink_error_tag),
        .reparse_tag = le32(symlink_reparse_tag),
        .reparse_data_length = narrow<le16>(fixed_reparse_bytes + names_bytes),
        .unparsed_path_length = le16(error.unparsed_path_bytes),
        .substitute_name_offset = {},
        .substitute_name_length = narrow<le16>(error.substitute_name.size()),
        .print_name_offset = narrow<le16>(error.substitute_name.size()),
        .print_name_length = narrow<le16>(error.print_name.size()),
        .flags = le32(error.relative ? symlink_relative : 0)});
    writer.put_bytes(error.substitute_name);
    writer.put_bytes(error.print_name);
}

}  // namespace sluice::smb::wire

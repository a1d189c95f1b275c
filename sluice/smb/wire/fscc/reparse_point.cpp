#include "sluice/smb/wire/fscc/reparse_point.hpp"

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct head_wire {
    le32 tag;          // 0
    le16 data_length;  // 4  of all bytes after this head, except an owner's GUID
    le16 reserved;     // 6
};
static_assert(sizeof(head_wire) == 8);

struct names_wire {
    le16 substitute_offset;  // 0  within the bytes after the fixed part
    le16 substitute_length;  // 2
    le16 print_offset;       // 4
    le16 print_length;       // 6
};
static_assert(sizeof(names_wire) == 8);
// clang-format on

constexpr std::uint32_t microsoft_bit = 0x80000000;
constexpr std::uint32_t symlink_flag_relative = 1;

bytes_view as_bytes(const std::string& text) noexcept {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Writes both names. A symbolic link has flags between the offsets and the names.
decoded<void> put_names(byte_writer& writer, std::uint32_t tag, const std::string& substitute,
                        const std::string& print, const le32* flags) noexcept {
    const auto first = utf16_of(substitute);
    const auto second = utf16_of(print);
    if (!first or !second) return std::unexpected(decode_error::bad_text);
    const std::size_t length =
        sizeof(names_wire) + (flags ? sizeof(le32) : 0) + first->size() + second->size();
    if (length > reparse_data_bytes_max) return std::unexpected(decode_error::too_long);
    writer.put(
        head_wire{.tag = le32(tag), .data_length = le16(static_cast<std::uint16_t>(length)), .reserved = {}});
    writer.put(names_wire{.substitute_offset = {},
                          .substitute_length = le16(static_cast<std::uint16_t>(first->size())),
                          .print_offset = le16(static_cast<std::uint16_t>(first->size())),
                          .print_length = le16(static_cast<std::uint16_t>(second->size()))});
    if (flags != nullptr) writer.put(*flags);
    writer.put_bytes(as_bytes(*first));
    writer.put_bytes(as_bytes(*second));
    return {};
}

decoded<void> put(byte_writer& writer, const reparse_symlink& link) noexcept {
    const le32 flags(link.relative ? symlink_flag_relative : 0);
    return put_names(writer, reparse_tag_symlink, link.substitute, link.print, &flags);
}

decoded<void> put(byte_writer& writer, const reparse_mount_point& point) noexcept {
    return put_names(writer, reparse_tag_mount_point, point.substitute, point.print, nullptr);
}

decoded<void> put(byte_writer& writer, const reparse_other& other) noexcept {
    if (other.data.size() > reparse_data_bytes_max) return std::unexpected(decode_error::too_long);
    writer.put(head_wire{.tag = le32(other.tag),
                         .data_length = le16(static_cast<std::uint16_t>(other.data.size())),
                         .reserved = {}});
    if ((other.tag & microsoft_bit) == 0) writer.put(other.owner);
    writer.put_bytes(other.data);
    return {};
}

decoded<std::string> name_in(bytes_view names, le16 offset, le16 length) noexcept {
    const auto name = names.slice({.offset = offset.value(), .length = length.value()});
    if (!name) return std::unexpected(decode_error::range_outside_message);
    return utf8_of(*name);
}

decoded<reparse_point> names_of(bytes_view data, bool symlink) noexcept {
    byte_reader reader(data);
    const auto places = reader.take<names_wire>();
    const auto flags = symlink ? reader.take<le32>() : le32();
    if (!places or !flags) return std::unexpected(decode_error::truncated);
    auto substitute = name_in(reader.rest(), places->substitute_offset, places->substitute_length);
    if (!substitute) return std::unexpected(substitute.error());
    auto print = name_in(reader.rest(), places->print_offset, places->print_length);
    if (!print) return std::unexpected(print.error());
    if (!symlink)
        return reparse_mount_point{.substitute = std::move(*substitute), .print = std::move(*print)};
    return reparse_symlink{.substitute = std::move(*substitute),
                           .print = std::move(*print),
                           .relative = (flags->value() & symlink_flag_relative) != 0};
}

}  // namespace

decoded<void> encode(byte_writer& writer, const reparse_point& point) noexcept {
    return std::visit([&](const auto& kind) { return put(writer, kind); }, point);
}

decoded<reparse_point> decode_reparse_point(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto head = reader.take<head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->data_length.value() > reparse_data_bytes_max) return std::unexpected(decode_error::too_long);
    const std::uint32_t tag = head->tag.value();
    reparse_other other{.tag = tag};
    if ((tag & microsoft_bit) == 0) {
        const auto owner = reader.take<guid>();
        if (!owner) return std::unexpected(decode_error::truncated);
        other.owner = *owner;
    }
    const auto data = reader.take_bytes(head->data_length.value());
    if (!data) return std::unexpected(decode_error::truncated);
    if (tag == reparse_tag_symlink or tag == reparse_tag_mount_point)
        return names_of(*data, tag == reparse_tag_symlink);
    other.data.assign(data->begin(), data->end());
    return other;
}

}  // namespace sluice::smb::wire

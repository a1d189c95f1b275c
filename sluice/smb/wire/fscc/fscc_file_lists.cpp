#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"

#include <cstddef>
#include <limits>

#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct stream_wire {
    le32 next;             //  0
    le32 name_length;      //  4
    le64 size;             //  8
    le64 allocation_size;  // 16
};
static_assert(sizeof(stream_wire) == 24 and offsetof(stream_wire, size) == 8);

struct ea_wire {
    le32 next;          // 0
    le8  flags;         // 4
    le8  name_length;   // 5  without the terminating zero
    le16 value_length;  // 6
};
static_assert(sizeof(ea_wire) == 8 and offsetof(ea_wire, value_length) == 6);

struct ea_name_wire {
    le32 next;         // 0
    le8  name_length;  // 4
};
static_assert(sizeof(ea_name_wire) == 5);

struct hard_link_head_wire {
    le32 bytes_needed;  // 0
    le32 entries;       // 4
};
static_assert(sizeof(hard_link_head_wire) == 8);

struct hard_link_wire {
    le32 next;              //  0
    le64 directory_number;  //  4
    le32 name_characters;   // 12  in UTF-16 units, not in bytes
};
static_assert(sizeof(hard_link_wire) == 16 and offsetof(hard_link_wire, directory_number) == 4);
// clang-format on

constexpr std::uint8_t flag_need_ea = 0x80;

// Writes an entry after its NextEntryOffset, which the list has written.
template <class Wire>
void put_without_next(byte_writer& writer, const Wire& wire) noexcept {
    writer.put_bytes(*bytes_of(wire).from(sizeof(le32)));
}

bytes_view as_bytes(std::string_view text) noexcept {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

bool usable_ea_name(std::string_view name) noexcept {
    return !name.empty() and name.size() <= 255 and name.find('\0') == std::string_view::npos;
}

// Returns the name in front of `reader` and consumes the zero that must follow it.
decoded<std::string_view> take_ea_name(byte_reader& reader, std::size_t length) noexcept {
    const auto name = reader.take_bytes(length);
    const auto zero = reader.take<le8>();
    if (!name or !zero) return std::unexpected(decode_error::range_outside_message);
    const std::string_view text(reinterpret_cast<const char*>(name->data()), name->size());
    if (!usable_ea_name(text) or zero->value() != 0) return std::unexpected(decode_error::bad_value);
    return text;
}

decoded<bytes_view> take_utf16(byte_reader& reader, std::uint64_t length) noexcept {
    const auto name = reader.take_bytes(length);
    if (!name) return std::unexpected(decode_error::range_outside_message);
    if (length % 2 != 0) return std::unexpected(decode_error::bad_text);
    return *name;
}

}  // namespace

entry_outcome stream_list_writer::put(const stream_information& stream) noexcept {
    return list_.put([&](byte_writer& writer) -> decoded<void> {
        const auto length = utf16_bytes_of(stream.name);
        if (!length) return std::unexpected(length.error());
        put_without_next(writer, stream_wire{.next = {},
                                             .name_length = le32(static_cast<std::uint32_t>(*length)),
                                             .size = le64(stream.size_bytes),
                                             .allocation_size = le64(stream.allocation_bytes)});
        if (const auto put = put_utf16(writer, stream.name); !put) return std::unexpected(put.error());
        return {};
    });
}

stream_list_reader::stream_list_reader(bytes_view list) noexcept : list_(list, sizeof(stream_wire)) {}

decoded<std::optional<received_stream>> stream_list_reader::next() noexcept {
    return list_.next_as([](byte_reader& reader) -> decoded<received_stream> {
        const auto wire = reader.take<stream_wire>();
        const auto name = take_utf16(reader, wire->name_length.value());
        if (!name) return std::unexpected(name.error());
        return received_stream{.name_utf16 = *name,
                               .size_bytes = wire->size.value(),
                               .allocation_bytes = wire->allocation_size.value()};
    });
}

entry_outcome ea_list_writer::put(const extended_attribute& attribute) noexcept {
    if (!usable_ea_name(attribute.name) or attribute.value.size() > std::numeric_limits<std::uint16_t>::max())
        return entry_outcome::bad_text;
    return list_.put([&](byte_writer& writer) -> decoded<void> {
        put_without_next(writer,
                         ea_wire{.next = {},
                                 .flags = le8(attribute.needed ? flag_need_ea : 0),
                                 .name_length = le8(static_cast<std::uint8_t>(attribute.name.size())),
                                 .value_length = le16(static_cast<std::uint16_t>(attribute.value.size()))});
        writer.put_bytes(as_bytes(attribute.name));
        writer.put(le8());
        writer.put_bytes(attribute.value);
        return {};
    });
}

ea_list_reader::ea_list_reader(bytes_view list) noexcept : list_(list, sizeof(ea_wire)) {}

decoded<std::optional<extended_attribute>> ea_list_reader::next() noexcept {
    return list_.next_as([](byte_reader& reader) -> decoded<extended_attribute> {
        const auto wire = reader.take<ea_wire>();
        const auto name = take_ea_name(reader, wire->name_length.value());
        if (!name) return std::unexpected(name.error());
        const auto value = reader.take_bytes(wire->value_length.value());
        if (!value) return std::unexpected(decode_error::range_outside_message);
        return extended_attribute{
            .name = *name, .value = *value, .needed = (wire->flags.value() & flag_need_ea) != 0};
    });
}

entry_outcome ea_name_list_writer::put(std::string_view name) noexcept {
    if (!usable_ea_name(name)) return entry_outcome::bad_text;
    return list_.put([&](byte_writer& writer) -> decoded<void> {
        put_without_next(
            writer, ea_name_wire{.next = {}, .name_length = le8(static_cast<std::uint8_t>(name.size()))});
        writer.put_bytes(as_bytes(name));
        writer.put(le8());
        return {};
    });
}

ea_name_list_reader::ea_name_list_reader(bytes_view list) noexcept : list_(list, sizeof(ea_name_wire)) {}

decoded<std::optional<std::string_view>> ea_name_list_reader::next() noexcept {
    return list_.next_as([](byte_reader& reader) -> decoded<std::string_view> {
        const auto wire = reader.take<ea_name_wire>();
        const auto name = take_ea_name(reader, wire->name_length.value());
        if (!name) return std::unexpected(name.error());
        return *name;
    });
}

hard_link_list_writer::hard_link_list_writer(mutable_bytes room) noexcept
    : room_(room.size() >= sizeof(hard_link_head_wire) ? room : mutable_bytes()),
      list_(room_.from(sizeof(hard_link_head_wire)).value_or(mutable_bytes()), 8) {}

entry_outcome hard_link_list_writer::put(const hard_link& link) noexcept {
    return list_.put([&](byte_writer& writer) -> decoded<void> {
        const auto length = utf16_bytes_of(link.name);
        if (!length) return std::unexpected(length.error());
        put_without_next(writer,
                         hard_link_wire{.next = {},
                                        .directory_number = le64(link.directory_number),
                                        .name_characters = le32(static_cast<std::uint32_t>(*length / 2))});
        if (const auto put = put_utf16(writer, link.name); !put) return std::unexpected(put.error());
        return {};
    });
}

mutable_bytes hard_link_list_writer::finish(std::uint32_t bytes_needed) noexcept {
    if (room_.empty()) return {};
    byte_writer head(room_);
    head.put(hard_link_head_wire{.bytes_needed = le32(bytes_needed),
                                 .entries = le32(static_cast<std::uint32_t>(list_.count()))});
    return *room_.first(sizeof(hard_link_head_wire) + list_.bytes().size());
}

hard_link_list_reader::hard_link_list_reader(bytes_view list, std::uint32_t bytes_needed,
                                             std::uint32_t left) noexcept
    : list_(list, sizeof(hard_link_wire)), bytes_needed_(bytes_needed), left_(left) {}

decoded<hard_link_list_reader> hard_link_list_reader::of(bytes_view bytes) noexcept {
    const auto head = bytes.take<hard_link_head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    return hard_link_list_reader(*bytes.from(sizeof(hard_link_head_wire)), head->bytes_needed.value(),
                                 head->entries.value());
}

decoded<std::optional<received_hard_link>> hard_link_list_reader::next() noexcept {
    if (left_ == 0) return std::nullopt;
    --left_;
    return list_.next_as([](byte_reader& reader) -> decoded<received_hard_link> {
        const auto wire = reader.take<hard_link_wire>();
        const auto name = take_utf16(reader, std::uint64_t{wire->name_characters.value()} * 2);
        if (!name) return std::unexpected(name.error());
        return received_hard_link{.directory_number = wire->directory_number.value(), .name_utf16 = *name};
    });
}

}  // namespace sluice::smb::wire

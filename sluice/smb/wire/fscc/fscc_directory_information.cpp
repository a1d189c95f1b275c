#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"

#include <array>
#include <cstddef>

#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

// The forms differ in the blocks that follow the common front, always in this order.
struct layout {
    bool times_and_sizes = true;  // false: only the front of a names entry
    bool ea_size = true;
    bool reparse_tag = false;
    bool padding_before_number = false;
    bool number = false;
    bool number_128 = false;
    bool short_name = false;
    bool padded_number_after_short_name = false;
};

std::optional<layout> layout_of(file_information_class form) noexcept {
    using enum file_information_class;
    switch (form) {
        case names:
            return layout{.times_and_sizes = false, .ea_size = false};
        case directory:
            return layout{.ea_size = false};
        case full_directory:
            return layout{};
        case id_full_directory:
            return layout{.padding_before_number = true, .number = true};
        case both_directory:
            return layout{.short_name = true};
        case id_both_directory:
            return layout{.short_name = true, .padded_number_after_short_name = true};
        case id_extd_directory:
            return layout{.reparse_tag = true, .number_128 = true};
        case id_extd_both_directory:
            return layout{.reparse_tag = true, .number_128 = true, .short_name = true};
        case id_64_extd_directory:
            return layout{.reparse_tag = true, .number = true};
        case id_64_extd_both_directory:
            return layout{.reparse_tag = true, .number = true, .short_name = true};
        case id_all_extd_directory:
            return layout{.reparse_tag = true, .number = true, .number_128 = true};
        case id_all_extd_both_directory:
            return layout{.reparse_tag = true, .number = true, .number_128 = true, .short_name = true};
        default:
            return std::nullopt;
    }
}

// clang-format off
struct names_front_wire {
    le32 next;         // 0
    le32 file_index;   // 4
    le32 name_length;  // 8
};
static_assert(sizeof(names_front_wire) == 12);

struct front_wire {
    le32 next;             //  0
    le32 file_index;       //  4
    le64 created;          //  8
    le64 accessed;         // 16
    le64 written;          // 24
    le64 changed;          // 32
    le64 end_of_file;      // 40
    le64 allocation_size;  // 48
    le32 attributes;       // 56
    le32 name_length;      // 60
};
static_assert(sizeof(front_wire) == 64 and offsetof(front_wire, end_of_file) == 40);

struct short_name_wire {
    le8 length;                       // 0
    le8 reserved;                     // 1
    std::array<std::byte, 24> units;  // 2
};
static_assert(sizeof(short_name_wire) == 26);
// clang-format on

// The field for the size of extended attributes holds a reparse point's tag in forms without a tag
// field.
bool tag_in_ea_size(const layout& has, file_attributes attributes) noexcept {
    return !has.reparse_tag and wire::has(attributes, file_attributes::reparse_point);
}

decoded<short_name_wire> short_name_of(std::string_view name) noexcept {
    short_name_wire block;
    byte_writer writer{mutable_bytes(block.units)};
    const auto length = put_utf16(writer, name);
    if (!length or writer.overflowed()) return std::unexpected(decode_error::bad_text);
    block.length = le8(static_cast<std::uint8_t>(*length));
    return block;
}

// Writes the front without NextEntryOffset, which the list has written.
void put_front(byte_writer& writer, const layout& has, const directory_entry_fields& fields,
               le32 name_length) noexcept {
    writer.put(le32(fields.file_index));
    if (!has.times_and_sizes) {
        writer.put(name_length);
        return;
    }
    const front_wire front{.next = {},
                           .file_index = {},
                           .created = fields.created.wire(),
                           .accessed = fields.accessed.wire(),
                           .written = fields.written.wire(),
                           .changed = fields.changed.wire(),
                           .end_of_file = le64(fields.end_of_file),
                           .allocation_size = le64(fields.allocation_bytes),
                           .attributes = le32(bits_of(fields.attributes)),
                           .name_length = name_length};
    writer.put_bytes(*bytes_of(front).from(offsetof(front_wire, created)));
}

decoded<void> put_entry(byte_writer& writer, const layout& has, const directory_entry_info& entry) noexcept {
    const directory_entry_fields& fields = entry.fields;
    const auto name_length = utf16_bytes_of(entry.name);
    if (!name_length) return std::unexpected(name_length.error());
    put_front(writer, has, fields, le32(static_cast<std::uint32_t>(*name_length)));
    if (has.ea_size)
        writer.put(le32(tag_in_ea_size(has, fields.attributes) ? fields.reparse_tag : fields.ea_bytes));
    if (has.reparse_tag) writer.put(le32(fields.reparse_tag));
    if (has.padding_before_number) writer.put(le32());
    if (has.number) writer.put(le64(fields.file_number));
    if (has.number_128) writer.put(fields.file_number_128_bits);
    if (has.short_name) {
        const auto block = short_name_of(entry.short_name);
        if (!block) return std::unexpected(block.error());
        writer.put(*block);
    }
    if (has.padded_number_after_short_name) {
        writer.put(le16());
        writer.put(le64(fields.file_number));
    }
    if (const auto name = put_utf16(writer, entry.name); !name) return std::unexpected(name.error());
    return {};
}

std::size_t fixed_bytes_of(const layout& has) noexcept {
    std::size_t bytes = has.times_and_sizes ? sizeof(front_wire) : sizeof(names_front_wire);
    if (has.ea_size) bytes += sizeof(le32);
    if (has.reparse_tag) bytes += sizeof(le32);
    if (has.padding_before_number) bytes += sizeof(le32);
    if (has.number) bytes += sizeof(le64);
    if (has.number_128) bytes += sizeof(file_number_128);
    if (has.short_name) bytes += sizeof(short_name_wire);
    if (has.padded_number_after_short_name) bytes += sizeof(le16) + sizeof(le64);
    return bytes;
}

// Decodes the front into `fields` and returns the name's length in bytes. The front is complete,
// because the list has checked the length of the fixed part.
std::uint32_t take_front(byte_reader& reader, const layout& has, directory_entry_fields& fields) noexcept {
    if (!has.times_and_sizes) {
        const names_front_wire front = *reader.take<names_front_wire>();
        fields.file_index = front.file_index.value();
        return front.name_length.value();
    }
    const front_wire front = *reader.take<front_wire>();
    fields = {.file_index = front.file_index.value(),
              .created = filetime(front.created),
              .accessed = filetime(front.accessed),
              .written = filetime(front.written),
              .changed = filetime(front.changed),
              .end_of_file = front.end_of_file.value(),
              .allocation_bytes = front.allocation_size.value(),
              .attributes = file_attributes(front.attributes.value())};
    return front.name_length.value();
}

decoded<bytes_view> take_short_name(byte_reader& reader) noexcept {
    const std::uint8_t length = reader.take<le8>()->value();
    (void)reader.take<le8>();  // reserved
    const bytes_view units = *reader.take_bytes(sizeof(short_name_wire::units));
    const auto name = units.first(length);
    if (!name) return std::unexpected(decode_error::range_outside_message);
    if (length % 2 != 0) return std::unexpected(decode_error::bad_text);
    return *name;
}

decoded<received_directory_entry> take_entry(byte_reader& reader, const layout& has) noexcept {
    received_directory_entry entry;
    directory_entry_fields& fields = entry.fields;
    const std::uint32_t name_length = take_front(reader, has, fields);
    if (has.ea_size) fields.ea_bytes = reader.take<le32>()->value();
    if (has.reparse_tag) fields.reparse_tag = reader.take<le32>()->value();
    if (has.ea_size and tag_in_ea_size(has, fields.attributes)) {
        fields.reparse_tag = fields.ea_bytes;
        fields.ea_bytes = 0;
    }
    if (has.padding_before_number) (void)reader.skip(sizeof(le32));
    if (has.number) fields.file_number = reader.take<le64>()->value();
    if (has.number_128) fields.file_number_128_bits = *reader.take<file_number_128>();
    if (has.short_name) {
        const auto name = take_short_name(reader);
        if (!name) return std::unexpected(name.error());
        entry.short_name_utf16 = *name;
    }
    if (has.padded_number_after_short_name) {
        (void)reader.skip(sizeof(le16));
        fields.file_number = reader.take<le64>()->value();
    }
    const auto name = reader.take_bytes(name_length);
    if (!name) return std::unexpected(decode_error::range_outside_message);
    if (name_length % 2 != 0) return std::unexpected(decode_error::bad_text);
    entry.name_utf16 = *name;
    return entry;
}

}  // namespace

bool is_directory_form(file_information_class information) noexcept {
    return layout_of(information).has_value();
}

bool has_short_names(file_information_class form) noexcept {
    ENSURE(is_directory_form(form));
    return layout_of(form)->short_name;
}

std::size_t directory_entry_bytes_min(file_information_class form) noexcept {
    ENSURE(is_directory_form(form));
    return fixed_bytes_of(*layout_of(form));
}

directory_entry_writer::directory_entry_writer(mutable_bytes room, file_information_class form) noexcept
    : list_(room, 8), form_(form) {
    ENSURE(is_directory_form(form));
}

entry_outcome directory_entry_writer::put(const directory_entry_info& entry) noexcept {
    const layout has = *layout_of(form_);
    return list_.put([&](byte_writer& writer) { return put_entry(writer, has, entry); });
}

directory_entry_reader::directory_entry_reader(bytes_view list, file_information_class form) noexcept
    : list_(list, fixed_bytes_of(layout_of(form).value_or(layout{}))), form_(form) {
    ENSURE(is_directory_form(form));
}

decoded<std::optional<received_directory_entry>> directory_entry_reader::next() noexcept {
    const layout has = *layout_of(form_);
    return list_.next_as([&](byte_reader& reader) { return take_entry(reader, has); });
}

}  // namespace sluice::smb::wire

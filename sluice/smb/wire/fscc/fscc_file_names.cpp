#include "sluice/smb/wire/fscc/fscc_file_names.hpp"

#include <array>
#include <cstddef>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

// The common front of rename and link. It begins with one byte or four bytes of flags.
// clang-format off
struct target_wire {
    le32 flags;           //  0
    le32 reserved;        //  4
    le64 root_directory;  //  8
    le32 name_length;     // 16
};
static_assert(sizeof(target_wire) == 20 and offsetof(target_wire, name_length) == 16);
// clang-format on

decoded<void> put_target(byte_writer& writer, std::uint32_t flags, std::string_view name) noexcept {
    const auto length = utf16_bytes_of(name);
    if (!length) return std::unexpected(length.error());
    writer.put(target_wire{.flags = le32(flags),
                           .reserved = {},
                           .root_directory = {},
                           .name_length = le32(static_cast<std::uint32_t>(*length))});
    if (const auto put = put_utf16(writer, name); !put) return std::unexpected(put.error());
    // Windows rejects a structure shorter than its fixed part rounded up to 8.
    if (writer.position() < 24 and *length < 4) writer.put_zeros(4 - *length);
    return {};
}

struct target {
    std::uint32_t flags;
    std::string name;
};

decoded<target> target_at_front(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto wire = reader.take<target_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    if (wire->root_directory.value() != 0) return std::unexpected(decode_error::bad_value);
    const auto name = reader.take_bytes(wire->name_length.value());
    if (!name) return std::unexpected(decode_error::range_outside_message);
    auto text = utf8_of(*name);
    if (!text) return std::unexpected(text.error());
    return target{.flags = wire->flags.value(), .name = std::move(*text)};
}

// The three bytes after ReplaceIfExists are reserved and may have any value.
template <class T>
decoded<T> with_replace_byte(bytes_view bytes) noexcept {
    auto decoded_target = target_at_front(bytes);
    if (!decoded_target) return std::unexpected(decoded_target.error());
    return T{.replace_if_exists = (decoded_target->flags & 0xFF) != 0,
             .target = std::move(decoded_target->name)};
}

// clang-format off
struct all_layout {
    std::array<std::byte, 40> basic;      //  0
    std::array<std::byte, 24> standard;   // 40
    std::array<std::byte, 8>  internal;   // 64
    std::array<std::byte, 4>  ea;         // 72
    std::array<std::byte, 4>  access;     // 76
    std::array<std::byte, 8>  position;   // 80
    std::array<std::byte, 4>  mode;       // 88
    std::array<std::byte, 4>  alignment;  // 92
};
static_assert(sizeof(all_layout) + sizeof(le32) == all_information_fixed_bytes);
// clang-format on

}  // namespace

decoded<void> encode_name_information(byte_writer& writer, std::string_view name) noexcept {
    const auto length = utf16_bytes_of(name);
    if (!length) return std::unexpected(length.error());
    writer.put(le32(static_cast<std::uint32_t>(*length)));
    if (const auto put = put_utf16(writer, name); !put) return std::unexpected(put.error());
    return {};
}

decoded<std::string> decode_name_information(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto length = reader.take<le32>();
    if (!length) return std::unexpected(decode_error::truncated);
    const auto name = reader.take_bytes(length->value());
    if (!name) return std::unexpected(decode_error::range_outside_message);
    return utf8_of(*name);
}

decoded<void> encode(byte_writer& writer, const rename_information& information) noexcept {
    return put_target(writer, information.replace_if_exists, information.target);
}
decoded<rename_information> decode_rename_information(bytes_view bytes) noexcept {
    return with_replace_byte<rename_information>(bytes);
}

decoded<void> encode(byte_writer& writer, const link_information& information) noexcept {
    return put_target(writer, information.replace_if_exists, information.target);
}
decoded<link_information> decode_link_information(bytes_view bytes) noexcept {
    return with_replace_byte<link_information>(bytes);
}

decoded<void> encode(byte_writer& writer, const rename_information_ex& information) noexcept {
    return put_target(writer, bits_of(information.flags), information.target);
}
decoded<rename_information_ex> decode_rename_information_ex(bytes_view bytes) noexcept {
    auto decoded_target = target_at_front(bytes);
    if (!decoded_target) return std::unexpected(decoded_target.error());
    return rename_information_ex{.flags = rename_flags(decoded_target->flags),
                                 .target = std::move(decoded_target->name)};
}

decoded<void> encode(byte_writer& writer, const all_information& information) noexcept {
    // The name is checked before any output, so that a bad name writes nothing.
    if (const auto length = utf16_bytes_of(information.name); !length) return std::unexpected(length.error());
    encode(writer, information.basic);
    encode(writer, information.standard);
    encode(writer, information.internal);
    encode(writer, information.ea);
    encode(writer, information.access);
    encode(writer, information.position);
    encode(writer, information.mode);
    encode(writer, information.alignment);
    return encode_name_information(writer, information.name);
}

decoded<all_information> decode_all_information(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto parts = reader.take<all_layout>();
    if (!parts) return std::unexpected(decode_error::truncated);
    // Each part has the length that its decoder expects, so only a position can be rejected.
    const auto position = decode_position_information(parts->position);
    if (!position) return std::unexpected(position.error());
    auto name = decode_name_information(reader.rest());
    if (!name) return std::unexpected(name.error());
    return all_information{.basic = *decode_basic_information(parts->basic),
                           .standard = *decode_standard_information(parts->standard),
                           .internal = *decode_internal_information(parts->internal),
                           .ea = *decode_ea_information(parts->ea),
                           .access = *decode_access_information(parts->access),
                           .position = *position,
                           .mode = *decode_mode_information(parts->mode),
                           .alignment = *decode_alignment_information(parts->alignment),
                           .name = std::move(*name)};
}

}  // namespace sluice::smb::wire

#pragma once

#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

enum class change_notify_flags : std::uint16_t { none = 0, watch_tree = 1 };
template <>
inline constexpr bool is_bit_flags<change_notify_flags> = true;

/// The kinds of change that a client watches for.
enum class completion_filter : std::uint32_t {
    none = 0,
    file_name = 0x001,
    directory_name = 0x002,
    attributes = 0x004,
    size = 0x008,
    last_write = 0x010,
    last_access = 0x020,
    creation = 0x040,
    extended_attributes = 0x080,
    security = 0x100,
    stream_name = 0x200,
    stream_size = 0x400,
    stream_write = 0x800,
};
template <>
inline constexpr bool is_bit_flags<completion_filter> = true;

/// CHANGE_NOTIFY, [MS-SMB2] 2.2.35.
struct change_notify_args {
    change_notify_flags flags = change_notify_flags::none;
    std::uint32_t output_bytes_max = 0;
    file_id file{};
    completion_filter filter = completion_filter::none;

    [[nodiscard]] friend bool operator==(const change_notify_args&,
                                         const change_notify_args&) noexcept = default;
};

/// CHANGE_NOTIFY response, [MS-SMB2] 2.2.36: a list of FILE_NOTIFY_INFORMATION. It is empty with
/// STATUS_NOTIFY_ENUM_DIR: there were more changes than the server can report.
struct change_notify_reply {
    bytes_view changes{};

    [[nodiscard]] friend bool operator==(const change_notify_reply&,
                                         const change_notify_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<change_notify_args> decode_change_notify(const message_view& message) noexcept;
[[nodiscard]] decoded<change_notify_reply> decode_change_notify_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const change_notify_args& args) noexcept;
void encode(byte_writer& writer, const change_notify_reply& reply) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/guid.hpp"

// The buffers of GET_, SET_ and DELETE_REPARSE_POINT, [MS-FSCC] 2.1.

namespace sluice::smb::wire {

inline constexpr std::uint32_t reparse_tag_mount_point = 0xA0000003;
inline constexpr std::uint32_t reparse_tag_symlink = 0xA000000C;
inline constexpr std::uint32_t reparse_tag_nfs = 0x80000014;
/// The largest length of the data after the head of a buffer, [MS-FSCC] 2.1.
inline constexpr std::size_t reparse_data_bytes_max = 16 * 1024;

/// SYMBOLIC_LINK_REPARSE_DATA_BUFFER, [MS-FSCC] 2.1. The substitute name is followed, the print
/// name is displayed.
struct reparse_symlink {
    std::string substitute{};
    std::string print{};
    bool relative = false;
    [[nodiscard]] friend bool operator==(const reparse_symlink&, const reparse_symlink&) noexcept = default;
};

/// Mount point or junction, [MS-FSCC] 2.1.
struct reparse_mount_point {
    std::string substitute{};
    std::string print{};
    [[nodiscard]] friend bool operator==(const reparse_mount_point&,
                                         const reparse_mount_point&) noexcept = default;
};

/// Any other tag. Tags other than Microsoft's (bit 31 clear) have an owner's GUID before the data.
struct reparse_other {
    std::uint32_t tag = 0;
    guid owner{};  ///< zero for Microsoft's tags
    std::vector<std::byte> data{};
    [[nodiscard]] friend bool operator==(const reparse_other&, const reparse_other&) noexcept = default;
};

using reparse_point = std::variant<reparse_symlink, reparse_mount_point, reparse_other>;

/// Errors: `bad_text`, `too_long` beyond reparse_data_bytes_max. In case of an error nothing is
/// written. Allocates: the names in UTF-16.
[[nodiscard]] decoded<void> encode(byte_writer& writer, const reparse_point& point) noexcept;
/// Errors: `truncated`, `too_long`, `range_outside_message` for a name outside
/// the data, `bad_text`.
/// Allocates: the names, or the data.
[[nodiscard]] decoded<reparse_point> decode_reparse_point(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"

// The information classes that contain a name. In memory names are UTF-8 (see utf16.hpp). The code
// that resolves a name checks its characters. encode() of a name fails with `bad_text`, without
// output, if it is not UTF-8. Decoders allocate the string. They fail with `truncated`,
// `range_outside_message` if the name extends past the end of the bytes, or `bad_text`.

namespace sluice::smb::wire {

/// Encodes a length and a name: FileNameInformation, [MS-FSCC] 2.4, which is also the format of
/// FileAlternateNameInformation, FileNormalizedNameInformation and FileShortNameInformation.
[[nodiscard]] decoded<void> encode_name_information(byte_writer& writer, std::string_view name) noexcept;
[[nodiscard]] decoded<std::string> decode_name_information(bytes_view bytes) noexcept;

/// FileRenameInformation and FileLinkInformation in the form of SMB2, [MS-FSCC] 2.4. The target is
/// relative to the root of the share. The field for another root must be zero (`bad_value`
/// otherwise).
struct rename_information {
    bool replace_if_exists = false;
    std::string target{};
    [[nodiscard]] friend bool operator==(const rename_information&,
                                         const rename_information&) noexcept = default;
};
[[nodiscard]] decoded<void> encode(byte_writer& writer, const rename_information& information) noexcept;
[[nodiscard]] decoded<rename_information> decode_rename_information(bytes_view bytes) noexcept;

struct link_information {
    bool replace_if_exists = false;
    std::string target{};
    [[nodiscard]] friend bool operator==(const link_information&, const link_information&) noexcept = default;
};
[[nodiscard]] decoded<void> encode(byte_writer& writer, const link_information& information) noexcept;
[[nodiscard]] decoded<link_information> decode_link_information(bytes_view bytes) noexcept;

/// FILE_RENAME_*, [MS-FSCC] 2.4; FILE_LINK_* have the same values.
enum class rename_flags : std::uint32_t {
    none = 0,
    replace_if_exists = 0x01,
    posix_semantics = 0x02,
    ignore_read_only = 0x40,
};
template <>
inline constexpr bool is_bit_flags<rename_flags> = true;

/// FileRenameInformationEx, [MS-FSCC] 2.4.
struct rename_information_ex {
    rename_flags flags = rename_flags::none;
    std::string target{};
    [[nodiscard]] friend bool operator==(const rename_information_ex&,
                                         const rename_information_ex&) noexcept = default;
};
[[nodiscard]] decoded<void> encode(byte_writer& writer, const rename_information_ex& information) noexcept;
[[nodiscard]] decoded<rename_information_ex> decode_rename_information_ex(bytes_view bytes) noexcept;

/// FileAllInformation, [MS-FSCC] 2.4: most of the other classes in one structure.
struct all_information {
    basic_information basic{};
    standard_information standard{};
    internal_information internal{};
    ea_information ea{};
    access_information access{};
    position_information position{};
    mode_information mode{};
    alignment_information alignment{};
    std::string name{};
    [[nodiscard]] friend bool operator==(const all_information&, const all_information&) noexcept = default;
};
/// The length of the fixed part, after which a reply may be truncated (STATUS_BUFFER_OVERFLOW).
inline constexpr std::size_t all_information_fixed_bytes = 100;
[[nodiscard]] decoded<void> encode(byte_writer& writer, const all_information& information) noexcept;
/// Errors: also those of the parts.
[[nodiscard]] decoded<all_information> decode_all_information(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

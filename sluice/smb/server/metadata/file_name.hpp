#pragma once

#include <expected>
#include <memory_resource>
#include <string>
#include <string_view>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

/// A name as a client writes it ("dir\file:stream:$DATA"), parsed ([MS-FSCC] 2.1.5).
struct file_name {
    std::pmr::string path;               // for vfs: UTF-8, '/' between
                                         // components; empty for the root
    std::string stream;                  // empty for the unnamed one
    bool names_stream = false;           // a stream was named, even if by "::$DATA" the unnamed one
    bool names_directory_index = false;  // "dir::$INDEX_ALLOCATION", a directory by another name
    bool ends_with_separator = false;    // and so means a directory

    [[nodiscard]] bool is_root() const noexcept { return path.empty() and stream.empty(); }
};

/// Returns whether a name is that of the file of NTFS through which clients query and set quotas.
/// For a volume with quotas, CREATE opens the root in its place.
[[nodiscard]] bool is_quota_file_name(std::string_view text) noexcept;

/// Parses the name of a CREATE, or the target of a rename or link. `utf16` is relative to the
/// share. Removes the components "." and "..". Errors: INVALID_PARAMETER (a leading separator, half
/// a character, ".." as the second component, $INDEX_ALLOCATION after the name of a stream),
/// OBJECT_NAME_INVALID (invalid characters or components, too long), OBJECT_PATH_SYNTAX_BAD (".."
/// above the share), OBJECT_PATH_NOT_FOUND (an empty component, the quota file of NTFS). Allocates:
/// the path, in `memory`.
[[nodiscard]] std::expected<file_name, wire::nt_status> parse_file_name(
    bytes_view utf16, std::pmr::memory_resource& memory = *std::pmr::get_default_resource());
/// The same for UTF-8.
[[nodiscard]] std::expected<file_name, wire::nt_status> parse_file_name_text(
    std::string_view text, std::pmr::memory_resource& memory = *std::pmr::get_default_resource());

/// The same for a stream alone, as in a rename within a file: ":new:$DATA".
[[nodiscard]] std::expected<std::string, wire::nt_status> parse_stream_name(std::string_view text);

}  // namespace sluice::smb::server

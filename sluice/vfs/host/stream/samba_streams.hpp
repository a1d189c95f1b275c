#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/bytes.hpp"

// How Samba stores named streams: its modules streams_xattr and streams_depot.

namespace sluice::vfs {

/// Returns the name of the stream that an attribute of streams_xattr contains
/// ("user.DosStream.NAME:$DATA"); std::nullopt for other attributes. The type can be absent
/// (`store_stream_type = no`).
[[nodiscard]] std::optional<std::string_view> samba_stream_of_attribute(std::string_view attribute) noexcept;

/// The value of such an attribute. Its last byte is the number of further attributes, usually 0.
struct samba_stream_value {
    bytes_view content{};
    unsigned extensions = 0;
};
/// Returns std::nullopt for an empty value, and for more attributes than Samba uses.
[[nodiscard]] std::optional<samba_stream_value> decode_samba_value(bytes_view value) noexcept;
/// How the names of further attributes begin, unless Samba is configured otherwise
/// (`streams_xattr:ext_prefix`).
inline constexpr std::string_view usual_samba_extension_prefix = "user.DosStreamExt.";
/// Returns the name of a further attribute, `number` from 1, of the stream in `attribute`.
[[nodiscard]] std::string samba_extension_of(std::string_view attribute, unsigned number,
                                             std::string_view prefix = usual_samba_extension_prefix);

/// The file whose streams are in a directory of streams_depot.
struct samba_depot_file {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
};
/// Decodes the name of such a directory: 32 hexadecimal digits. Returns std::nullopt for other
/// names.
[[nodiscard]] std::optional<samba_depot_file> decode_samba_depot_name(std::string_view name) noexcept;
/// Returns the name of the stream in a file of such a directory (":NAME:$DATA"); std::nullopt for
/// others.
[[nodiscard]] std::optional<std::string_view> samba_stream_of_depot_file(std::string_view name) noexcept;

}  // namespace sluice::vfs

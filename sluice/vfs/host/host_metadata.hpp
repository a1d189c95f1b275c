#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sluice/base/bytes.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/metadata.hpp"

// The metadata of Windows files that Unix does not have, stored in one extended attribute:
// docs/formats/host_metadata.md.

namespace sluice::vfs {

/// The prefix of all private extended attributes. Clients' attributes are all others that begin
/// with "user.".
inline constexpr std::string_view own_prefix = "user.sluice.";
inline constexpr const char* metadata_attribute = "user.sluice.dos";
inline constexpr const char* security_attribute = "user.sluice.security";
inline constexpr std::string_view stream_prefix = "user.sluice.stream.";

struct stored_metadata {
    dos_attributes dos = dos_attributes::none;
    bool is_sparse = false;
    std::optional<time_point> born{};  // as set by a client

    [[nodiscard]] friend constexpr bool operator==(const stored_metadata&,
                                                   const stored_metadata&) noexcept = default;
};

inline constexpr std::size_t stored_metadata_bytes = 16;

[[nodiscard]] std::array<std::byte, stored_metadata_bytes> encode(const stored_metadata& what) noexcept;
/// Returns std::nullopt if the bytes are too short or have an unknown version. The file then has
/// the default metadata.
[[nodiscard]] std::optional<stored_metadata> decode_stored_metadata(bytes_view bytes) noexcept;

/// Returns the stored metadata of an open file; std::nullopt if there are none, or if the file
/// system or the kind of file does not support attributes. Errors: EIO and similar. Allocates:
/// nothing. Blocks: for the file system.
[[nodiscard]] result<std::optional<stored_metadata>> load_metadata(const io::handle& open) noexcept;
[[nodiscard]] result<void> store_metadata(const io::handle& open, const stored_metadata& what) noexcept;

enum class dot_names : bool { plain, hidden };

/// Returns the attributes of a file without stored metadata. Files have `archive`, like all new
/// files on Windows, so that creating one stores nothing. Files without any write permission are
/// `read_only`. Names that begin with a dot are `hidden` if that is configured.
[[nodiscard]] dos_attributes default_attributes(const io::file_status& status, std::string_view name,
                                                dot_names dots) noexcept;

/// Returns the complete metadata.
[[nodiscard]] metadata metadata_of(const io::file_status& status,
                                   const std::optional<stored_metadata>& stored, std::string_view name,
                                   dot_names dots) noexcept;
[[nodiscard]] node_kind kind_of(io::file_type type) noexcept;

}  // namespace sluice::vfs

#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sluice/base/bytes.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/metadata.hpp"

// What Windows knows of a file and Unix does not, kept in one extended attribute:
// docs/formats/host_metadata.md.

namespace sluice::vfs {

/// All extended attributes that are ours begin with this; those of clients are what else begins with "user.".
inline constexpr std::string_view own_prefix = "user.sluice.";
inline constexpr const char* metadata_attribute = "user.sluice.dos";
inline constexpr const char* security_attribute = "user.sluice.security";
inline constexpr std::string_view stream_prefix = "user.sluice.stream.";

struct stored_metadata {
    dos_attributes dos = dos_attributes::none;
    bool is_sparse = false;
    std::optional<time_point> born{};  // as a client set it

    [[nodiscard]] friend constexpr bool operator==(const stored_metadata&,
                                                   const stored_metadata&) noexcept = default;
};

inline constexpr std::size_t stored_metadata_bytes = 16;

[[nodiscard]] std::array<std::byte, stored_metadata_bytes> encode(const stored_metadata& what) noexcept;
/// Nothing if it is too short or of a version we do not know: the file then has what it has without.
[[nodiscard]] std::optional<stored_metadata> decode_stored_metadata(bytes_view bytes) noexcept;

/// What is stored of an open file; nothing if nothing is, or the file system or the kind of file keeps no
/// attributes. Errors: EIO and the like. Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<std::optional<stored_metadata>> load_metadata(const io::handle& open) noexcept;
[[nodiscard]] result<void> store_metadata(const io::handle& open, const stored_metadata& what) noexcept;

enum class dot_names : bool { plain, hidden };

/// What holds of a file about which nothing is stored: files have `archive`, as everything new has on
/// Windows, so that creating one stores nothing; files nobody may write to are `read_only`; and names that
/// begin with a dot are `hidden`, if so wanted.
[[nodiscard]] dos_attributes default_attributes(const io::file_status& status, std::string_view name,
                                                dot_names dots) noexcept;

/// The whole of it.
[[nodiscard]] metadata metadata_of(const io::file_status& status,
                                   const std::optional<stored_metadata>& stored, std::string_view name,
                                   dot_names dots) noexcept;
[[nodiscard]] node_kind kind_of(io::file_type type) noexcept;

}  // namespace sluice::vfs

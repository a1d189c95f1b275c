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

/// Times as clients have set them that the host cannot report itself: a change time; a time of
/// access before that of modification, which is otherwise reported as the later of the two; times
/// that its file system, or the clock, cannot represent. They hold until the host's time of
/// modification differs from modified_of_host().
struct stored_times {
    time_point modified{};
    std::optional<time_point> accessed{};
    std::optional<time_point> changed{};
    // If `changed`: when it was stored; it holds until the host's change time is later.
    time_point stored{};
    // The reported times if the file system has replaced the set ones by the limits of its range.
    std::optional<time_point> modified_limit{};
    std::optional<time_point> accessed_limit{};

    /// The times of the host while these hold. Requires `accessed` for the second.
    [[nodiscard]] constexpr time_point modified_of_host() const noexcept {
        return modified_limit.value_or(time_of(system_time_of(modified)));
    }
    [[nodiscard]] constexpr time_point accessed_of_host() const noexcept {
        return accessed_limit.value_or(time_of(system_time_of(*accessed)));
    }
    [[nodiscard]] friend constexpr bool operator==(const stored_times&,
                                                   const stored_times&) noexcept = default;
};

struct stored_metadata {
    dos_attributes dos = dos_attributes::none;
    bool is_sparse = false;
    std::optional<time_point> born{};  // as set by a client
    std::optional<stored_times> times{};

    [[nodiscard]] friend constexpr bool operator==(const stored_metadata&,
                                                   const stored_metadata&) noexcept = default;
};

inline constexpr std::size_t stored_metadata_bytes_min = 16;
inline constexpr std::size_t stored_metadata_bytes_max = 72;
/// Space for the attribute as a later version may write it.
inline constexpr std::size_t stored_metadata_storage_bytes = 128;

/// Stored metadata as the bytes of the attribute.
class encoded_metadata {
public:
    explicit encoded_metadata(const stored_metadata& what) noexcept;
    [[nodiscard]] bytes_view bytes() const noexcept { return *bytes_view(bytes_).first(size_); }

private:
    std::array<std::byte, stored_metadata_bytes_max> bytes_{};
    std::size_t size_ = 0;
};
/// Returns std::nullopt if the bytes are too short or have an unknown version. The file then has
/// the default metadata. Parts that the bytes are too short for are missing.
[[nodiscard]] std::optional<stored_metadata> decode_stored_metadata(bytes_view bytes) noexcept;

/// Returns the stored times that hold for a file whose times are those of `status`; std::nullopt if
/// there are none. Without a change time if it has changed since.
[[nodiscard]] std::optional<stored_times> times_that_hold(const std::optional<stored_metadata>& stored,
                                                          const io::file_status& status) noexcept;
/// Whether a change time stored at `stored` holds for a file with this change time of the host. A
/// program cannot set the host's change time, and the attribute itself changes it: the two differ
/// by the ticks of the kernel's clock and the duration of the call.
[[nodiscard]] bool is_change_time_of_storing(time_point stored, time_point of_host) noexcept;

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

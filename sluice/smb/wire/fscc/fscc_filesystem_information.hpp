#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/guid.hpp"

// The information about a share's volume that QUERY_INFO returns, [MS-FSCC] 2.5. encode() and
// decode() as in fscc_file_metadata.hpp, names as in fscc_file_names.hpp.

namespace sluice::smb::wire {

/// FileFsVolumeInformation, [MS-FSCC] 2.5.
struct fs_volume_information {
    filetime created{};
    std::uint32_t serial_number = 0;
    bool supports_objects = false;
    std::string label{};
    [[nodiscard]] friend bool operator==(const fs_volume_information&,
                                         const fs_volume_information&) noexcept = default;
};
[[nodiscard]] decoded<void> encode(byte_writer& writer, const fs_volume_information& information) noexcept;
[[nodiscard]] decoded<fs_volume_information> decode_fs_volume_information(bytes_view bytes) noexcept;

/// FileFsSizeInformation, [MS-FSCC] 2.5; a unit is sectors_per_unit times bytes_per_sector.
struct fs_size_information {
    std::uint64_t total_units = 0;
    std::uint64_t available_units = 0;
    std::uint32_t sectors_per_unit = 0;
    std::uint32_t bytes_per_sector = 0;
    [[nodiscard]] friend bool operator==(const fs_size_information&,
                                         const fs_size_information&) noexcept = default;
};
void encode(byte_writer& writer, const fs_size_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<fs_size_information> decode_fs_size_information(bytes_view bytes) noexcept;

/// FileFsFullSizeInformation, [MS-FSCC] 2.5.
struct fs_full_size_information {
    std::uint64_t total_units = 0;
    std::uint64_t available_to_caller_units = 0;
    std::uint64_t available_units = 0;
    std::uint32_t sectors_per_unit = 0;
    std::uint32_t bytes_per_sector = 0;
    [[nodiscard]] friend bool operator==(const fs_full_size_information&,
                                         const fs_full_size_information&) noexcept = default;
};
void encode(byte_writer& writer, const fs_full_size_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<fs_full_size_information> decode_fs_full_size_information(bytes_view bytes) noexcept;

/// FileFsDeviceInformation, [MS-FSCC] 2.5.
struct fs_device_information {
    static constexpr std::uint32_t disk = 0x07;
    static constexpr std::uint32_t named_pipe = 0x11;
    static constexpr std::uint32_t read_only = 0x02;  ///< a bit of the characteristics
    static constexpr std::uint32_t mounted = 0x20;

    std::uint32_t type = disk;
    std::uint32_t characteristics = mounted;
    [[nodiscard]] friend bool operator==(const fs_device_information&,
                                         const fs_device_information&) noexcept = default;
};
void encode(byte_writer& writer, const fs_device_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<fs_device_information> decode_fs_device_information(bytes_view bytes) noexcept;

/// The capabilities of a volume, [MS-FSCC] 2.5.
enum class filesystem_attributes : std::uint32_t {
    none = 0,
    case_sensitive_search = 0x00000001,
    case_preserved_names = 0x00000002,
    unicode_on_disk = 0x00000004,
    persistent_acls = 0x00000008,
    file_compression = 0x00000010,
    volume_quotas = 0x00000020,
    sparse_files = 0x00000040,
    reparse_points = 0x00000080,
    object_ids = 0x00010000,
    encryption = 0x00020000,
    named_streams = 0x00040000,
    read_only_volume = 0x00080000,
    hard_links = 0x00400000,
    extended_attributes = 0x00800000,
    open_by_file_id = 0x01000000,
    integrity_streams = 0x04000000,
    block_refcounting = 0x08000000,
    sparse_vdl = 0x10000000,
    posix_unlink_rename = 0x80000000,
};
template <>
inline constexpr bool is_bit_flags<filesystem_attributes> = true;

/// FileFsAttributeInformation, [MS-FSCC] 2.5. The name of the file system is for display, but some
/// programs compare it with "NTFS".
struct fs_attribute_information {
    filesystem_attributes attributes = filesystem_attributes::none;
    std::uint32_t name_units_max = 255;
    std::string filesystem_name{};
    [[nodiscard]] friend bool operator==(const fs_attribute_information&,
                                         const fs_attribute_information&) noexcept = default;
};
[[nodiscard]] decoded<void> encode(byte_writer& writer, const fs_attribute_information& information) noexcept;
[[nodiscard]] decoded<fs_attribute_information> decode_fs_attribute_information(bytes_view bytes) noexcept;

/// FileFsControlInformation, [MS-FSCC] 2.5: quotas and indexing. The defaults mean "no quota".
struct fs_control_information {
    static constexpr std::uint64_t unlimited = ~0ULL;
    // Flags.
    static constexpr std::uint32_t quota_tracked = 0x1;
    static constexpr std::uint32_t quota_enforced = 0x2;

    std::uint64_t free_space_start_filtering = 0;
    std::uint64_t free_space_threshold = 0;
    std::uint64_t free_space_stop_filtering = 0;
    std::uint64_t default_quota_threshold = unlimited;
    std::uint64_t default_quota_limit = unlimited;
    std::uint32_t flags = 0;
    [[nodiscard]] friend bool operator==(const fs_control_information&,
                                         const fs_control_information&) noexcept = default;
};
void encode(byte_writer& writer, const fs_control_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<fs_control_information> decode_fs_control_information(bytes_view bytes) noexcept;

/// FileFsObjectIdInformation, [MS-FSCC] 2.5.
struct fs_object_id_information {
    guid object_id{};
    std::array<std::byte, 48> extended{};
    [[nodiscard]] friend bool operator==(const fs_object_id_information&,
                                         const fs_object_id_information&) noexcept = default;
};
void encode(byte_writer& writer, const fs_object_id_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<fs_object_id_information> decode_fs_object_id_information(bytes_view bytes) noexcept;

/// FileFsSectorSizeInformation, [MS-FSCC] 2.5.
struct fs_sector_size_information {
    static constexpr std::uint32_t aligned_device = 0x01;
    static constexpr std::uint32_t partition_aligned_on_device = 0x02;
    static constexpr std::uint32_t no_seek_penalty = 0x04;
    static constexpr std::uint32_t trim_enabled = 0x08;

    std::uint32_t logical_bytes = 512;
    std::uint32_t physical_bytes_for_atomicity = 512;
    std::uint32_t physical_bytes_for_performance = 512;
    std::uint32_t effective_physical_bytes_for_atomicity = 512;
    std::uint32_t flags = aligned_device | partition_aligned_on_device;
    std::uint32_t sector_alignment_bytes = 0;
    std::uint32_t partition_alignment_bytes = 0;
    [[nodiscard]] friend bool operator==(const fs_sector_size_information&,
                                         const fs_sector_size_information&) noexcept = default;
};
void encode(byte_writer& writer, const fs_sector_size_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<fs_sector_size_information> decode_fs_sector_size_information(
    bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

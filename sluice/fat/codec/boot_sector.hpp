#pragma once

#include <array>
#include <cstddef>
#include <expected>
#include <string>

#include "sluice/base/endian.hpp"
#include "sluice/fat/codec/geometry.hpp"
#include "sluice/fat/device.hpp"

// The first sector of a volume and FAT32's FSInfo sector: decoded into a checked geometry, and
// encoded.
//
// The FAT type is determined as Linux does, so that every volume that Linux mounts can be read.
// Without a 16-bit FAT length it is FAT32, whatever the number of clusters; otherwise fewer than
// 4,085 clusters mean FAT12, fewer than 65,525 FAT16. Formatting is strict (format.hpp): the type
// of a new volume is the same by the number of clusters alone.
//
// Source: Microsoft, "FAT: General Overview of On-Disk Format" 1.03; docs/formats/fat.md has the
// parts used here.

namespace sluice::fat {

/// The boot sector up to its boot code. Offsets are from the start of the volume.
struct boot_sector {
    std::array<std::byte, 3> jump;       //  0
    std::array<char, 8> oem_name;        //  3
    le16 bytes_per_sector;               // 11
    le8 sectors_per_cluster;             // 13
    le16 reserved_sectors;               // 14  before the first FAT, this sector among them
    le8 fat_count;                       // 16
    le16 root_entries;                   // 17  0 on FAT32
    le16 total_sectors_16;               // 19  0: see total_sectors_32
    le8 media;                           // 21
    le16 fat_sectors_16;                 // 22  of one FAT; 0 on FAT32
    le16 sectors_per_track;              // 24
    le16 heads;                          // 26
    le32 hidden_sectors;                 // 28  before the partition
    le32 total_sectors_32;               // 32
    std::array<std::byte, 54> extended;  // 36  extended_fields, or on FAT32 fat32_fields
    std::array<std::byte, 420> code;     // 90
    le16 signature;                      // 510
};
static_assert(sizeof(boot_sector) == 512 and alignof(boot_sector) == 1);
static_assert(offsetof(boot_sector, total_sectors_32) == 32 and offsetof(boot_sector, code) == 90);

/// The extended fields: at offset 36 on FAT12 and FAT16, at 64 on FAT32.
struct extended_fields {
    le8 drive;                      // 0
    le8 state;                      // 1  bit 0 dirty, bit 1 the medium had errors
    le8 signature;                  // 2  0x29: all fields below are valid; 0x28:
                                    //    only the serial number
    le32 serial;                    // 3
    std::array<char, 11> label;     // 7
    std::array<char, 8> type_name;  // 18  informational only
};
static_assert(sizeof(extended_fields) == 26);

struct fat32_fields {
    le32 fat_sectors_32;               // 36
    le16 flags;                        // 40  bit 7: only the FAT of bits 0 to 3 is kept
    le16 version;                      // 42
    le32 root_cluster;                 // 44
    le16 info_sector;                  // 48
    le16 backup_sector;                // 50
    std::array<std::byte, 12> unused;  // 52
    extended_fields extended;          // 64
};
static_assert(sizeof(fat32_fields) == 54 and offsetof(fat32_fields, extended) == 64 - 36);

/// A rule that a boot sector can break.
enum class boot_fault : std::uint8_t {
    unreadable,  // the first 512 bytes cannot be read; bound: the errno
    is_exfat,
    is_ntfs,
    is_empty,      // all zeros: never formatted
    sector_size,   // value: the size
    cluster_size,  // value: sectors per cluster
    no_reserved_sectors,
    no_fats,
    media_byte,  // value: the byte
    no_fat_sectors,
    too_many_fat_sectors,  // value: sectors of all FATs; bound: sectors of the volume
    root_entries,          // value: the number; bound: entries per sector
    no_sectors,
    no_data,            // value: start of the data area, in sectors; bound: sectors of the volume
    too_many_clusters,  // value: the number; bound: maximum of the FAT type
    active_fat,         // value: its number; bound: number of FATs
};

/// The reason why a sector is not the boot sector of a FAT volume. A value; the message is
/// allocated only on request.
struct boot_problem {
    boot_fault fault = boot_fault::unreadable;
    std::uint64_t value = 0;
    std::uint64_t bound = 0;

    /// Returns the value, the rule it breaks, and the remedy: one or two sentences, without a full
    /// stop at the end.
    /// Allocates: the string.
    [[nodiscard]] std::string message() const;
    /// Returns the problem as errno, for callers that report nothing else: EINVAL if there is no
    /// FAT volume, EIO if it is unreadable.
    [[nodiscard]] error as_error() const noexcept;
};

/// Decodes a boot sector. `device_bytes` is the length of the image or partition. A volume that is
/// longer is an oddity (image_is_short), not an error. Allocates: nothing. Complexity: O(1).
[[nodiscard]] std::expected<geometry, boot_problem> decode_boot_sector(const boot_sector& sector,
                                                                       std::uint64_t device_bytes) noexcept;

/// Reads the boot sector of the volume in `image`. Does not read the backup copy; to use that, call
/// decode_boot_sector with it. Allocates: nothing. Blocks: as device::read_at.
[[nodiscard]] std::expected<geometry, boot_problem> read_geometry(device& image) noexcept;

/// Returns the fields that a FAT32 boot sector has after the common ones. For other sectors the
/// result is meaningless.
[[nodiscard]] fat32_fields fat32_fields_of(const boot_sector& sector) noexcept;
void set_fat32_fields(boot_sector& sector, const fat32_fields& fields) noexcept;
[[nodiscard]] extended_fields extended_fields_of(const boot_sector& sector, fat_type type) noexcept;
void set_extended_fields(boot_sector& sector, fat_type type, const extended_fields& fields) noexcept;

/// FAT32's FSInfo sector: hints, which are unreliable if the volume was not clean.
struct info_sector {
    le32 lead_signature;                // 0    0x41615252
    std::array<std::byte, 480> unused;  // 4
    le32 signature;                     // 484  0x61417272
    le32 free_count;                    // 488  clusters; all ones: unknown
    le32 next_free;                     // 492  where to look first; all ones: unknown
    std::array<std::byte, 12> unused2;  // 496
    le32 trail_signature;               // 508  0xaa550000
};
static_assert(sizeof(info_sector) == 512 and offsetof(info_sector, free_count) == 488);

/// The contents of an FSInfo sector, as far as they are possible for the volume.
struct volume_info {
    std::optional<std::uint32_t> free_count;  // at most cluster_count
    std::optional<std::uint32_t> next_free;   // a cluster of the volume

    [[nodiscard]] friend bool operator==(const volume_info&, const volume_info&) noexcept = default;
};

/// Decodes an FSInfo sector. Returns std::nullopt if the signatures are not those of an FSInfo
/// sector. Then the sector must not be written either, because it may have another purpose.
/// Allocates: nothing.
[[nodiscard]] std::optional<volume_info> decode_info(const info_sector& sector,
                                                     const geometry& shape) noexcept;
/// Encodes an FSInfo sector; does not preserve the unused fields of an existing one.
[[nodiscard]] info_sector encode_info(const volume_info& info) noexcept;

}  // namespace sluice::fat

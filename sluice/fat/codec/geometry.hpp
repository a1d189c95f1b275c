#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/fat/codec/table_entry.hpp"

namespace sluice::fat {

/// Deviations from the specification of a volume that can still be read.
enum class format_anomaly : std::uint16_t {
    none = 0,
    no_signature = 1,       ///< the sector does not end in 55 AA
    few_clusters = 2,       ///< FAT32 by its fields, with fewer clusters than the
                            ///< specification requires
    image_is_short = 4,     ///< the boot sector counts more sectors than the image has
    table_is_short = 8,     ///< the FAT has entries for fewer clusters than the data area
    one_table = 16,         ///< a single FAT: no copy to repair from
    version_unknown = 32,   ///< FAT32 version other than 0.0
    info_sector_lost = 64,  ///< FAT32 without a usable FSInfo sector number
    unusual_jump = 128,     ///< does not begin with a jump instruction
    media_differs = 256,    ///< FAT[0] does not repeat the media byte (set by the reader of FAT[0])
};
[[nodiscard]] constexpr format_anomaly operator|(format_anomaly a, format_anomaly b) noexcept {
    return static_cast<format_anomaly>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr bool has(format_anomaly set, format_anomaly wanted) noexcept {
    return (static_cast<unsigned>(set) & static_cast<unsigned>(wanted)) != 0;
}

/// The layout of a volume, computed from its boot sector and checked once. A plain value.
///
/// Invariants (established by decode_boot_sector, assumed by all users):
///   1. sector_bytes, sectors_per_cluster and cluster_bytes are powers of two, none is zero;
///      sector_bytes is 512 to 4096.
///   2. fat_count >= 1 and active_fat < fat_count.
///   3. Every cluster number in [first_cluster, last_cluster] has an entry inside each FAT copy and
///      lies inside [data_offset, volume_bytes). There may be none at all (cluster_count == 0).
///   4. FAT copies, fixed root and data area follow each other without overlap, in this order.
///   5. All offsets and lengths are bytes from the start of the volume and fit in 63 bits.
///      volume_bytes may exceed the device (oddity image_is_short): reading there is then an error
///      of the device.
struct geometry {
    static constexpr std::uint32_t first_cluster = 2;
    static constexpr std::uint32_t dir_entry_bytes = 32;

    fat_type type = fat_type::fat12;
    std::uint32_t sector_bytes = 512;
    std::uint32_t sectors_per_cluster = 1;
    std::uint32_t cluster_bytes = 512;
    std::uint64_t volume_bytes = 0;
    std::uint32_t cluster_count = 0;  // clusters that both the FAT and the data area have

    std::uint64_t fat_offset = 0;  // start of the first copy
    std::uint64_t fat_bytes = 0;   // length of one copy
    std::uint32_t fat_count = 1;
    std::uint32_t active_fat = 0;  // the copy to read; the only one to write unless is_mirrored
    bool is_mirrored = true;       // all copies are written

    std::uint64_t root_offset = 0;   // FAT12, FAT16: the fixed root directory
    std::uint32_t root_entries = 0;  // FAT12, FAT16: number of its entries of 32 bytes
    std::uint32_t root_cluster = 0;  // FAT32: first cluster of the root; not checked
    std::uint64_t data_offset = 0;   // start of cluster 2

    std::optional<std::uint64_t> info_offset;    // FAT32: the FSInfo sector
    std::optional<std::uint64_t> backup_offset;  // FAT32: the copy of the boot sector

    std::uint8_t media = 0xf8;
    bool is_dirty = false;             // the boot sector's mark; FAT[1] has another
    bool has_extended_fields = false;  // serial, label and the dirty mark exist (not on
                                       // the oldest floppies)
    std::uint32_t serial = 0;
    // As in the boot sector, padded with spaces; the root may have another.
    std::array<char, 11> label{};
    format_anomaly odd = format_anomaly::none;

    [[nodiscard]] constexpr std::uint32_t last_cluster() const noexcept { return cluster_count + 1; }
    [[nodiscard]] constexpr bool is_cluster(std::uint32_t cluster) const noexcept {
        return cluster >= first_cluster and cluster - first_cluster < cluster_count;
    }
    /// Returns the offset of a cluster of the volume (is_cluster).
    [[nodiscard]] constexpr std::uint64_t cluster_offset(std::uint32_t cluster) const noexcept {
        ENSURE(is_cluster(cluster));
        return data_offset + std::uint64_t{cluster - first_cluster} * cluster_bytes;
    }
    /// Returns the offset of copy `index` of the FAT. `index` is less than fat_count.
    [[nodiscard]] constexpr std::uint64_t fat_copy_offset(std::uint32_t index) const noexcept {
        ENSURE(index < fat_count);
        return fat_offset + index * fat_bytes;
    }
    /// Returns the number of bytes of a FAT copy that hold the entries 0 to last_cluster; the rest
    /// is unused.
    [[nodiscard]] constexpr std::uint64_t fat_used_bytes() const noexcept {
        const byte_extent last = entry_extent(type, last_cluster());
        return last.offset + last.length;
    }
    /// Returns the meaning of a value of an entry of this volume.
    [[nodiscard]] constexpr table_entry classify(std::uint32_t value) const noexcept {
        return fat::classify(type, value, last_cluster());
    }
    /// Returns the offset of the boot sector's dirty byte: bit 0 dirty, bit 1 the device had
    /// errors.
    [[nodiscard]] constexpr std::uint64_t dirty_byte_offset() const noexcept {
        return type == fat_type::fat32 ? 0x41 : 0x25;
    }
};

}  // namespace sluice::fat

#pragma once

#include <expected>
#include <optional>
#include <string>

#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/codec/label.hpp"

// Making volumes. In two steps, so that what would be made can be shown, and refused, before anything is
// written: plan_format computes everything, format writes it.
//
// Policy, stricter than our reading:
//   1. The type is what the number of clusters says by Microsoft's rule, so every reader sees the same one;
//      at least 16 clusters away from the limits 4,085 and 65,525, where readers disagree by a few.
//   2. The data area begins at a multiple of the cluster size (or 4 KiB, if that is more), but on floppies,
//      so that clusters can be punched out of an image file, and be shared by reflink.
//   3. The same size and options give the same bytes: nothing is asked of a clock or a generator.
//   4. FAT32 has its FSInfo in sector 1 and copies of both in sectors 6 and 7.

namespace sluice::fat {

struct format_options {
    std::optional<fat_type> type = {};                // by size: below 4.1 MB FAT12, up to 512 MiB FAT16
    std::optional<std::uint32_t> cluster_bytes = {};  // by type and size, as Microsoft's tables have it
    std::uint32_t sector_bytes = 512;                 // 512, 1024, 2048 or 4096
    std::uint32_t fat_count = 2;                      // 1 or 2
    std::optional<std::uint32_t> root_entries = {};   // FAT12, FAT16: by size; rounded up to whole sectors
    std::optional<std::uint32_t> reserved_sectors = {};
    label_bytes label = no_label;
    std::uint32_t serial = 0;
    std::uint64_t hidden_bytes = 0;   // before the partition the volume is in
    std::uint16_t label_date = 0x21;  // of the label's entry, as directories keep it: 1980-01-01
    std::uint16_t label_time = 0;
};

/// Everything decided.
struct format_plan {
    boot_sector boot{};
    geometry shape;  // what decode_boot_sector says of `boot`; no oddity but one_table
    label_bytes label = no_label;
    std::uint16_t label_date = 0;
    std::uint16_t label_time = 0;
};

/// Decides. `device_bytes`: how long the image or partition is; what is over after the last sector stays
/// unused. Errors, as a sentence for people that names value, rule and remedy: sizes and options that cannot
/// be had together. Allocates: the sentence. Complexity: O(1).
[[nodiscard]] std::expected<format_plan, std::string> plan_format(std::uint64_t device_bytes,
                                                                  const format_options& options);

/// Writes the volume: zeros (as a hole, where that can be) from the start through the root directory, then
/// FATs, root and FSInfo, and last the boot sector, after a barrier, so that a volume half made is none.
/// Data clusters keep what they held. Errors: as device::write_at; the device then holds no volume.
/// Allocates: one sector. Blocks: for the device.
[[nodiscard]] result<void> format(device& image, const format_plan& plan);

}  // namespace sluice::fat

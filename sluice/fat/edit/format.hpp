#pragma once

#include <expected>
#include <optional>
#include <string>

#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/codec/label.hpp"

// Formatting in two steps: plan_format computes everything and writes nothing, so that a caller can
// show or reject the plan; format writes it.
//
// Policy, stricter than for reading:
//   1. The type follows from the number of clusters by Microsoft's rule, so every implementation
//      detects the same one. The number is at least 16 clusters away from the limits 4,085 and
//      65,525, where implementations differ by a few.
//   2. The data area begins at a multiple of the cluster size (or 4 KiB, if that is more), except
//      on floppies, so that clusters of an image file can be punched out and shared by reflink.
//   3. The same size and options give the same bytes: neither a clock nor a random generator is
//      used.
//   4. FAT32 has its FSInfo in sector 1 and copies of the boot sector and FSInfo in sectors 6 and
//      7.

namespace sluice::fat {

struct format_options {
    std::optional<fat_type> type = {};                // by size: below 4.1 MB
                                                      // FAT12, up to 512 MiB FAT16
    std::optional<std::uint32_t> cluster_bytes = {};  // by type and size, from Microsoft's tables
    std::uint32_t sector_bytes = 512;                 // 512, 1024, 2048 or 4096
    std::uint32_t fat_count = 2;                      // 1 or 2
    std::optional<std::uint32_t> root_entries = {};   // FAT12, FAT16: by size;
                                                      // rounded up to whole sectors
    std::optional<std::uint32_t> reserved_sectors = {};
    label_bytes label = no_label;
    std::uint32_t serial = 0;
    std::uint64_t hidden_bytes = 0;   // before the partition of the volume; the field
                                      // holds 2^32 - 1 sectors
    std::uint16_t label_date = 0x21;  // for the label's entry, in the on-disk form: 1980-01-01
    std::uint16_t label_time = 0;
};

/// A complete plan.
struct format_plan {
    boot_sector boot{};
    geometry shape;  // as decoded from `boot`; no oddity but one_table
    label_bytes label = no_label;
    std::uint16_t label_date = 0;
    std::uint16_t label_time = 0;
};

/// Computes a plan. `device_bytes` is the length of the image or partition; a remainder after the
/// last sector is not used. Errors: a sentence with value, rule and remedy if sizes or options
/// contradict each other. Allocates: the sentence. Complexity: O(1).
[[nodiscard]] std::expected<format_plan, std::string> plan_format(std::uint64_t device_bytes,
                                                                  const format_options& options);

/// Writes the volume: zeros (as a hole, where possible) from the start through the root directory,
/// then FATs, root and FSInfo, and last, after a barrier, the boot sector, so that an incomplete
/// volume is not recognised as one.
/// Data clusters keep their content. Errors: as device::write_at; the device then contains no
/// volume.
/// Allocates: one sector. Blocks: for the device.
[[nodiscard]] result<void> format(device& image, const format_plan& plan);

}  // namespace sluice::fat

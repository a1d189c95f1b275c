#pragma once

#include <expected>
#include <optional>
#include <string>

#include "sluice/fat/partition/partition_table.hpp"

// Partition tables of images: the MBR with its chain of logical partitions, the GPT with both its
// copies. Read only; nothing here writes a table.
//
// Invariants of the result:
//   1. Every partition is inside the image and is not empty. A partition that reaches past the end
//      of the image is truncated.
//   2. Numbers are unique, ascending and those of Linux: MBR 1 to 4, logical partitions from 5; GPT
//      by slot.
//   3. For any bytes, at most limits::partitions_max partitions and limits::gpt_array_bytes_max
//      bytes are read.
//
// Source: UEFI 2.10, chapter 5; the MBR as common partitioning tools write it.

namespace sluice::fat {

/// Reads the partition table of an image, if it has one. If both copies of a GPT are damaged, reads
/// the protective MBR instead. Errors: EIO; never ENOMEM, because the limits bound the allocations.
/// Allocates: the table. Blocks: as device::read_at. Complexity: linear in the partitions.
[[nodiscard]] result<partition_table> read_partitions(device& image);

/// The reason why no volume was chosen. `message` lists the partitions and how to choose one.
struct no_volume {
    std::string message;
    error cause;
};

/// Returns the location of the volume `number`: 0 is the whole image, other numbers are partitions.
/// Without a number, returns the whole image if it begins with a FAT boot sector, or else the only
/// partition that does. If there is none, returns the only partition, or the whole image, that has
/// a backup boot sector (find_backup), which repair can restore. Allocates: the table, and the
/// message. Blocks: as device::read_at.
[[nodiscard]] std::expected<byte_extent, no_volume> find_volume(device& image,
                                                                std::optional<std::uint32_t> number);

}  // namespace sluice::fat

#pragma once

#include <expected>
#include <optional>
#include <string>

#include "sluice/fat/partition/partition_table.hpp"

// Partition tables of images: the MBR with its chain of logical partitions, the GPT with both its copies.
// Read only; nothing here writes a table.
//
// Invariants of what is read:
//   1. Every partition lies inside the image, cut to it where the table says more, and is not empty.
//   2. Numbers are unique, ascending and those Linux uses: MBR 1 to 4, logical ones from 5; GPT by slot.
//   3. However the bytes look, at most limits::partitions_max partitions and limits::gpt_array_bytes_max
//      bytes are read.
//
// Source: UEFI 2.10, chapter 5; the MBR as everybody writes it.

namespace sluice::fat {

/// Reads the partition table of an image, if it has one. A damaged GPT whose backup is damaged as well reads
/// as the MBR beside it. Errors: EIO; ENOMEM is not one: what is allocated is bounded by the limits.
/// Allocates: the table. Blocks: as device::read_at. Complexity: linear in the partitions.
[[nodiscard]] result<partition_table> read_partitions(device& image);

/// Why no volume could be chosen. `message` names what there is and how to choose.
struct no_volume {
    std::string message;
    error cause;
};

/// Where the volume `number` stands: 0 the whole image, otherwise that partition. Without a number: the whole
/// image if it begins with a FAT boot sector, else the only partition that does; else the only partition, or
/// the whole image, that has the backup of one (find_backup), which repair can restore. Allocates: the table,
/// and the message. Blocks: as device::read_at.
[[nodiscard]] std::expected<byte_extent, no_volume> find_volume(device& image,
                                                                std::optional<std::uint32_t> number);

}  // namespace sluice::fat

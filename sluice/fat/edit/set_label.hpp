#pragma once

#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/codec/label.hpp"

namespace sluice::fat {

/// Names a volume that is not mounted: in the root directory and in the boot sector with its backup.
/// no_label removes the name. `date` and `time` are those of the root's entry, as directories keep them.
/// Errors: of the device; ENOSPC if the root has no room for the entry, and nothing was changed then.
/// Allocates: the FAT. Blocks: for the device.
[[nodiscard]] result<void> set_label(device& image, const geometry& shape, const label_bytes& label,
                                     std::uint16_t date, std::uint16_t time);

/// The label: the root's, or if there is none the boot sector's; no_label if neither has one.
/// Errors: of the device. Allocates: the FAT. Blocks: for the device.
[[nodiscard]] result<label_bytes> read_label(device& image, const geometry& shape);

}  // namespace sluice::fat

#pragma once

#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/codec/label.hpp"

namespace sluice::fat {

/// Sets the label of a volume that is not mounted: in the root directory, and in the boot sector
/// with its backup.
/// no_label removes the label. `date` and `time` are those of the root's entry, in the on-disk
/// form.
/// Errors: those of the device; ENOSPC, without any change, if the root has no room for the entry.
/// Allocates: the FAT. Blocks: for the device.
[[nodiscard]] result<void> set_label(device& image, const geometry& shape, const label_bytes& label,
                                     std::uint16_t date, std::uint16_t time);

/// Returns the label of the root or, if there is none, of the boot sector; no_label if neither has
/// one.
/// Errors: those of the device. Allocates: the FAT. Blocks: for the device.
[[nodiscard]] result<label_bytes> read_label(device& image, const geometry& shape);

}  // namespace sluice::fat

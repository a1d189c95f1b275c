#pragma once

#include "sluice/fat/check/check_options.hpp"
#include "sluice/fat/check/check_report.hpp"
#include "sluice/fat/device.hpp"

// Whether a volume is sound. Reads boot sector, FAT and directories by the codecs alone, not through the
// volume, so that a mistake of the volume's shows here.

namespace sluice::fat {

/// Checks the whole volume and changes nothing. If the boot sector and its backup describe the volume
/// differently, the one that the volume agrees with is used and reported. Ends on any bytes, in
/// time and memory proportional to the FAT and the directories: each cluster is followed once, each directory
/// read once, by invariant 2 of chain_map; a directory is read up to 65,536 slots. Errors: EIO of the device
/// within the FAT. Damage is reported, not an error. Nothing beyond the end of a short image is read.
/// Allocates: the FAT, 4 bytes per cluster, the names of the tree. Blocks: for the device.
[[nodiscard]] result<check_report> check(device& image, const check_options& options = {});

}  // namespace sluice::fat

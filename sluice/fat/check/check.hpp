#pragma once

#include "sluice/fat/check/check_options.hpp"
#include "sluice/fat/check/check_report.hpp"
#include "sluice/fat/device.hpp"

// The check of a volume. It reads boot sector, FAT and directories with the codecs alone, not
// through the mounted file system, so that it also finds errors of the file system.

namespace sluice::fat {

/// Checks the whole volume and changes nothing. If the boot sector and its backup describe the
/// volume differently, it uses and reports the one that the volume agrees with. It ends for any
/// bytes, in time and memory proportional to the FAT and the directories: each cluster is followed
/// once and each directory is read once, by invariant 2 of chain_map; a directory is read up to
/// 65,536 slots. Errors: EIO of the device within the FAT. Damage is reported, not an error.
/// Nothing past the end of a short image is read.
/// Allocates: the FAT, 4 bytes per cluster, the names of the tree. Blocks: for the device.
[[nodiscard]] result<check_report> check(device& image, const check_options& options = {});

}  // namespace sluice::fat

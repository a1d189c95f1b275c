#pragma once

#include "sluice/fat/check_report.hpp"
#include "sluice/fat/code_page.hpp"
#include "sluice/fat/device.hpp"
#include "sluice/fat/limits.hpp"

// Whether a volume is sound. Reads boot sector, FAT and directories by the codecs alone, not through the
// volume, so that a mistake of the volume's shows here.

namespace sluice::fat {

/// Which boot sector to believe.
enum class boot_source : std::uint8_t {
    evidence,  ///< the one that the volume agrees with
    first,     ///< the one in the first sector, without looking for evidence; repair makes the backup agree
    backup,    ///< its backup
};

struct check_options {
    code_page page = code_page::cp437;                // of short names, in reports
    std::optional<std::uint32_t> table_copy = {};     // the FAT to believe; otherwise the active one
    std::size_t problems_max = limits::problems_max;  // listed
    boot_source boot = boot_source::evidence;
};

/// Checks the whole volume and changes nothing. If the boot sector and its backup describe the volume
/// differently, the one that the volume agrees with is used and reported. Ends on any bytes, in
/// time and memory proportional to the FAT and the directories: each cluster is followed once, each directory
/// read once, by invariant 2 of chain_map; a directory is read up to 65,536 slots. Errors: EIO of the device
/// within the FAT. Damage is reported, not an error. Nothing beyond the end of a short image is read.
/// Allocates: the FAT, 4 bytes per cluster, the names of the tree. Blocks: for the device.
[[nodiscard]] result<check_report> check(device& image, const check_options& options = {});

/// Checks the volume as if its boot sector had this geometry. Errors, Allocates, Blocks: as check.
[[nodiscard]] result<check_report> check_as(device& image, const geometry& shape,
                                            const check_options& options = {});

}  // namespace sluice::fat

#pragma once

#include <expected>
#include <string>

#include "sluice/fat/check/check.hpp"
#include "sluice/fat/codec/boot_sector.hpp"

// The decision whether the boot sector of a volume can be trusted. A boot sector with one wrong
// field is still legal. A volume that is read with it yields garbage; one that is written with it
// is destroyed.

namespace sluice::fat {

enum class boot_trust : std::uint8_t {
    consistent,  ///< the backup places everything alike, there is none, or the volume
                 ///< agrees with the first
    doubtful,    ///< the backup places things differently, and the volume does not decide
    wrong,       ///< the volume agrees with the backup
};

/// The result of the comparison of a boot sector with its backup. A plain value.
struct boot_verdict {
    geometry shape;  // from the boot sector
    boot_trust trust = boot_trust::consistent;
    std::string differences{};  // unless consistent: the fields, with the values of both, a clause
};

/// Reads the boot sector and compares it with its backup. If they agree, it reads only these two
/// sectors. FAT12 and FAT16 have no backup; for them it reads four more sectors, where FAT32 has
/// it, because a wrong field may be the one that distinguishes the types. If the two place things
/// differently, it checks the volume by both, as check does. `options.boot` has no effect. Errors:
/// the reason why there is no FAT volume, with the location of a backup if there is one. Allocates,
/// Blocks: as check, if they differ.
[[nodiscard]] std::expected<boot_verdict, std::string> assess_boot_sector(device& image,
                                                                          check_options options = {});

/// Writes the boot sector over its backup if that places things differently. Returns whether it
/// did. Errors: those of the device. Allocates: as find_backup. Blocks: for the device.
[[nodiscard]] result<bool> copy_to_backup(device& image);

}  // namespace sluice::fat

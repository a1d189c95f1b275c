#include <cerrno>

#include "sluice/fat/codec/boot_sector.hpp"

namespace sluice::fat {
namespace {

std::string text(std::uint64_t number) {
    return std::to_string(number);
}

constexpr const char* not_fat = "not a FAT volume; check the image and the number of the partition";

}  // namespace

std::string boot_problem::message() const {
    switch (fault) {
        case boot_fault::unreadable:
            return value < sizeof(boot_sector)
                       ? "the image has " + text(value) +
                             " bytes, but a boot sector has 512: the image is truncated or empty"
                       : "read the boot sector: " + std::generic_category().message(static_cast<int>(bound));
        case boot_fault::is_exfat:
            return "the volume is exFAT, which is not supported; use FAT12, FAT16, or FAT32";
        case boot_fault::is_ntfs:
            return "the volume is NTFS: " + std::string(not_fat);
        case boot_fault::is_empty:
            return "the boot sector is all zeros: the volume is not formatted; run 'sluice fat mkfs' to "
                   "format it";
        case boot_fault::sector_size:
            return "bytes per sector is " + text(value) + ", must be 512, 1024, 2048, or 4096: " + not_fat;
        case boot_fault::cluster_size:
            return "sectors per cluster is " + text(value) +
                   ", must be a power of two from 1 to 128: not a FAT volume, or its boot sector is damaged; "
                   "run 'sluice fat repair' to use its backup";
        case boot_fault::no_reserved_sectors:
            return "reserved sectors is 0, must be at least 1, the boot sector itself: " +
                   std::string(not_fat);
        case boot_fault::no_fats:
            return "number of FATs is 0, must be at least 1: " + std::string(not_fat);
        case boot_fault::media_byte:
            return "media byte is " + text(value) + ", must be 240 or 248 to 255: " + not_fat;
        case boot_fault::no_fat_sectors:
            return "sectors per FAT is 0, must be at least 1: " + std::string(not_fat);
        case boot_fault::too_many_fat_sectors:
            return "the FATs take " + text(value) + " sectors, must be less than the volume's " +
                   text(bound) + ": the boot sector is damaged";
        case boot_fault::root_entries:
            return "root entries is " + text(value) + ", must be a multiple of the " + text(bound) +
                   " that fill a sector: the boot sector is damaged";
        case boot_fault::no_sectors:
            return "total sectors is 0, must be the size of the volume: the boot sector is damaged";
        case boot_fault::no_data:
            return "the data area would begin at sector " + text(value) + ", must be within the volume's " +
                   text(bound) + " sectors: the boot sector is damaged";
        case boot_fault::too_many_clusters:
            return "the volume has " + text(value) + " clusters, must be at most " + text(bound) +
                   " for its FAT type: the boot sector is damaged";
        case boot_fault::active_fat:
            return "the active FAT is number " + text(value) + ", must be one of the " + text(bound) +
                   " copies, counted from 0: the boot sector is damaged";
    }
    return "not a FAT volume";
}

error boot_problem::as_error() const noexcept {
    if (fault == boot_fault::unreadable) return {EIO, "read boot sector"};
    return {EINVAL, "boot sector of a FAT volume"};
}

}  // namespace sluice::fat

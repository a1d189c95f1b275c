#pragma once

#include "sluice/fat/codec/boot_sector.hpp"

namespace sluice::fat {

/// Boot sectors for tests to damage: a 1.44 MB floppy, and FAT32 with 70,000 clusters of 512 bytes.
inline boot_sector common_boot_sector() {
    boot_sector sector{};
    sector.jump = {std::byte{0xeb}, std::byte{0x3c}, std::byte{0x90}};
    sector.oem_name = {'T', 'E', 'S', 'T', ' ', ' ', ' ', ' '};
    sector.bytes_per_sector = le16(512);
    sector.sectors_per_cluster = le8(1);
    sector.reserved_sectors = le16(1);
    sector.fat_count = le8(2);
    sector.media = le8(0xf0);
    sector.signature = le16(0xaa55);
    return sector;
}

inline boot_sector floppy_boot_sector() {
    boot_sector sector = common_boot_sector();
    sector.root_entries = le16(224);
    sector.total_sectors_16 = le16(2880);
    sector.fat_sectors_16 = le16(9);
    extended_fields extended{};
    extended.signature = le8(0x29);
    extended.serial = le32(0x1234'5678);
    extended.label = {'F', 'L', 'O', 'P', 'P', 'Y', ' ', ' ', ' ', ' ', ' '};
    set_extended_fields(sector, fat_type::fat12, extended);
    return sector;
}

constexpr std::uint64_t floppy_bytes = 2880 * 512;

inline boot_sector fat32_boot_sector() {
    boot_sector sector = common_boot_sector();
    sector.reserved_sectors = le16(32);
    sector.media = le8(0xf8);
    sector.total_sectors_32 = le32(32 + 2 * 550 + 70'000);
    fat32_fields fields{};
    fields.fat_sectors_32 = le32(550);
    fields.root_cluster = le32(2);
    fields.info_sector = le16(1);
    fields.backup_sector = le16(6);
    fields.extended.signature = le8(0x29);
    set_fat32_fields(sector, fields);
    return sector;
}

constexpr std::uint64_t fat32_bytes = (32 + 2 * 550 + 70'000) * 512ULL;

}  // namespace sluice::fat

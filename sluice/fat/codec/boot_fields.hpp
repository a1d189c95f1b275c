#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/fat/codec/boot_sector.hpp"

namespace sluice::fat {

/// The purpose of a field of the boot sector, for repair.
enum class field_role : std::uint8_t {
    layout,   ///< the layout: if it is wrong, the volume is misread
    mark,     ///< has few legal values
    machine,  ///< describes the drive: nothing on the volume depends on it
    text,     ///< names and code
};

/// A field of the boot sector of FAT32.
struct boot_field {
    const char* key;   // in JSON
    const char* name;  // in messages
    std::uint16_t offset;
    std::uint16_t bytes;
    field_role role;
};

/// All fields but the byte with the dirty mark, in ascending order.
[[nodiscard]] std::span<const boot_field> boot_fields() noexcept;

/// Returns the field with this key, which must exist.
[[nodiscard]] const boot_field& boot_field_of(const char* key) noexcept;

/// Returns the value of a field, or of its first 8 bytes if it is longer.
[[nodiscard]] std::uint64_t value_of(const boot_sector& sector, const boot_field& field) noexcept;

/// Returns whether all bytes of a field are the same in both sectors.
[[nodiscard]] bool is_same(const boot_sector& a, const boot_sector& b, const boot_field& field) noexcept;

/// Copies a field.
void copy_field(boot_sector& to, const boot_sector& from, const boot_field& field) noexcept;

/// One field that repair would change.
struct boot_change {
    const boot_field* field = nullptr;
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    std::string why;
};

/// The changes of a boot sector that repair would make. A plain value.
struct boot_restoration {
    std::uint64_t backup_offset = 0;  // bytes from the start of the volume
    bool is_whole = false;            // the whole sector is a copy of the
                                      // backup, not only `changes`
    std::vector<boot_change> changes;
    std::vector<std::string> evidence;  // a clause each
    boot_sector sector{};
};

}  // namespace sluice::fat

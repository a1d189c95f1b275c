#pragma once

#include <cstdint>

#include "sluice/smb/wire/bit_flags.hpp"

namespace sluice::smb::wire {

/// Rights to an object: requested by CREATE, granted to an open, listed in an access control entry.
/// [MS-SMB2] 2.2.13.1, [MS-DTYP] 2.4.3. A bit with another meaning for a directory has two names.
enum class access_mask : std::uint32_t {
    none = 0,
    read_data = 0x00000001,
    list_directory = 0x00000001,
    write_data = 0x00000002,
    add_file = 0x00000002,
    append_data = 0x00000004,
    add_subdirectory = 0x00000004,
    read_ea = 0x00000008,
    write_ea = 0x00000010,
    execute = 0x00000020,
    traverse = 0x00000020,
    delete_child = 0x00000040,
    read_attributes = 0x00000080,
    write_attributes = 0x00000100,
    delete_object = 0x00010000,
    read_control = 0x00020000,
    write_dac = 0x00040000,
    write_owner = 0x00080000,
    synchronize = 0x00100000,
    access_system_security = 0x01000000,
    maximum_allowed = 0x02000000,
    generic_all = 0x10000000,
    generic_execute = 0x20000000,
    generic_write = 0x40000000,
    generic_read = 0x80000000,
};
template <>
inline constexpr bool is_bit_flags<access_mask> = true;

/// The meaning of the four generic rights for files and directories.
inline constexpr access_mask file_generic_read = access_mask::read_control | access_mask::synchronize |
                                                 access_mask::read_data | access_mask::read_ea |
                                                 access_mask::read_attributes;
inline constexpr access_mask file_generic_write = access_mask::read_control | access_mask::synchronize |
                                                  access_mask::write_data | access_mask::append_data |
                                                  access_mask::write_ea | access_mask::write_attributes;
inline constexpr access_mask file_generic_execute = access_mask::read_control | access_mask::synchronize |
                                                    access_mask::read_attributes | access_mask::execute;
inline constexpr access_mask file_all_access = access_mask(0x001f01ff);

/// Returns `mask` with each generic right replaced by the rights it comprises. `maximum_allowed` is
/// left in place, because its meaning depends on the object.
[[nodiscard]] constexpr access_mask mapped_for_files(access_mask mask) noexcept {
    access_mask mapped = without(mask, access_mask::generic_read | access_mask::generic_write |
                                           access_mask::generic_execute | access_mask::generic_all);
    if (has(mask, access_mask::generic_read)) mapped |= file_generic_read;
    if (has(mask, access_mask::generic_write)) mapped |= file_generic_write;
    if (has(mask, access_mask::generic_execute)) mapped |= file_generic_execute;
    if (has(mask, access_mask::generic_all)) mapped |= file_all_access;
    return mapped;
}

}  // namespace sluice::smb::wire

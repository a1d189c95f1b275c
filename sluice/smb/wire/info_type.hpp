#pragma once

#include <cstdint>

#include "sluice/smb/wire/bit_flags.hpp"

namespace sluice::smb::wire {

/// The object of QUERY_INFO and SET_INFO. It determines the meaning of the information class
/// ([MS-SMB2] 2.2.37).
enum class info_type : std::uint8_t { file = 1, file_system = 2, security = 3, quota = 4 };

/// The requested or modified parts of a security descriptor ([MS-DTYP] 2.4.7).
enum class security_information : std::uint32_t {
    none = 0,
    owner = 0x00001,
    group = 0x00002,
    dacl = 0x00004,
    sacl = 0x00008,
    label = 0x00010,
    attribute = 0x00020,
    scope = 0x00040,
    backup = 0x10000,
};
template <>
inline constexpr bool is_bit_flags<security_information> = true;

/// Returns the parts that a request names, with BACKUP_SECURITY_INFORMATION as the parts that it
/// stands for.
[[nodiscard]] constexpr security_information stored_parts(security_information named) noexcept {
    using enum security_information;
    return has(named, backup) ? named | owner | group | dacl | sacl : named;
}

}  // namespace sluice::smb::wire

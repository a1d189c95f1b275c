#pragma once

#include <cstdint>
#include <optional>

#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/guid.hpp"

namespace sluice::smb::wire {

/// The kinds of caching that a lease grants, [MS-SMB2] 2.2.13.2.8.
enum class lease_state : std::uint32_t { none = 0, read = 1, handle = 2, write = 4 };
template <>
inline constexpr bool is_bit_flags<lease_state> = true;

enum class lease_flags : std::uint32_t {
    none = 0,
    break_in_progress = 0x2,
    parent_key_set = 0x4,  ///< version 2
};
template <>
inline constexpr bool is_bit_flags<lease_flags> = true;

/// The fields that version 2 of a lease adds ([MS-SMB2] 2.2.13.2.10).
struct lease_v2_part {
    lease_key parent_key;     ///< the directory's lease, if `parent_key_set`
    std::uint16_t epoch = 0;  ///< counts changes of state, so that a client can order them

    [[nodiscard]] friend bool operator==(const lease_v2_part&, const lease_v2_part&) noexcept = default;
};

/// A lease in a request or a response.
struct lease {
    lease_key key;
    lease_state state = lease_state::none;
    lease_flags flags = lease_flags::none;
    std::optional<lease_v2_part> v2{};  ///< absent in version 1

    [[nodiscard]] friend bool operator==(const lease&, const lease&) noexcept = default;
};

}  // namespace sluice::smb::wire

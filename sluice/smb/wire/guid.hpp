#pragma once

#include <array>
#include <cstddef>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::wire {

/// A GUID in its wire format ([MS-DTYP] 2.3.4.2). It is opaque to this code.
struct guid {
    std::array<std::byte, 16> bytes{};

    [[nodiscard]] friend constexpr bool operator==(const guid&, const guid&) noexcept = default;
    [[nodiscard]] friend constexpr auto operator<=>(const guid&, const guid&) noexcept = default;
};
static_assert(sizeof(guid) == 16 and wire_type<guid>);

/// The client's name for the cache entry that a lease protects. Opens with the same key share the
/// lease.
struct lease_key {
    std::array<std::byte, 16> bytes{};

    [[nodiscard]] friend constexpr bool operator==(const lease_key&, const lease_key&) noexcept = default;
    [[nodiscard]] friend constexpr auto operator<=>(const lease_key&, const lease_key&) noexcept = default;
};
static_assert(sizeof(lease_key) == 16 and wire_type<lease_key>);

}  // namespace sluice::smb::wire

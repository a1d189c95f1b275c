#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {

/// A FILETIME, [MS-DTYP] 2.3.3: steps of 100 ns since the first of January 1601, UTC. Zero means "none" or
/// "leave as it is", all ones and all ones but the last bit have meanings in SET_INFO ([MS-FSCC] 2.4.7), so
/// none of the three is ever made of a time.
struct filetime {
    std::uint64_t ticks = 0;

    constexpr filetime() noexcept = default;
    constexpr explicit filetime(std::uint64_t ticks_since_1601) noexcept : ticks(ticks_since_1601) {}
    constexpr explicit filetime(le64 wire) noexcept : ticks(wire.value()) {}
    [[nodiscard]] constexpr le64 wire() const noexcept { return le64(ticks); }

    [[nodiscard]] friend constexpr auto operator<=>(const filetime&, const filetime&) noexcept = default;
};

/// From 1601 to 1970.
inline constexpr std::uint64_t filetime_ticks_at_unix_epoch = 116'444'736'000'000'000;

/// Rounds down to 100 ns; a time before 1601 becomes the first tick, the smallest that does not mean "none".
[[nodiscard]] filetime filetime_of(std::chrono::system_clock::time_point time) noexcept;

/// A time the system clock cannot hold becomes its nearest end.
[[nodiscard]] std::chrono::system_clock::time_point time_point_of(filetime time) noexcept;

/// The same for a file system's own count, which reaches further: seconds since 1970, and nanoseconds, less
/// than a thousand million, within the second.
struct unix_time {
    std::int64_t seconds = 0;
    std::uint32_t nanoseconds = 0;

    [[nodiscard]] friend constexpr bool operator==(const unix_time&, const unix_time&) noexcept = default;
};
[[nodiscard]] filetime filetime_of(unix_time time) noexcept;
[[nodiscard]] unix_time unix_time_of(filetime time) noexcept;

}  // namespace sluice::smb::wire

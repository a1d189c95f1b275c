#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {

/// A FILETIME, [MS-DTYP] 2.3.3: steps of 100 ns since 1 January 1601, UTC. Zero means "none" or
/// "leave unchanged"; -1 and -2 have meanings in SET_INFO ([MS-FSCC] 2.4.7). Conversions from a
/// time never return any of the three.
struct filetime {
    std::uint64_t ticks = 0;

    constexpr filetime() noexcept = default;
    constexpr explicit filetime(std::uint64_t ticks_since_1601) noexcept : ticks(ticks_since_1601) {}
    constexpr explicit filetime(le64 wire) noexcept : ticks(wire.value()) {}
    [[nodiscard]] constexpr le64 wire() const noexcept { return le64(ticks); }

    [[nodiscard]] friend constexpr auto operator<=>(const filetime&, const filetime&) noexcept = default;
};

/// The distance from 1601 to 1970.
inline constexpr std::uint64_t filetime_ticks_at_unix_epoch = 116'444'736'000'000'000;

/// Rounds down to 100 ns. A time before 1601 becomes the first tick, the smallest that does not
/// mean "none".
[[nodiscard]] filetime filetime_of(std::chrono::system_clock::time_point time) noexcept;

/// Converts to the system clock. A time outside its range becomes its nearest limit.
[[nodiscard]] std::chrono::system_clock::time_point time_point_of(filetime time) noexcept;

/// A time since 1970 in the steps of a FILETIME, with its range.
using tick_time = std::chrono::sys_time<std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>>;
[[nodiscard]] filetime filetime_of(tick_time time) noexcept;
[[nodiscard]] tick_time tick_time_of(filetime time) noexcept;

/// The time format of a file system, which has a larger range: seconds since 1970, and nanoseconds
/// within the second (less than 10^9).
struct unix_time {
    std::int64_t seconds = 0;
    std::uint32_t nanoseconds = 0;

    [[nodiscard]] friend constexpr bool operator==(const unix_time&, const unix_time&) noexcept = default;
};
[[nodiscard]] filetime filetime_of(unix_time time) noexcept;
[[nodiscard]] unix_time unix_time_of(filetime time) noexcept;

}  // namespace sluice::smb::wire

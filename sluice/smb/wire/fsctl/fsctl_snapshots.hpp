#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sluice/base/byte_cursor.hpp"

namespace sluice::smb::wire {

/// The name of a previous version by its time, as a component of a path: "@GMT-2026.11.28-07.00.00"
/// ([MS-SMB2] 2.2.32.2).
inline constexpr std::size_t gmt_token_units = 24;

/// Returns the token of a time from 1601 to 9999 (ENSURE). Allocates: the result.
[[nodiscard]] std::string gmt_token_of(std::chrono::sys_seconds when);
/// Returns the time of a token; std::nullopt for other text, also for an invalid date. Allocates:
/// nothing.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_gmt_token(std::string_view text) noexcept;

/// SRV_SNAPSHOT_ARRAY, [MS-SMB2] 2.2.32.2: the least output that a request must have room for.
inline constexpr std::size_t snapshot_array_bytes_min = 16;
/// Returns the length of the reply with that many times.
[[nodiscard]] std::size_t snapshot_array_bytes(std::size_t times) noexcept;
/// Encodes the times, in this order. If the reply with all of them is longer than `bytes_max`, it
/// has their number and the room that they need, but none of them ([MS-SMB2] 3.3.5.15.1).
void encode_snapshot_array(byte_writer& writer, std::span<const std::chrono::sys_seconds> times,
                           std::size_t bytes_max);

}  // namespace sluice::smb::wire

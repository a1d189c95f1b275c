#pragma once

#include "sluice/io/path/status_fields.hpp"

// Conversions between the kernel's file status and ours. Not for users.
namespace sluice::io {

/// Returns the type in the upper bits of an `st_mode`.
[[nodiscard]] file_type type_of_mode(unsigned mode) noexcept;

/// Clamps times that 64 bits of nanoseconds cannot represent (ext4 reaches 2446, XFS 2486).
[[nodiscard]] file_status::time_point to_time_point(std::int64_t seconds, std::uint32_t nanoseconds) noexcept;

/// Calls statx once. Returns 0 or the errno value, because the callers report different errors.
[[nodiscard]] int read_status(int directory, const char* name, int flags, stat_fields wanted,
                              file_status& into) noexcept;

}  // namespace sluice::io

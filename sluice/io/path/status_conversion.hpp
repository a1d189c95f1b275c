#pragma once

#include "sluice/io/path/status_fields.hpp"

// Between the kernel's idea of a file's status and ours. Not for users.
namespace sluice::io {

/// The type in the upper bits of an `st_mode`.
[[nodiscard]] file_type type_of_mode(unsigned mode) noexcept;

/// Clamps times that 64 bits of nanoseconds cannot hold (ext4 goes to 2446, XFS to 2486).
[[nodiscard]] file_status::time_point to_time_point(std::int64_t seconds, std::uint32_t nanoseconds) noexcept;

/// One statx. Returns 0 or the errno value: the callers differ in what the error is about.
[[nodiscard]] int read_status(int directory, const char* name, int flags, stat_fields wanted,
                              file_status& into) noexcept;

}  // namespace sluice::io

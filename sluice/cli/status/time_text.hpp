#pragma once

#include <ctime>
#include <string>

namespace sluice::cli {

/// Formats a time with a pattern of strftime(3), in the local time zone; "?" if its year is out of
/// range. It avoids <fmt/chrono.h>, which takes seconds to compile.
[[nodiscard]] std::string local_time_text(const char* pattern, std::time_t when);
/// Formats a time in UTC.
[[nodiscard]] std::string utc_text(const char* pattern, std::time_t when);

/// The pattern of ISO 8601, with seconds and without a time zone.
inline constexpr const char* iso_seconds = "%Y-%m-%dT%H:%M:%S";

}  // namespace sluice::cli

#pragma once

#include <ctime>
#include <string>

namespace sluice::cli {

/// A time as a pattern of strftime(3) tells it, on the clock of this machine; "?" if its year does not fit.
/// Short of <fmt/chrono.h>, which a source compiles seconds longer for.
[[nodiscard]] std::string local_time_text(const char* pattern, std::time_t when);
/// The same in UTC.
[[nodiscard]] std::string utc_text(const char* pattern, std::time_t when);

/// A pattern for both, as ISO 8601 has it, to the second and without a zone.
inline constexpr const char* iso_seconds = "%Y-%m-%dT%H:%M:%S";

}  // namespace sluice::cli

#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/fat/codec/timestamp.hpp"

// The time that commands write to volumes. With the environment variable SOURCE_DATE_EPOCH, it is
// the same in every run, and in UTC, so that an image does not depend on the time and place of its
// creation.

namespace sluice::cli {

/// The latest time of FAT, the end of 2107, in seconds since 1970.
inline constexpr std::int64_t source_date_max = 4'354'819'199;

/// Returns the value of SOURCE_DATE_EPOCH, `text`: seconds since 1970, up to
/// the latest time of FAT.
/// Errors: a sentence that names the value and the rule. Allocates: the sentence.
[[nodiscard]] std::expected<fat::time_point, std::string> parse_source_date(const std::string& text);

/// Returns SOURCE_DATE_EPOCH, if it is set and not empty. Leaves with the reason if it is invalid.
[[nodiscard]] std::optional<fat::time_point> source_date();

/// A time to write, and the zone in which volumes store it.
struct build_moment {
    fat::time_point time;
    fat::time_zone zone;
    bool is_fixed = false;  // the same in every run
};

/// Returns SOURCE_DATE_EPOCH in UTC, or the present time in the zone of the host.
/// Leaves as source_date().
[[nodiscard]] build_moment build_now();

/// Returns build_now().time. Leaves as source_date().
[[nodiscard]] fat::time_point build_time();

/// The clock of a mounted volume: a fixed date, or the date of the machine.
class build_clock final : public clock_source {
public:
    explicit build_clock(std::optional<fat::time_point> fixed) noexcept : fixed_(fixed) {}
    [[nodiscard]] steady_time steady_now() const noexcept override { return machine_.steady_now(); }
    [[nodiscard]] utc_time utc_now() const noexcept override { return fixed_ ? *fixed_ : machine_.utc_now(); }

private:
    system_clock_source machine_;
    std::optional<fat::time_point> fixed_;
};

}  // namespace sluice::cli

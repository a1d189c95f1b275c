#include "sluice/cli/fat/build_time.hpp"

#include <charconv>
#include <cstdlib>

#include "sluice/cli/fat/failure.hpp"

namespace sluice::cli {

std::expected<fat::time_point, std::string> parse_source_date(const std::string& text) {
    std::int64_t seconds = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, seconds);
    if (parsed.ec != std::errc{} or parsed.ptr != end or seconds < 0 or seconds > source_date_max)
        return std::unexpected("invalid value '" + text + "' for SOURCE_DATE_EPOCH: use 0 to " +
                               std::to_string(source_date_max) + " seconds since 1970");
    return fat::time_point(std::chrono::seconds(seconds));
}

std::optional<fat::time_point> source_date() {
    const char* const text = std::getenv("SOURCE_DATE_EPOCH");
    if (text == nullptr or *text == '\0') return std::nullopt;
    const auto date = parse_source_date(text);
    if (not date) fail(date.error());
    return *date;
}

build_moment build_now() {
    if (const auto fixed = source_date())
        return {.time = *fixed, .zone = fat::time_zone::utc(), .is_fixed = true};
    return {.time = std::chrono::system_clock::now(), .zone = fat::time_zone::host()};
}

fat::time_point build_time() {
    return build_now().time;
}

}  // namespace sluice::cli

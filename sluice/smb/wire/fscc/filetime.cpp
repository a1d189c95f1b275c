#include "sluice/smb/wire/fscc/filetime.hpp"

#include <algorithm>
#include <limits>

namespace sluice::smb::wire {
namespace {

using ticks = tick_time::duration;
using std::chrono::system_clock;

constexpr std::int64_t ticks_per_second = 10'000'000;
constexpr std::int64_t epoch_ticks = filetime_ticks_at_unix_epoch;
// Windows treats values above 63 bits as negative.
constexpr std::int64_t ticks_max = std::numeric_limits<std::int64_t>::max();

}  // namespace

filetime filetime_of(system_clock::time_point time) noexcept {
    return filetime_of(std::chrono::floor<ticks>(time));
}

filetime filetime_of(tick_time time) noexcept {
    const std::int64_t since_1970 = time.time_since_epoch().count();
    if (since_1970 <= -epoch_ticks) return filetime(std::uint64_t{1});
    return filetime(static_cast<std::uint64_t>(std::min(since_1970, ticks_max - epoch_ticks) + epoch_ticks));
}

tick_time tick_time_of(filetime time) noexcept {
    const auto since_1601 = static_cast<std::int64_t>(std::min<std::uint64_t>(time.ticks, ticks_max));
    return tick_time(ticks(since_1601 - epoch_ticks));
}

system_clock::time_point time_point_of(filetime time) noexcept {
    constexpr std::int64_t first = std::chrono::ceil<ticks>(system_clock::duration::min()).count();
    constexpr std::int64_t last = std::chrono::floor<ticks>(system_clock::duration::max()).count();
    const auto since_1601 = static_cast<std::int64_t>(std::min<std::uint64_t>(time.ticks, ticks_max));
    const ticks since_1970(std::clamp(since_1601 - epoch_ticks, first, last));
    return system_clock::time_point(std::chrono::duration_cast<system_clock::duration>(since_1970));
}

filetime filetime_of(unix_time time) noexcept {
    constexpr std::int64_t first = -epoch_ticks / ticks_per_second;
    constexpr std::int64_t last = (ticks_max - epoch_ticks) / ticks_per_second - 1;
    const std::int64_t seconds = std::clamp(time.seconds, first, last);
    const std::int64_t within = seconds == time.seconds ? time.nanoseconds / 100 : 0;
    const std::int64_t since_1601 = seconds * ticks_per_second + within + epoch_ticks;
    return filetime(static_cast<std::uint64_t>(std::max<std::int64_t>(since_1601, 1)));
}

unix_time unix_time_of(filetime time) noexcept {
    const auto since_1601 = static_cast<std::int64_t>(std::min<std::uint64_t>(time.ticks, ticks_max));
    const std::int64_t since_1970 = since_1601 - epoch_ticks;
    std::int64_t seconds = since_1970 / ticks_per_second;
    if (since_1970 % ticks_per_second < 0) --seconds;
    const std::int64_t within = since_1970 - seconds * ticks_per_second;
    return {.seconds = seconds, .nanoseconds = static_cast<std::uint32_t>(within * 100)};
}

}  // namespace sluice::smb::wire

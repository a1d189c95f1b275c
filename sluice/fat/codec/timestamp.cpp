#include "sluice/fat/codec/timestamp.hpp"

#include <algorithm>
#include <ctime>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

using namespace std::chrono;

constexpr local_seconds earliest = local_days(year(1980) / 1 / 1);
constexpr local_seconds latest = local_days(year(2107) / 12 / 31) + hours(23) + minutes(59) + seconds(59);

constexpr auto first_day = floor<days>(earliest);
constexpr auto day_count = static_cast<std::size_t>((floor<days>(latest) - first_day).count() + 1);
// Marks of a day; any other value is an offset in seconds plus the bias.
constexpr std::int32_t unknown_day = 0;
constexpr std::int32_t day_of_change = 1;
constexpr std::int32_t offset_bias = 1'000'000;

local_seconds local_of(const std::tm& fields) noexcept {
    const year_month_day date(year(fields.tm_year + 1900), month(static_cast<unsigned>(fields.tm_mon + 1)),
                              day(static_cast<unsigned>(fields.tm_mday)));
    return local_days(date) + hours(fields.tm_hour) + minutes(fields.tm_min) + seconds(fields.tm_sec);
}

}  // namespace

local_seconds time_zone::to_local(sys_seconds when) const noexcept {
    const local_seconds as_utc(when.time_since_epoch());
    if (not is_host_) return as_utc + offset_;
    const std::time_t count = when.time_since_epoch().count();
    std::tm fields{};
    return localtime_r(&count, &fields) != nullptr ? local_of(fields) : as_utc;
}

sys_seconds time_zone::to_utc(local_seconds shown) const noexcept {
    const sys_seconds as_utc(shown.time_since_epoch());
    if (not is_host_) return as_utc - offset_;
    const auto date_point = floor<days>(shown);
    const year_month_day date(date_point);
    const hh_mm_ss time(shown - date_point);
    std::tm fields{};
    fields.tm_year = static_cast<int>(date.year()) - 1900;
    fields.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
    fields.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
    fields.tm_hour = static_cast<int>(time.hours().count());
    fields.tm_min = static_cast<int>(time.minutes().count());
    fields.tm_sec = static_cast<int>(time.seconds().count());
    fields.tm_isdst = -1;
    return sys_seconds(seconds(std::mktime(&fields)));
}

remembered_zone::remembered_zone(const time_zone& zone) : zone_(zone) {
    if (not zone.is_fixed()) days_ = std::make_unique<std::atomic<std::int32_t>[]>(day_count);
}

// No zone changes twice within three days. So the offset applies to the whole day if it is the same
// at the ends of the previous and the next day and of the day itself.
std::int32_t remembered_zone::offset_of_day(local_days day) const noexcept {
    const auto offset_at = [&](local_seconds when) {
        return (when.time_since_epoch() - zone_.to_utc(when).time_since_epoch()).count();
    };
    const auto offset = offset_at(day);
    for (const int other : {-1, 1, 2})
        if (offset_at(day + days(other)) != offset) return day_of_change;
    ENSURE(offset > day_of_change - offset_bias and offset < offset_bias, "an offset differs from the marks");
    return static_cast<std::int32_t>(offset) + offset_bias;
}

sys_seconds remembered_zone::to_utc(local_seconds shown) const noexcept {
    if (days_ == nullptr or shown < earliest or shown > latest) return zone_.to_utc(shown);
    const local_days day = floor<days>(shown);
    std::atomic<std::int32_t>& known = days_[static_cast<std::size_t>((day - first_day).count())];
    std::int32_t offset = known.load(std::memory_order_relaxed);
    if (offset == unknown_day) {
        offset = offset_of_day(day);
        known.store(offset, std::memory_order_relaxed);
    }
    if (offset == day_of_change) return zone_.to_utc(shown);
    return sys_seconds(shown.time_since_epoch()) - seconds(offset - offset_bias);
}

packed_time pack(time_point when, const time_zone& zone) noexcept {
    const sys_seconds whole = floor<seconds>(when);
    const local_seconds shown = zone.to_local(whole);
    if (shown < earliest) return {.date = 1U << 5 | 1U, .time = 0, .hundredths = 0};
    const bool is_late = shown > latest;
    const local_seconds kept = is_late ? latest : shown;
    const auto date_point = floor<days>(kept);
    const year_month_day date(date_point);
    const hh_mm_ss time(kept - date_point);
    const auto second = static_cast<unsigned>(time.seconds().count());
    const auto part = is_late ? 99 : duration_cast<milliseconds>(when - whole).count() / 10;
    ENSURE(part >= 0 and part <= 99, "hundredths of a second");
    return {
        .date = static_cast<std::uint16_t>(static_cast<unsigned>(static_cast<int>(date.year()) - 1980) << 9 |
                                           static_cast<unsigned>(date.month()) << 5 |
                                           static_cast<unsigned>(date.day())),
        .time = static_cast<std::uint16_t>(static_cast<unsigned>(time.hours().count()) << 11 |
                                           static_cast<unsigned>(time.minutes().count()) << 5 | second / 2),
        .hundredths = static_cast<std::uint8_t>((second % 2) * 100 + static_cast<unsigned>(part))};
}

namespace {

template <class Zone>
time_point unpack_in(const packed_time& from, const Zone& zone) noexcept {
    const year_month_day date(year(1980 + (from.date >> 9)), month((from.date >> 5) & 0xfU),
                              day(from.date & 0x1fU));
    if (not date.ok()) return {};
    const unsigned hour = std::min(from.time >> 11, 23);
    const unsigned minute = std::min((from.time >> 5) & 0x3f, 59);
    const unsigned second = std::min((from.time & 0x1f) * 2, 58);
    const unsigned hundredths = std::min<unsigned>(from.hundredths, 199);
    const local_seconds shown = local_days(date) + hours(hour) + minutes(minute) + seconds(second);
    return zone.to_utc(shown) + milliseconds(hundredths * 10);
}

}  // namespace

time_point unpack(const packed_time& from, const time_zone& zone) noexcept {
    return unpack_in(from, zone);
}

time_point unpack(const packed_time& from, const remembered_zone& zone) noexcept {
    return unpack_in(from, zone);
}

}  // namespace sluice::fat

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

// Times as directories store them: local time of an unrecorded zone, with a resolution of two
// seconds, from 1980 to 2107.

namespace sluice::fat {

using time_point = std::chrono::system_clock::time_point;

/// The time zone of the times of a volume. A value.
class time_zone {
public:
    [[nodiscard]] static constexpr time_zone utc() noexcept { return fixed(std::chrono::minutes(0)); }
    /// East of Greenwich is positive.
    [[nodiscard]] static constexpr time_zone fixed(std::chrono::minutes offset) noexcept {
        return time_zone(false, offset);
    }
    /// Returns the zone of the host, with its offset at each instant, including daylight saving
    /// time.
    [[nodiscard]] static constexpr time_zone host() noexcept { return time_zone(true, {}); }

    /// Returns whether the offset is the same at all times.
    [[nodiscard]] constexpr bool is_fixed() const noexcept { return not is_host_; }

    /// Returns the local time. Complexity: constant; for the host's zone, a lookup in its table.
    [[nodiscard]] std::chrono::local_seconds to_local(std::chrono::sys_seconds when) const noexcept;
    /// Returns the instant of a local time; for an hour that occurred twice, one of the two.
    [[nodiscard]] std::chrono::sys_seconds to_utc(std::chrono::local_seconds shown) const noexcept;

private:
    constexpr time_zone(bool is_host, std::chrono::minutes offset) noexcept
        : is_host_(is_host), offset_(offset) {}

    bool is_host_;
    std::chrono::minutes offset_;
};

/// A time zone that caches its offset for each day that is queried. The C library checks the host's
/// configuration for each time, under one lock for all threads.
///
/// A change of the host's zone does not affect offsets that are already cached.
/// Thread safety: any thread.
class remembered_zone {
public:
    /// Allocates: 190 kB for the zone of the host, otherwise nothing.
    explicit remembered_zone(const time_zone& zone);

    /// As time_zone::to_utc(). Allocates: nothing. Complexity: constant.
    [[nodiscard]] std::chrono::sys_seconds to_utc(std::chrono::local_seconds shown) const noexcept;

private:
    [[nodiscard]] std::int32_t offset_of_day(std::chrono::local_days day) const noexcept;

    time_zone zone_;
    // One value per day from 1980 to 2107: seconds plus a bias, or one of two marks. Relaxed: each
    // value is independent, and all threads would write the same.
    std::unique_ptr<std::atomic<std::int32_t>[]> days_;
};

/// The fields of one time. A field that is missing on disk (the hundredths of a change, the time of
/// day of an access) is 0.
struct packed_time {
    std::uint16_t date = 0;       // day in bits 0 to 4, month in 5 to 8, years since 1980 above
    std::uint16_t time = 0;       // two seconds in bits 0 to 4, minutes in 5 to 10, hours above
    std::uint8_t hundredths = 0;  // 10 ms, up to 1.99 s

    [[nodiscard]] friend constexpr bool operator==(const packed_time&, const packed_time&) noexcept = default;
};

/// Encodes a time, rounded down and clamped to the range of the format. Invariant: unpack(pack(t))
/// <= t, by less than 10 ms, within that range. Allocates: nothing.
[[nodiscard]] packed_time pack(time_point when, const time_zone& zone) noexcept;

/// Decodes a time. Every bit pattern gives a time: an invalid date (above all 0, never set) gives
/// the Unix epoch, and fields that are too large are clamped. Allocates: nothing.
[[nodiscard]] time_point unpack(const packed_time& from, const time_zone& zone) noexcept;
[[nodiscard]] time_point unpack(const packed_time& from, const remembered_zone& zone) noexcept;

}  // namespace sluice::fat

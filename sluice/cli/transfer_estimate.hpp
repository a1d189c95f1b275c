#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace sluice::cli {

/// The rate of a transfer, and the time that is left.
///
/// The rate is an exponential average over about `memory`, so that the display is steady and still
/// follows a change within seconds. Until `memory` has passed it is the mean since the beginning.
/// Thread safety: none of its own. Allocates: nothing.
class transfer_estimate {
public:
    using time_point = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::seconds memory{4};
    /// Until this time has passed, there is no rate.
    static constexpr std::chrono::milliseconds settling{500};

    explicit transfer_estimate(time_point now) noexcept : began_(now), sampled_(now) {}

    /// Takes the number of bytes that were transferred so far. No effect if the time has not
    /// advanced since the last call, or the number has become smaller.
    void sample(std::uint64_t transferred_bytes, time_point now) noexcept;

    /// Returns bytes per second; std::nullopt at first.
    [[nodiscard]] std::optional<double> rate() const noexcept;
    /// Returns the time for further bytes; std::nullopt without a rate, or if it is over 99 hours.
    [[nodiscard]] std::optional<std::chrono::seconds> time_for(std::uint64_t bytes) const noexcept;

private:
    time_point began_;
    time_point sampled_;
    std::uint64_t bytes_ = 0;
    double rate_ = 0;
};

/// Returns a time as "0:07", "12:34" or "3:00:00". Allocates: the text.
[[nodiscard]] std::string duration_text(std::chrono::seconds time);

/// The facts of a line about a transfer.
struct progress_facts {
    std::uint64_t done_bytes = 0;
    std::uint64_t total_bytes = 0;
    std::optional<double> rate{};  ///< bytes per second
    std::optional<std::chrono::seconds> left{};
    std::string name{};  ///< name of the present file, safe for a terminal
};
/// Returns a line of at most `columns` columns: a bar, the share in percent, the rate, the time
/// that is left, and the name. If they have no room, first the name is shortened and dropped, then
/// the bar, then the time, then the rate. Allocates: the text.
[[nodiscard]] std::string progress_line(const progress_facts& of, std::size_t columns);

}  // namespace sluice::cli

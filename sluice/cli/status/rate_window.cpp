#include "sluice/cli/status/rate_window.hpp"

#include <algorithm>

namespace sluice::cli {

using smb::server::traffic;
using smb::wire::command;

void rate_window::add(clock_source::steady_time now, const traffic& so_far) noexcept {
    samples_[count_ % samples_max] = {.at = now, .done = so_far};
    ++count_;
}

std::optional<traffic_rate> rate_window::over(std::chrono::seconds length) const noexcept {
    const std::size_t kept = std::min(count_, samples_max);
    if (kept < 2) return std::nullopt;
    const sample& last = newest(0);
    std::size_t first = 1;
    const auto distance = [&](std::size_t i) { return std::chrono::abs(last.at - newest(i).at - length); };
    for (std::size_t i = 2; i != kept; ++i)
        if (distance(i) < distance(first)) first = i;
    const sample& from = newest(first);
    const double seconds = std::chrono::duration<double>(last.at - from.at).count();
    if (not(seconds > 0)) return std::nullopt;
    const auto rate = [&](std::uint64_t then, std::uint64_t now) {
        return static_cast<double>(now - then) / seconds;
    };
    return traffic_rate{.seconds = seconds,
                        .requests = rate(from.done.requests_of_all(), last.done.requests_of_all()),
                        .reads = rate(from.done.of(command::read), last.done.of(command::read)),
                        .writes = rate(from.done.of(command::write), last.done.of(command::write)),
                        .read_bytes = rate(from.done.read_bytes, last.done.read_bytes),
                        .written_bytes = rate(from.done.written_bytes, last.done.written_bytes)};
}

}  // namespace sluice::cli

#include "sluice/cli/transfer_estimate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sluice/cli/byte_size.hpp"
#include "sluice/cli/terminal_width.hpp"

namespace sluice::cli {
namespace {

using seconds_fraction = std::chrono::duration<double>;
constexpr std::chrono::hours time_max{99};
constexpr std::size_t bar_width = 24;
constexpr std::size_t name_width_min = 8;

}  // namespace

void transfer_estimate::sample(std::uint64_t transferred_bytes, time_point now) noexcept {
    if (now <= sampled_ or transferred_bytes < bytes_) return;
    const double passed = seconds_fraction(now - sampled_).count();
    const double present = static_cast<double>(transferred_bytes - bytes_) / passed;
    const double since_begin = seconds_fraction(now - began_).count();
    const double window = std::min(since_begin, seconds_fraction(memory).count());
    // Over a window that is as long as the transfer so far, this is the mean.
    const double weight = window == since_begin ? passed / since_begin : 1 - std::exp(-passed / window);
    rate_ += (present - rate_) * weight;
    bytes_ = transferred_bytes;
    sampled_ = now;
}

std::optional<double> transfer_estimate::rate() const noexcept {
    if (sampled_ - began_ < settling) return std::nullopt;
    return rate_;
}

std::optional<std::chrono::seconds> transfer_estimate::time_for(std::uint64_t bytes) const noexcept {
    const auto now = rate();
    if (not now or *now <= 0) return std::nullopt;
    const double time = std::ceil(static_cast<double>(bytes) / *now);
    if (time > seconds_fraction(time_max).count()) return std::nullopt;
    return std::chrono::seconds(static_cast<std::int64_t>(time));
}

std::string duration_text(std::chrono::seconds time) {
    const auto all = time.count();
    if (all >= 3600) return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
    return fmt::format("{}:{:02}", all / 60, all % 60);
}

std::string progress_line(const progress_facts& of, std::size_t columns) {
    const double part =
        of.total_bytes == 0
            ? 1
            : std::min(1.0, static_cast<double>(of.done_bytes) / static_cast<double>(of.total_bytes));
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(bar_width));
    const std::string bar = fmt::format("[{:=<{}}{: <{}}] ", "", filled, "", bar_width - filled);
    const std::string percent = fmt::format("{:3.0f} %", std::floor(part * 100));
    const std::string rate =
        of.rate ? fmt::format("  {}/s", size_text(static_cast<std::uint64_t>(std::max(0.0, *of.rate)))) : "";
    const std::string left = of.left ? fmt::format("  {} left", duration_text(*of.left)) : "";
    std::string line = percent;
    if (line.size() > columns) return {};
    if (line.size() + rate.size() <= columns) line += rate;
    if (line.size() + left.size() <= columns and not rate.empty()) line += left;
    if (line.size() + bar.size() <= columns) line.insert(0, bar);
    constexpr std::size_t gap = 2;
    if (not of.name.empty() and line.size() + gap + name_width_min <= columns)
        line += "  " + fitted_end(of.name, columns - line.size() - gap);
    return line;
}

}  // namespace sluice::cli

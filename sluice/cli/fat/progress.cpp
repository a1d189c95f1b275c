#include "sluice/cli/fat/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sluice/cli/fat/image/image.hpp"

namespace sluice::cli {
namespace {

constexpr int bar_width = 24;
constexpr std::size_t name_width = 28;
constexpr auto pause = std::chrono::milliseconds(100);

}  // namespace

progress_bar::progress_bar(std::uint64_t total_bytes)
    : total_(total_bytes),
      is_shown_(::isatty(STDERR_FILENO) != 0),
      began_(std::chrono::steady_clock::now()),
      drawn_(began_) {}

progress_bar::~progress_bar() {
    if (is_shown_) fmt::print(stderr, "\r\x1b[K");
}

void progress_bar::name(const std::string& what) {
    if (not is_shown_) return;
    const std::scoped_lock guard(drawing_);
    what_ = terminal_text(what);
}

void progress_bar::add(std::uint64_t bytes) {
    done_.fetch_add(bytes, std::memory_order_relaxed);
    if (not is_shown_) return;
    const std::scoped_lock guard(drawing_);
    const auto now = std::chrono::steady_clock::now();
    if (now - drawn_ >= pause) draw(now);
}

void progress_bar::draw(std::chrono::steady_clock::time_point now) {
    drawn_ = now;
    const auto done = static_cast<double>(done_.load(std::memory_order_relaxed));
    const auto total = static_cast<double>(total_.load(std::memory_order_relaxed));
    const double part = total == 0 ? 1 : std::min(1.0, done / total);
    const double seconds = std::chrono::duration<double>(now - began_).count();
    const auto rate = static_cast<std::uint64_t>(done / std::max(seconds, 0.001));
    const int filled = static_cast<int>(part * bar_width);
    std::string shown = what_;
    if (shown.size() > name_width) shown = "..." + shown.substr(shown.size() - name_width + 3);
    fmt::print(stderr, "\r[{:=<{}}{: <{}}] {:3.0f} %  {}/s  {}\x1b[K", "", filled, "", bar_width - filled,
               part * 100, size_text(rate), shown);
    std::fflush(stderr);
}

}  // namespace sluice::cli

#include "sluice/cli/fat/progress.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sluice::cli {
namespace {

constexpr auto pause = std::chrono::milliseconds(100);
constexpr auto pause_of_lines = std::chrono::seconds(1);
constexpr std::size_t columns_default = 80;

// A terminal whose size is unknown reports 0. The last column stays empty: some terminals wrap
// after it.
[[nodiscard]] std::size_t columns_of_terminal() noexcept {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 or size.ws_col == 0) return columns_default - 1;
    return size.ws_col - 1U;
}

}  // namespace

progress_bar::progress_bar(std::uint64_t total_bytes, progress_mode mode)
    : total_(total_bytes),
      to_(mode == progress_mode::never         ? output::none
          : ::isatty(STDERR_FILENO) != 0       ? output::terminal
          : mode == progress_mode::on_terminal ? output::none
                                               : output::lines),
      drawn_(std::chrono::steady_clock::now()),
      estimate_(drawn_) {}

progress_bar::~progress_bar() {
    clear();
}

void progress_bar::clear() {
    if (to_ != output::terminal) return;
    const std::scoped_lock guard(drawing_);
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
}

void progress_bar::name(const std::string& what) {
    if (to_ == output::none) return;
    const std::scoped_lock guard(drawing_);
    what_ = terminal_text(what);
}

void progress_bar::add(std::uint64_t bytes) {
    done_.fetch_add(bytes, std::memory_order_relaxed);
    draw_if_due();
}

void progress_bar::skip(std::uint64_t bytes) {
    skipped_.fetch_add(bytes, std::memory_order_relaxed);
    draw_if_due();
}

void progress_bar::draw_if_due() {
    if (to_ == output::none) return;
    const std::scoped_lock guard(drawing_);
    const auto now = std::chrono::steady_clock::now();
    const auto wait = to_ == output::terminal ? time_point::duration(pause) : pause_of_lines;
    if (now - drawn_ >= wait) draw(now);
}

void progress_bar::draw(time_point now) {
    drawn_ = now;
    const std::uint64_t transferred = done_.load(std::memory_order_relaxed);
    const std::uint64_t done = transferred + skipped_.load(std::memory_order_relaxed);
    const std::uint64_t total = total_.load(std::memory_order_relaxed);
    estimate_.sample(transferred, now);
    const progress_facts facts{.done_bytes = done,
                               .total_bytes = total,
                               .rate = estimate_.rate(),
                               .left = estimate_.time_for(total - std::min(total, done)),
                               .name = what_};
    if (to_ == output::terminal)
        fmt::print(stderr, "\r{}\x1b[K", progress_line(facts, columns_of_terminal()));
    else
        fmt::print(stderr, "{}\n", progress_line(facts, columns_default));
    std::fflush(stderr);
}

}  // namespace sluice::cli

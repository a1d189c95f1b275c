#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "sluice/cli/terminal_text.hpp"
#include "sluice/cli/transfer_estimate.hpp"

namespace sluice::cli {

/// Whether progress is shown.
enum class progress_mode : std::uint8_t {
    on_terminal,  ///< if standard error is a terminal
    always,       ///< on another standard error, as a line each second
    never,
};

/// A line on standard error with the progress and the rate, rewritten at most ten times a second.
/// The destructor clears it. Thread safety: all members, from any thread.
class progress_bar {
public:
    explicit progress_bar(std::uint64_t total_bytes = 0, progress_mode mode = progress_mode::on_terminal);
    ~progress_bar();
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;

    /// Sets the name of the file that is being copied.
    void name(const std::string& what);
    void add(std::uint64_t bytes);
    /// Adds bytes that need no transfer, because the target has them. They do not affect the rate.
    void skip(std::uint64_t bytes);
    /// Adds to the total, while the work is still being listed.
    void expect(std::uint64_t bytes) noexcept { total_.fetch_add(bytes, std::memory_order_relaxed); }
    /// Clears the line, before a message. The next change draws it again.
    void clear();

private:
    using time_point = std::chrono::steady_clock::time_point;
    enum class output : std::uint8_t { none, terminal, lines };

    void draw_if_due();
    void draw(time_point now);

    // relaxed: only displayed
    std::atomic<std::uint64_t> total_;
    std::atomic<std::uint64_t> done_ = 0;
    std::atomic<std::uint64_t> skipped_ = 0;
    const output to_;
    std::mutex drawing_;  // protects the members below
    std::string what_;
    time_point drawn_;
    transfer_estimate estimate_;
};

}  // namespace sluice::cli

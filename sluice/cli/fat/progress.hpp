#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {

/// A bar on standard error, redrawn in place ten times a second, if that is a terminal; otherwise
/// without effect. The destructor clears the line. Thread safety: all members, from any thread.
class progress_bar {
public:
    explicit progress_bar(std::uint64_t total_bytes = 0);
    ~progress_bar();
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;

    /// Sets the name of the file that is being copied.
    void name(const std::string& what);
    void add(std::uint64_t bytes);
    /// Adds to the total, while the work is still being listed.
    void expect(std::uint64_t bytes) noexcept { total_.fetch_add(bytes, std::memory_order_relaxed); }

private:
    void draw(std::chrono::steady_clock::time_point now);

    // relaxed: only displayed
    std::atomic<std::uint64_t> total_;
    std::atomic<std::uint64_t> done_ = 0;
    bool is_shown_;
    std::chrono::steady_clock::time_point began_;
    std::mutex drawing_;  // protects the members below
    std::string what_;
    std::chrono::steady_clock::time_point drawn_;
};

}  // namespace sluice::cli

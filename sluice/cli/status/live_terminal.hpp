#pragma once

#include <signal.h>
#include <termios.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/status/watch_screen.hpp"

namespace sluice::cli {

/// Full use of the terminal on standard output: its alternate screen, without a cursor; and without
/// echo of the keyboard, if standard input is a terminal as well. The destructor restores both; so
/// does a signal that ends or stops the process, except SIGKILL and SIGSTOP.
///
/// Thread safety: one object at a time, and one thread in the process: it changes the handlers and
/// the mask of signals, which the destructor restores.
class live_terminal {
public:
    enum class event : std::uint8_t { timeout, quit, redraw };

    /// Returns whether standard output is a terminal that can show more than lines.
    [[nodiscard]] static bool is_available() noexcept;

    live_terminal();
    live_terminal(const live_terminal&) = delete;
    live_terminal& operator=(const live_terminal&) = delete;
    ~live_terminal();

    /// Returns the current size; 24 rows and 80 columns if the terminal does not report it.
    [[nodiscard]] static screen_size size() noexcept;
    /// Shows the lines, which fit the screen. Returns false if the terminal is gone.
    [[nodiscard]] bool show(const std::vector<std::string>& lines) noexcept;
    /// Waits until the time is over, the user ends the view (q, Ctrl-C, or a signal that ends the
    /// process), or the screen must be drawn again. Blocks: until then.
    [[nodiscard]] event wait(std::chrono::milliseconds at_most) noexcept;

private:
    void enter() noexcept;
    void leave() noexcept;
    void stop_process() noexcept;

    std::optional<termios> keyboard_;  // its settings before
    sigset_t mask_before_{};
};

}  // namespace sluice::cli

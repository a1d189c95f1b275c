#include "sluice/cli/password.hpp"

#include <fmt/core.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>

namespace sluice::cli {

std::string ask_password(const std::string& prompt) {
    const bool is_terminal = isatty(STDIN_FILENO) != 0;
    termios shown{};
    if (is_terminal) {
        fmt::print(stderr, "{}: ", prompt);
        tcgetattr(STDIN_FILENO, &shown);
        termios hidden = shown;
        hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    }
    std::string password;
    std::getline(std::cin, password);
    if (is_terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
        fmt::print(stderr, "\n");
    }
    return password;
}

}  // namespace sluice::cli

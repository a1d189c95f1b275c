#include "sluice/cli/password.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

#include "sluice/base/random.hpp"
#include "sluice/cli/message.hpp"

namespace sluice::cli {
namespace {

// Reads byte by byte: a buffer would keep a copy of the password.
[[nodiscard]] result<secret_text> first_line_of(int descriptor) {
    secret_text line;
    bool is_empty = true;
    for (;;) {
        char next = 0;
        const ssize_t got = ::read(descriptor, &next, 1);
        if (got < 0 and errno == EINTR) continue;
        if (got < 0) return failure(error::last("read a password"));
        if (got == 0 and is_empty) return failure({ENODATA, "read a password"});
        if (got == 0 or next == '\n') break;
        is_empty = false;
        if (not line.append(next)) return failure({EMSGSIZE, "read a password"});
    }
    if (line.view().ends_with('\r')) line.remove_last();
    return line;
}

}  // namespace

secret_text ask_password(const std::string& prompt) {
    const bool is_terminal = isatty(STDIN_FILENO) != 0;
    termios shown{};
    if (is_terminal) {
        fmt::print(stderr, "{}: ", prompt);
        tcgetattr(STDIN_FILENO, &shown);
        termios hidden = shown;
        hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    }
    auto password = first_line_of(STDIN_FILENO);
    if (is_terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
        fmt::print(stderr, "\n");
    }
    if (not password) fail(password_problem("standard input", password.error()));
    return *std::move(password);
}

std::string password_problem(const std::string& source, const error& why) {
    if (why.code() == ENODATA) return source + ": missing password: the input is empty";
    if (why == std::errc::message_size)
        return fmt::format("{}: the password is longer than {} bytes", source, secret_text::bytes_max);
    return source + ": " + why.message();
}

result<secret_text> password_in_file(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) return failure(error::last("open"));
    auto line = first_line_of(descriptor);
    ::close(descriptor);
    return line;
}

std::string make_password() {
    // 20 of 31 characters are 99 bits.
    constexpr std::string_view letters = "abcdefghjkmnpqrstuvwxyz23456789";
    system_random random;
    std::string password;
    for (int i = 0; i != 20; ++i) {
        if (i != 0 and i % 5 == 0) password += '-';
        password += letters[random.below(letters.size())];
    }
    return password;
}

}  // namespace sluice::cli

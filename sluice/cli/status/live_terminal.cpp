#include "sluice/cli/status/live_terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace sluice::cli {

namespace {

// Invariant: written by the handlers, which run only during ppoll(2) of the one thread.
volatile std::sig_atomic_t last_signal = 0;

void note_signal(int which) noexcept {
    last_signal = which;
}

constexpr std::array handled{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

// Alternate screen, no cursor, no wrapping of long lines; and the reverse.
constexpr std::string_view begin_screen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view end_screen = "\x1b[?7h\x1b[?25h\x1b[?1049l";

[[nodiscard]] bool write_all(std::string_view text) noexcept {
    while (not text.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
        if (written < 0 and errno == EINTR) continue;
        if (written <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

}  // namespace

bool live_terminal::is_available() noexcept {
    const char* const kind = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) != 0 and kind != nullptr and std::string_view(kind) != "dumb";
}

live_terminal::live_terminal() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int which : handled)
        sigaddset(&blocked, which);
    (void)::sigprocmask(SIG_BLOCK, &blocked, &mask_before_);
    struct sigaction action{};
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    for (const int which : handled)
        (void)::sigaction(which, &action, nullptr);
    enter();
}

live_terminal::~live_terminal() {
    leave();
    for (const int which : handled)
        (void)std::signal(which, SIG_DFL);
    (void)::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void live_terminal::enter() noexcept {
    termios before{};
    if (::isatty(STDIN_FILENO) != 0 and ::tcgetattr(STDIN_FILENO, &before) == 0) {
        keyboard_ = before;
        termios quiet = before;
        quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
        (void)::tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
    }
    (void)write_all(begin_screen);
}

void live_terminal::leave() noexcept {
    (void)write_all(end_screen);
    if (keyboard_) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &*keyboard_);
    keyboard_.reset();
}

// SIGTSTP is blocked here, so the process stops by SIGSTOP. It continues in this function.
void live_terminal::stop_process() noexcept {
    leave();
    (void)::raise(SIGSTOP);
    enter();
}

screen_size live_terminal::size() noexcept {
    winsize reported{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &reported) != 0 or reported.ws_row == 0 or reported.ws_col == 0)
        return {};
    return {.rows = reported.ws_row, .columns = reported.ws_col};
}

bool live_terminal::show(const std::vector<std::string>& lines) noexcept {
    // Each line replaces the old one, and the rest of the screen is erased: nothing flickers.
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i != lines.size(); ++i)
        text += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
    return write_all(text + "\x1b[J");
}

live_terminal::event live_terminal::wait(std::chrono::milliseconds at_most) noexcept {
    const bool has_keyboard = keyboard_.has_value();
    pollfd keyboard{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const timespec time{.tv_sec = at_most.count() / 1000, .tv_nsec = at_most.count() % 1000 * 1'000'000};
    last_signal = 0;
    const int ready = ::ppoll(&keyboard, has_keyboard ? 1 : 0, &time, &mask_before_);
    switch (const int which = last_signal; which) {
        case 0:
            break;
        case SIGTSTP:
            stop_process();
            return event::redraw;
        case SIGCONT:  // another process stopped this one, and the shell used the screen
            leave();
            enter();
            return event::redraw;
        case SIGWINCH:
            return event::redraw;
        default:
            return event::quit;
    }
    if (ready <= 0) return ready == 0 ? event::timeout : event::redraw;
    char key = 0;
    const ssize_t got = ::read(STDIN_FILENO, &key, 1);
    return got != 1 or key == 'q' or key == 'Q' ? event::quit : event::redraw;
}

}  // namespace sluice::cli

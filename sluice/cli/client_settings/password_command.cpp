#include "sluice/cli/client_settings/password_command.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/descriptor.hpp"

namespace sluice::cli {
namespace {

using std::chrono::steady_clock;

constexpr useconds_t poll_period_us = 1000;  // short, because programs usually end at once

[[nodiscard]] std::string text_of(int code) {
    return std::generic_category().message(code);
}

// The environment of this process with two more variables.
class environment {
public:
    explicit environment(const password_owner& owner)
        : host_("SLUICE_HOST=" + owner.host), user_("SLUICE_USER=" + owner.user) {
        for (char** each = environ; *each != nullptr; ++each) {
            const std::string_view text(*each);
            // The program must not see a password that is meant for another server.
            if (text.starts_with("SLUICE_HOST=") or text.starts_with("SLUICE_USER=") or
                text.starts_with("SLUICE_PASSWORD="))
                continue;
            pointers_.push_back(*each);
        }
        pointers_.push_back(host_.data());
        pointers_.push_back(user_.data());
        pointers_.push_back(nullptr);
    }
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    [[nodiscard]] char** get() noexcept { return pointers_.data(); }

private:
    std::string host_;
    std::string user_;
    std::vector<char*> pointers_;
};

// A program whose output is read. The destructor kills it.
class child {
public:
    // Returns the code of an error.
    [[nodiscard]] int start(const std::vector<std::string>& command, const password_owner& owner) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
        output_ = descriptor(ends[0]);
        const descriptor its(ends[1]);
        std::vector<char*> words;
        for (const std::string& word : command)
            words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        if (const int code = ::posix_spawn_file_actions_init(&actions); code != 0) return code;
        ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_adddup2(&actions, its.get(), STDOUT_FILENO);
        environment variables(owner);
        const int code = ::posix_spawnp(&id_, words[0], &actions, nullptr, words.data(), variables.get());
        ::posix_spawn_file_actions_destroy(&actions);
        if (code != 0) id_ = 0;
        return code;
    }
    child() = default;
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() {
        if (id_ == 0) return;
        ::kill(id_, SIGKILL);
        while (::waitpid(id_, nullptr, 0) < 0 and errno == EINTR) {}
    }

    [[nodiscard]] int output() const noexcept { return output_.get(); }
    void close_output() noexcept { output_ = descriptor(); }
    // Returns the status of waitpid(2), or std::nullopt if the program has not ended in time.
    [[nodiscard]] std::optional<int> wait_until(steady_clock::time_point deadline) noexcept {
        for (;; ::usleep(poll_period_us)) {
            int status = 0;
            if (::waitpid(id_, &status, WNOHANG) == id_) {
                id_ = 0;
                return status;
            }
            if (steady_clock::now() >= deadline) return std::nullopt;
        }
    }

private:
    descriptor output_;
    pid_t id_ = 0;
};

// Reads a line, or up to the end. Returns the problem, or nothing. Reads bytes singly, so that no
// buffer keeps a part of the password.
[[nodiscard]] std::optional<std::string> read_line(int output, steady_clock::time_point deadline,
                                                   secret_text& into) {
    for (bool has_ended = false; not has_ended;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
        pollfd ready{.fd = output, .events = POLLIN, .revents = 0};
        const int count = left.count() <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left.count()));
        if (count < 0 and errno == EINTR) continue;
        if (count < 0) return "poll: " + text_of(errno);
        if (count == 0) return "it did not print the password in time";
        char next = 0;
        const ssize_t read = ::read(output, &next, 1);
        if (read < 0 and errno != EINTR) return "read: " + text_of(errno);
        has_ended = read == 0 or (read == 1 and next == '\n');
        if (read == 1 and not has_ended and next != '\r' and not into.append(next))
            return fmt::format("its first line has more than {} bytes", secret_text::bytes_max);
    }
    return std::nullopt;
}

[[nodiscard]] std::optional<std::string> failure_in(int status) {
    if (WIFSIGNALED(status)) return fmt::format("a signal ended it ({})", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return fmt::format("it exited with status {}", WEXITSTATUS(status));
    return std::nullopt;
}

}  // namespace

std::expected<secret_text, std::string> password_of_command(const std::vector<std::string>& command,
                                                            const password_owner& owner,
                                                            std::chrono::milliseconds time_max) {
    ENSURE(not command.empty());
    const auto problem = [&](std::string_view why) {
        return std::unexpected(fmt::format("password-command '{}': {}", command.front(), why));
    };
    child program;
    if (const int code = program.start(command, owner); code != 0) return problem("start: " + text_of(code));
    const auto deadline = steady_clock::now() + time_max;
    secret_text password;
    if (const auto wrong = read_line(program.output(), deadline, password)) return problem(*wrong);
    // The output of a program that fails may be a message.
    program.close_output();
    const auto status = program.wait_until(deadline);
    if (not status) return problem("it did not end in time");
    if (const auto failure = failure_in(*status)) return problem(*failure);
    if (password.view().empty()) return problem("it printed no password");
    return password;
}

}  // namespace sluice::cli

#include "sluice/cli/lock/held_command.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/base/error.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"

namespace sluice::cli {
namespace {

[[nodiscard]] command_outcome system_failure(const char* what) {
    print_error(error::last(what).message());
    return {.status = static_cast<int>(exit_code::lock_system)};
}

[[nodiscard]] command_outcome outcome_of(int status) noexcept {
    if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
    return {.status = WEXITSTATUS(status)};
}

// Only the command should keep the caller's pipes and files open.
void detach_from(const std::vector<int>& foreign, int report) noexcept {
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (nowhere >= 0) ::dup2(nowhere, standard);
    if (nowhere > STDERR_FILENO) ::close(nowhere);
    for (const int each : foreign)
        if (each > STDERR_FILENO and each != report) ::close(each);
    (void)!::chdir("/");
}

// The holder process, while the command or its descendants run.
class holder {
public:
    holder(pid_t command, hold_until until, const held_lock& lock, const outcome_report& report) noexcept
        : command_(command), until_(until), lock_(lock), report_(report) {}

    [[nodiscard]] command_outcome wait(int signals) {
        for (;;) {
            if (reap()) return outcome_;
            signalfd_siginfo what{};
            if (::read(signals, &what, sizeof what) != sizeof what) continue;
            const int number = static_cast<int>(what.ssi_signo);
            // It was not reaped yet, so its process id is still valid.
            if (number != SIGCHLD and not has_exited_ and not is_sent_by_kernel(what.ssi_code))
                ::kill(command_, number);
        }
    }

private:
    // Returns whether the lock has been released and the outcome is still to be reported.
    [[nodiscard]] bool reap() {
        for (;;) {
            int status = 0;
            const pid_t ended = ::waitpid(-1, &status, WNOHANG);
            if (ended < 0 and errno == EINTR) continue;
            if (ended == command_) {
                has_exited_ = true;
                outcome_ = outcome_of(status);
                outcome_.was_lock_damaged = not lock_.is_intact();
            }
            const bool is_over = ended < 0 or (has_exited_ and until_ == hold_until::command_exits);
            if (is_over) return end();
            if (ended == 0) break;
        }
        if (has_exited_ and not std::exchange(has_reported_, true)) report_.send(outcome_);
        return false;
    }

    [[nodiscard]] bool end() {
        ENSURE(has_exited_);
        lock_.release();
        if (has_reported_) ::_exit(0);
        return true;
    }

    pid_t command_;
    hold_until until_;
    const held_lock& lock_;
    const outcome_report& report_;
    command_outcome outcome_;
    bool has_exited_ = false;
    bool has_reported_ = false;
};

}  // namespace

int become(const held_command& command) {
    ENSURE(not command.words.empty());
    for (const int each : command.inherited)
        (void)::fcntl(each, F_SETFD, 0);
    if (command.owner_died) ::setenv("SLUICE_LOCK_OWNER_DIED", "1", 1);
    std::vector<char*> words;
    for (const std::string& word : command.words)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    const int code = errno;
    print_error(fmt::format("{}: execute: {}", command.words[0], std::generic_category().message(code)));
    return static_cast<int>(code == ENOMEM ? exit_code::lock_system : exit_code::command_not_run);
}

command_outcome run_held(const held_command& command, hold_until until, const held_lock& lock,
                         const outcome_report& report) {
    if (until == hold_until::descendants_exit and ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return system_failure("prctl");
    sigset_t handled = forwarded_signals();
    sigaddset(&handled, SIGCHLD);
    sigset_t everything;
    sigfillset(&everything);         // also those that stop: a stopped holder would
                                     // not release the lock
    sigdelset(&everything, SIGBUS);  // SIGBUS: blocked, a truncated lock file would kill the holder
    ::pthread_sigmask(SIG_SETMASK, &everything, nullptr);
    ::signal(SIGCHLD, SIG_DFL);  // ignored, the kernel would keep the outcome for itself
    const int signals = ::signalfd(-1, &handled, SFD_CLOEXEC);
    if (signals < 0) return system_failure("signalfd");
    const pid_t started = ::fork();
    if (started < 0) return system_failure("fork");
    if (started == 0) {
        ::pthread_sigmask(SIG_SETMASK, &report.original_mask(), nullptr);
        ::_exit(become(command));
    }
    detach_from(command.foreign, report.descriptor());
    return holder(started, until, lock, report).wait(signals);
}

std::vector<int> open_descriptors() {
    std::vector<int> found;
    DIR* const directory = ::opendir("/proc/self/fd");
    if (directory == nullptr) return found;
    while (const dirent* const entry = ::readdir(directory)) {
        int number = 0;
        const char* const end = entry->d_name + std::strlen(entry->d_name);
        const auto parsed = std::from_chars(entry->d_name, end, number);
        if (parsed.ec == std::errc() and parsed.ptr == end and number != ::dirfd(directory))
            found.push_back(number);
    }
    ::closedir(directory);
    return found;
}

}  // namespace sluice::cli

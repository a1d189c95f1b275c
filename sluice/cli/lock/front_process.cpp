#include "sluice/cli/lock/front_process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "sluice/base/error.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"

namespace sluice::cli {
namespace {

constexpr int status_of_signal = 128;

[[nodiscard]] int system_failure(const char* what) {
    print_error(error::last(what).message());
    return static_cast<int>(exit_code::lock_system);
}

[[noreturn]] void hold_in_child(const std::function<command_outcome(const outcome_report&)>& hold,
                                const outcome_report& report, pid_t front) {
    // A waiting request is useless once the front process, its only recipient, has died.
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 or ::getppid() != front) ::_exit(1);
    ::pthread_sigmask(SIG_SETMASK, &report.original_mask(), nullptr);
    try {
        report.send(hold(report));
    } catch (const std::exception& unexpected) {  // out of memory
        print_error(unexpected.what());
        report.send({.status = static_cast<int>(exit_code::lock_system)});
    }
    ::_exit(0);
}

// The front process, while the holder works.
class front {
public:
    front(const std::string& file, pid_t holder, int reports, int signals) noexcept
        : file_(file), holder_(holder), reports_(reports), signals_(signals) {
        sigemptyset(&seen_);
    }

    [[nodiscard]] int wait() {
        for (;;) {
            std::array<pollfd, 2> sources{pollfd{.fd = reports_, .events = POLLIN, .revents = 0},
                                          pollfd{.fd = signals_, .events = POLLIN, .revents = 0}};
            if (::poll(sources.data(), sources.size(), -1) < 0 and errno != EINTR)
                return system_failure("poll");
            // Signals first: the report may be a consequence of one.
            if (sources[1].revents != 0)
                forward_signal();
            else if (sources[0].revents != 0)
                return outcome();
        }
    }

private:
    void forward_signal() noexcept {
        signalfd_siginfo what{};
        if (::read(signals_, &what, sizeof what) != sizeof what) return;
        const int number = static_cast<int>(what.ssi_signo);
        sigaddset(&seen_, number);
        // The holder is not reaped before it has reported, so its process id is still valid.
        if (not is_sent_by_kernel(what.ssi_code)) ::kill(holder_, number);
    }

    [[nodiscard]] int outcome() {
        command_outcome reported;
        ssize_t got = 0;
        do
            got = ::read(reports_, &reported, sizeof reported);
        while (got < 0 and errno == EINTR);
        if (got == sizeof reported) {
            if (reported.was_lock_damaged)
                print_error(
                    file_ +
                    ": the lock file was damaged or truncated while the command ran, so another process may "
                    "have held the lock at the same time");
            const bool hides_damage = reported.was_lock_damaged and reported.status == 0;
            if (reported.signal == 0)
                return hides_damage ? static_cast<int>(exit_code::lock_data) : reported.status;
            if (sigismember(&seen_, reported.signal) == 1) end_by(reported.signal);
            return status_of_signal + reported.signal;
        }
        int status = 0;
        pid_t ended = 0;
        do
            ended = ::waitpid(holder_, &status, 0);
        while (ended < 0 and errno == EINTR);
        if (ended < 0) return system_failure("waitpid");
        if (not WIFSIGNALED(status)) return static_cast<int>(exit_code::lock_system);
        const int signal = WTERMSIG(status);
        if (sigismember(&seen_, signal) == 1) end_by(signal);
        print_error(
            fmt::format("{}: the process that held the lock was killed by signal {}; the command, if it was "
                        "started, continues and keeps the lock",
                        file_, signal));
        return status_of_signal + signal;
    }

    void end_by(int signal) noexcept {
        ::prctl(PR_SET_DUMPABLE, 0);  // otherwise the core dump would be that of this process, not
                                      // of the command
        ::signal(signal, SIG_DFL);
        ::raise(signal);
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    }

    const std::string& file_;
    pid_t holder_;
    int reports_;
    int signals_;
    sigset_t seen_{};
};

}  // namespace

sigset_t forwarded_signals() noexcept {
    sigset_t set;
    sigemptyset(&set);
    for (const int one : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2})
        sigaddset(&set, one);
    return set;
}

bool is_sent_by_kernel(int code) noexcept {
    return code == SI_KERNEL;
}

void outcome_report::send(const command_outcome& outcome) const noexcept {
    // Shorter than PIPE_BUF, so it is written completely or not at all. Without a reader, the
    // outcome is not needed.
    while (::write(descriptor_, &outcome, sizeof outcome) < 0 and errno == EINTR) {}
}

bool outcome_report::survive_front() const noexcept {
    return ::prctl(PR_SET_PDEATHSIG, 0) == 0 and ::getppid() == front_;
}

int run_in_holder(const std::string& file,
                  const std::function<command_outcome(const outcome_report&)>& hold) {
    const sigset_t handled = forwarded_signals();
    sigset_t mask;
    ::pthread_sigmask(SIG_BLOCK, &handled, &mask);
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return system_failure("create pipe");
    const int signals = ::signalfd(-1, &handled, SFD_CLOEXEC);
    if (signals < 0) return system_failure("signalfd");
    // The parent may have set it to be ignored. Then the kernel would reap the holder, and its
    // process id could be that of another process when a signal is forwarded.
    ::signal(SIGCHLD, SIG_DFL);
    std::fflush(stdout);
    const pid_t self = ::getpid();
    const pid_t holder = ::fork();
    if (holder < 0) return system_failure("fork");
    if (holder == 0) {
        ::close(pipe[0]);
        ::close(signals);
        hold_in_child(hold, outcome_report(pipe[1], self, mask), self);
    }
    ::close(pipe[1]);
    return front(file, holder, pipe[0], signals).wait();
}

}  // namespace sluice::cli

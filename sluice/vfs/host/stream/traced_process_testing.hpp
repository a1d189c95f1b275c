#pragma once

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <memory>

// For tests: a process that stops at each of its system calls.
namespace sluice::vfs {

/// A copy of this process that runs an action and stops before each of its system calls. It has
/// only the thread that has created it.
class traced_process {
public:
    /// `prepare` runs there before the action, without a stop. Returns null if this sandbox does
    /// not let processes be traced.
    [[nodiscard]] static std::unique_ptr<traced_process> start(
        const std::function<void()>& action, const std::function<void()>& prepare = [] {}) {
        const pid_t child = ::fork();
        if (child == 0) {
            prepare();
            if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
            ::raise(SIGSTOP);
            action();
            ::_exit(testing::Test::HasFailure() ? 1 : 0);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) return nullptr;
        EXPECT_EQ(::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
        return std::unique_ptr<traced_process>(new traced_process(child));
    }
    traced_process(const traced_process&) = delete;
    traced_process& operator=(const traced_process&) = delete;
    ~traced_process() {
        if (has_ended_) return;
        EXPECT_EQ(::kill(child_, SIGKILL), 0);
        EXPECT_EQ(::waitpid(child_, nullptr, 0), child_);
    }

    /// Runs it to the beginning of its next system call. Returns false if it has ended instead,
    /// which it must without a failure.
    bool run_to_call() {
        // Each call stops twice, at its beginning and at its end.
        for (unsigned stops = is_in_call_ ? 2 : 1; stops != 0; --stops) {
            int status = 0;
            EXPECT_EQ(::ptrace(PTRACE_SYSCALL, child_, nullptr, nullptr), 0);
            EXPECT_EQ(::waitpid(child_, &status, 0), child_);
            if (not WIFEXITED(status)) continue;
            EXPECT_EQ(WEXITSTATUS(status), 0) << "the action has failed";
            has_ended_ = true;
            return false;
        }
        is_in_call_ = true;
        return true;
    }
    void run_to_end() {
        while (run_to_call())
            continue;
    }
    /// Returns the number of the system call at which it has stopped.
    [[nodiscard]] long call() const {
        struct __ptrace_syscall_info info{};
        EXPECT_GT(::ptrace(PTRACE_GET_SYSCALL_INFO, child_, sizeof info, &info), 0);
        return static_cast<long>(info.entry.nr);
    }
    [[nodiscard]] pid_t id() const noexcept { return child_; }

private:
    explicit traced_process(pid_t child) noexcept : child_(child) {}

    const pid_t child_;
    bool is_in_call_ = false;
    bool has_ended_ = false;
};

}  // namespace sluice::vfs

#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>

#include "sluice/cli/lock/outcome.hpp"

namespace sluice::cli {

/// In the holder process: reports to the process that started it.
class outcome_report {
public:
    outcome_report(int descriptor, pid_t front, const sigset_t& mask) noexcept
        : descriptor_(descriptor), front_(front), mask_(mask) {}

    /// Reports the outcome, which the front process returns. Call it once.
    void send(const command_outcome& outcome) const noexcept;
    /// Until this is called, the holder dies with the front process. Returns false if that has
    /// already died.
    [[nodiscard]] bool survive_front() const noexcept;
    /// Returns the signal mask at the start of the program.
    [[nodiscard]] const sigset_t& original_mask() const noexcept { return mask_; }
    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_;
    pid_t front_;
    sigset_t mask_;
};

/// Runs `hold` in a child process, the holder, and returns the outcome as soon as the holder
/// reports it; the holder may continue to run. Forwards signals to it. If a signal that arrived
/// here also ended the command, or the holder before it reported, this process ends by that signal,
/// as its parent expects. If the lock file was damaged in the meantime, prints this, with the name
/// of the `file`, and returns an exit status other than 0.
///
/// The holder is a process of its own so that it can keep a lock after the command has ended, and
/// when this process is killed. Signals that the terminal sends reach every process of the job, so
/// they are not forwarded; stopping (SIGTSTP) and continuing are left to the kernel. Call with one
/// thread, before anything that does not survive a fork. Returns the exit status for the shell.
[[nodiscard]] int run_in_holder(const std::string& file,
                                const std::function<command_outcome(const outcome_report&)>& hold);

/// Returns the signals that are forwarded.
[[nodiscard]] sigset_t forwarded_signals() noexcept;
/// Returns whether the terminal or the kernel sent a signal with this code (si_code) to the whole
/// job.
[[nodiscard]] bool is_sent_by_kernel(int code) noexcept;

}  // namespace sluice::cli

#pragma once

namespace sluice::cli {

/// The end of a command that `sluice lock` ran, or the reason why it did not run.
struct command_outcome {
    int status = 0;  ///< what the program returns, unless a signal ended the command
    int signal = 0;  ///< the signal that ended the command; 0: none
    /// The lock file was damaged while the command ran, so another process may have held the lock
    /// at the same time.
    bool was_lock_damaged = false;
};

}  // namespace sluice::cli

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sluice/cli/lock/front_process.hpp"

namespace sluice::cli {

/// A command to run under a lock that this process holds.
struct held_command {
    std::vector<std::string> words;  ///< not empty
    std::vector<int> inherited;      ///< descriptors that keep the lock; the command inherits them
    bool owner_died = false;         ///< sets SLUICE_LOCK_OWNER_DIED in the environment
    /// Descriptors that were open before the lock was: those of the caller, which
    /// the command inherits.
    std::vector<int> foreign;
};

/// The processes that the lock outlives.
enum class hold_until : bool {
    command_exits,
    descendants_exit,  ///< the command and all its descendants, whatever their session or parent
};

/// The lock of a holder.
struct held_lock {
    std::function<bool()> is_intact;  ///< returns whether no sign was found that another process
                                      ///< holds it as well
    std::function<void()> release;    ///< called once, when the lock is no longer needed
};

/// In the holder process: runs the command, forwards signals to it, and releases the lock when it
/// is no longer needed. Returns the outcome of the command if no descendant is left by then;
/// otherwise it reports the outcome at once, and ends the process after the last descendant has
/// exited. The outcome includes whether the lock was intact when the command exited.
///
/// Blocks all signals except those that it forwards, and SIGBUS, which a mapped lock file needs.
/// Detaches itself from the caller's standard streams and other descriptors as soon as the command
/// runs, so that no process waits for the end of a pipe that only this process has open.
[[nodiscard]] command_outcome run_held(const held_command& command, hold_until until, const held_lock& lock,
                                       const outcome_report& report);

/// Replaces this process by the command. Returns the exit status if that fails.
[[nodiscard]] int become(const held_command& command);

/// Returns the descriptors that are open now. Empty if /proc cannot be read.
[[nodiscard]] std::vector<int> open_descriptors();

}  // namespace sluice::cli

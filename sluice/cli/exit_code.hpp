#pragma once

namespace sluice::cli {

/// What the program returns to the shell. Scripts rely on these numbers: they never change meaning.
enum class exit_code : int {
    success = 0,
    failure = 1,  // the command was understood and could not be done; standard error says why
    usage = 2,    // the command line was not understood; nothing was done
    damaged = 4,  // of `sluice fat check` and `repair`: the volume is not sound, or could not be made so
    // Of `sluice lock`, which returns the status of the command that it runs, and otherwise what flock(1)
    // returns:
    lock_usage = 64,          // the command line was not understood
    lock_data = 65,           // the descriptor or file cannot be locked
    lock_no_input = 66,       // the file cannot be opened
    command_not_run = 69,     // the command was not found, or cannot be executed
    lock_system = 71,         // of memory or processes there are too few
    lock_cannot_create = 73,  // the file cannot be created
};

/// Ends the running command with `code`; a command that simply returns ends with success. Call it from the
/// command's callback, when everything the command owns has been released.
[[noreturn]] void leave(exit_code code);

}  // namespace sluice::cli

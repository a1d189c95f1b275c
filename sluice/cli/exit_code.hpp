#pragma once

#include <string>

namespace sluice::cli {

/// The exit status of the program. Scripts rely on these numbers: their meaning never changes.
enum class exit_code : int {
    success = 0,
    failure = 1,  // the command failed; standard error has the reason
    usage = 2,    // the command line is invalid; the command did not start
    damaged = 4,  // `sluice fat check` and `repair`: the volume is damaged, or could not be
                  // repaired; `sluice streams check`: there are problems to repair
    // `sluice lock` returns the status of the command that it runs; otherwise the codes of
    // flock(1):
    lock_usage = 64,          // the command line is invalid
    lock_data = 65,           // the descriptor or file cannot be locked
    lock_no_input = 66,       // the file cannot be opened
    command_not_run = 69,     // the command was not found, or cannot be executed
    lock_system = 71,         // there is not enough memory, or there are too many processes
    lock_cannot_create = 73,  // the file cannot be created
};

/// Ends the running command with `code`; a command that simply returns ends with success. Call it
/// from the command's callback, when everything the command owns has been released.
[[noreturn]] void leave(exit_code code);

/// Ends the running command with exit_code::usage: prints the reason and the usage line of the
/// command. For a command line that only the command itself can judge. Call it as leave().
[[noreturn]] void refuse_usage(const std::string& why);

}  // namespace sluice::cli

#pragma once

namespace sluice::cli {

/// What the program returns to the shell. Scripts rely on these numbers: they never change meaning.
enum class exit_code : int {
    success = 0,
    failure = 1,  // the command was understood and could not be done; standard error says why
    usage = 2,    // the command line was not understood; nothing was done
    damaged = 4,  // of `sluice fat check` and `repair`: the volume is not sound, or could not be made so
    // Of `sluice lock`, beside the status of the command it runs:
    not_granted = 75,         // not in time; nothing was run
    command_not_run = 126,    // as a shell says it
    command_not_found = 127,  // as a shell says it
};

/// Ends the running command with `code`; a command that simply returns ends with success. Call it from the
/// command's callback, when everything the command owns has been released.
[[noreturn]] void leave(exit_code code);

}  // namespace sluice::cli

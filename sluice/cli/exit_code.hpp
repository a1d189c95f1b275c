#pragma once

namespace sluice::cli {

/// What the program returns to the shell. Scripts rely on these numbers: they never change meaning.
enum class exit_code : int {
    success = 0,
    failure = 1,  // the command was understood and could not be done; standard error says why
    usage = 2,    // the command line was not understood; nothing was done
};

/// Ends the running command with `code`; a command that simply returns ends with success. Call it from the
/// command's callback, when everything the command owns has been released.
[[noreturn]] void leave(exit_code code);

}  // namespace sluice::cli

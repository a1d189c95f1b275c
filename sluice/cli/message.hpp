#pragma once

#include <string>
#include <string_view>

#include "sluice/base/error.hpp"

namespace sluice::cli {

// Messages to the user of the program: one line of standard error each, `COMMAND: WHY`. COMMAND is
// the command as the user typed it, such as "sluice fat get". WHY has the subject, the operation
// that failed, the reason, and the remedy: "disk.img: open: No such file or directory". It may
// contain names of files and text of servers: it is printed safe for a terminal
// (terminal_text.hpp), which also keeps it in one line. errors/README.md has the form and the test
// of these messages.
//
// Thread safety: all functions from any thread, except set_command_of_messages(), which the main
// thread calls before there are others. Allocates: the line.

/// Sets the command that begins each message; "sluice" before that.
void set_command_of_messages(std::string command);

/// Prints the reason why something has failed.
void print_error(std::string_view why);
/// Prints a problem that does not change the exit status.
void warn(std::string_view why);

/// Returns "SUBJECT: open: No such file or directory", instead of the subject that the error has.
/// For an error about a descriptor or a part of the path, which the user has not named.
[[nodiscard]] std::string about(std::string_view subject, const error& why);

/// Returns "open: No such file or directory", after the path if the error has one, and without the
/// number of a descriptor, which the user does not know.
[[nodiscard]] std::string reason_of(const error& why);

/// Prints the reason and ends the command with exit_code::failure, as leave() does.
[[noreturn]] void fail(std::string_view why);

}  // namespace sluice::cli

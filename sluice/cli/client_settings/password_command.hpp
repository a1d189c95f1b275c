#pragma once

#include <expected>
#include <string>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/cli/password.hpp"

namespace sluice::cli {

/// The user and the server that a password belongs to.
struct password_owner {
    std::string host;
    std::string user;
};

/// The time in which a program must return the password. It may ask the user to unlock a keyring.
inline constexpr std::chrono::seconds password_command_time_max{120};

/// Runs a program that prints a password, such as a client of a keyring, and returns the first
/// line of its output. The program is looked up in PATH, and no shell is used. Its standard input
/// is empty; SLUICE_HOST and SLUICE_USER in its environment name the server and the user.
///
/// Errors: a text: a program that does not start, fails, prints nothing or a line of more than
/// secret_text::bytes_max, or does not end in time. It is killed then.
/// Allocates: yes. Blocks: until the program has ended, at most for `time_max`.
/// Thread safety: not while another thread changes the environment.
[[nodiscard]] std::expected<secret_text, std::string> password_of_command(
    const std::vector<std::string>& command, const password_owner& owner,
    std::chrono::milliseconds time_max = password_command_time_max);

}  // namespace sluice::cli

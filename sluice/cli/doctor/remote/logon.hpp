#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/doctor/finding.hpp"
#include "sluice/cli/doctor/remote/target.hpp"
#include "sluice/io/call/socket_address.hpp"
#include "sluice/smb/auth/logon/ntlm_initiator.hpp"
#include "sluice/smb/client/client_error.hpp"

namespace sluice::cli::doctor {

/// The outcome of a logon and of the steps after it. A step that was not reached has no value.
struct logon_facts {
    std::optional<smb::client::client_error> connection;  ///< why there is no connection
    std::optional<smb::client::client_error> logon;       ///< why there is no session
    std::optional<smb::client::client_error> echo;        ///< why the server does not answer ECHO
    std::optional<smb::client::client_error> share;       ///< why the share cannot be used
    std::optional<smb::client::client_error> file;        ///< why the file cannot be read
    bool is_logged_on = false;
    bool is_share_connected = false;
    bool is_encrypted = false;
    std::vector<std::string> interfaces;            ///< that the server reports for multichannel
    std::vector<std::chrono::microseconds> echoes;  ///< round trips
    std::uint64_t read_bytes = 0;
    std::chrono::microseconds read_took{0};
};

/// Logs on to the server, connects to the share of the target if it names one, measures round
/// trips, and reads at most 16 MiB or for 2 s from the file that it names. Changes nothing on the
/// server. `signs`: signing is required of the server. Blocks: each step for a few seconds at most;
/// a server that sends slowly can take longer, so that the caller needs a deadline of its own.
[[nodiscard]] logon_facts log_on_to(const remote_target& target, const io::socket_address& address,
                                    const smb::auth::credentials& who, bool signs);

/// The entry of a refused user in the users file of a server on this host.
enum class known_account : std::uint8_t {
    unknown,         ///< the file cannot be read, or the server is on another host
    missing,         ///< the file does not have the user
    wrong_password,  ///< it has the user, with another password
    same_password,   ///< it has the user with this password
};

/// Compares with a users file, which only its owner and root can read. An empty path: the default.
[[nodiscard]] known_account account_in_file(const std::string& users_file, const smb::auth::credentials& who);

/// Returns the findings about a logon. Pure function.
[[nodiscard]] std::vector<finding> judge_logon(const remote_target& target, const logon_facts& seen,
                                               known_account account);

/// Returns the findings about the measured times. Pure function.
[[nodiscard]] std::vector<finding> judge_speed(const logon_facts& seen);

/// Returns the findings about logons without a password. `seen`: the outcome of each; if the target
/// has a share, they have tried it. Pure function.
[[nodiscard]] std::vector<finding> judge_open_access(const remote_target& target,
                                                     const logon_facts& anonymous, const logon_facts& guest);

}  // namespace sluice::cli::doctor

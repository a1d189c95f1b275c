#pragma once

#include <string>
#include <vector>

#include "sluice/cli/serve/listening.hpp"
#include "sluice/cli/serve/serve_options.hpp"

namespace sluice::cli {

/// The facts that a new user must know when the server starts.
struct banner_facts {
    std::string program;  // its path
    std::string server_name;
    std::vector<share_options> shares;   // with their names
    std::vector<std::string> addresses;  // hosts others can reach, best first; never empty
    std::vector<std::string> listening;  // address and port of each listener
    std::uint16_t port = 445;
    listening_choice choice = listening_choice::as_given;
    std::vector<std::string> users;
    std::string fresh_password;      // password of the first user, if it was generated now
    bool users_are_for_now = false;  // named with their passwords on the command line
    std::string users_file;
    std::string discovery{};  // where the server can be found, or why not
    std::string metrics{};    // where they are served; empty: metrics are off
    std::string web{};        // where the page is served; empty: it is off
    std::string multiplexer;  // which, and why
    std::string runs_as;      // the account files are used with
    std::string hardening{};  // lines about the measures that are active, and those that are not
    bool allows_guests = false;
    bool guests_write = false;  // where the share has no setting of its own
    bool requires_signing = true;
    bool encrypts = false;
};

/// Returns the text printed at start: the shares, the users, and the command to mount a share on
/// each system.
[[nodiscard]] std::string banner_text(const banner_facts& facts);

}  // namespace sluice::cli

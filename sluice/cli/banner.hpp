#pragma once

#include <string>
#include <vector>

#include "sluice/cli/serve_options.hpp"

namespace sluice::cli {

/// What the newcomer must know once the server runs.
struct banner_facts {
    std::string program;  // its path
    std::string server_name;
    std::vector<share_options> shares;   // with their names
    std::vector<std::string> addresses;  // hosts others can reach, best first; never empty
    std::vector<std::string> listening;  // address and port of each listener
    std::uint16_t port = 445;
    bool is_fallback_port = false;  // 445 was not to be had
    std::vector<std::string> users;
    std::string fresh_password;      // of the first user, if it was made now
    bool users_are_for_now = false;  // named with their passwords on the command line
    std::string users_file;
    std::string metrics{};    // where they are to be had; empty: nowhere
    std::string multiplexer;  // which, and why
    std::string runs_as;      // the account files are used with
    std::string hardening{};  // lines about the measures that are active, and those that are not
    bool allows_guests = false;
    bool insists_on_signing = true;
    bool encrypts = false;
};

/// The text printed at start: what is served, to whom, and the line to type on each system.
[[nodiscard]] std::string banner_text(const banner_facts& facts);

}  // namespace sluice::cli

#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cli/doctor/finding.hpp"
#include "sluice/cli/doctor/remote/negotiation.hpp"
#include "sluice/cli/doctor/remote/target.hpp"
#include "sluice/smb/auth/logon/ntlm_initiator.hpp"

namespace sluice::cli::doctor {

/// The knowledge of the checks of a server. Each check adds its results. A value of the thread of
/// the checks.
struct remote_state {
    remote_target target{};
    smb::auth::credentials who{};  ///< with an empty user: no logon
    std::string users_file{};      ///< if the server runs on this host; empty: the default
    std::chrono::steady_clock::time_point until{};
    system_random random{};

    std::vector<io::socket_address> addresses{};
    std::optional<io::socket_address> working{};  ///< the first address that accepts connections
    negotiation protocol{};
};

/// A check of a server: its name for the progress line, and the function, which adds its findings
/// and does nothing if it lacks the result of an earlier one.
struct remote_check {
    const char* name;
    void (*run)(remote_state&, finding_list&);
};

/// Returns all checks, in order.
[[nodiscard]] std::span<const remote_check> remote_checks() noexcept;

/// Runs all checks. Blocks: for about 25 s at most, if the server answers slowly; the caller needs
/// a deadline of its own.
void check_server(remote_state& state, finding_list& into);

}  // namespace sluice::cli::doctor

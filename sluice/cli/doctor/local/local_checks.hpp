#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/cli/doctor/finding.hpp"
#include "sluice/cli/doctor/local/access_walk.hpp"
#include "sluice/cli/serve/serve_options.hpp"

namespace sluice::cli::doctor {

/// A server that answered on its status socket.
struct running_server {
    std::uint64_t process = 0;
    std::string name;
    std::vector<std::string> addresses;  ///< "ADDRESS:PORT"
    std::vector<std::string> paths;      ///< the directories of its shares
};

/// The subject of the checks of this host, and their results for each other. A value of the thread
/// of the checks.
struct local_state {
    serve_options options;      ///< from the configuration; defaults without one
    std::string configuration;  ///< its path; empty: none
    bool writes = false;        ///< may write a small temporary file into each share
    std::vector<running_server> servers{};
    server_account account{};  ///< that a server runs with; this process's if none runs

    /// Returns the port of the configuration, or 445.
    [[nodiscard]] std::uint16_t port() const noexcept { return options.port == 0 ? 445 : options.port; }
};

/// A check of this host: its name for the progress line, the function, and whether it is cheap: it
/// takes at most a few milliseconds, connects to no address and touches no file of a share.
struct local_check {
    const char* name;
    void (*run)(local_state&, finding_list&);
    bool is_cheap;
};

/// Returns all checks, in order.
[[nodiscard]] std::span<const local_check> local_checks() noexcept;

/// Runs all checks. Blocks: as long as the file systems of the shares do; the caller needs a
/// deadline.
void check_host(local_state& state, finding_list& into);

/// Returns the findings of the cheap checks, for the status page of a server. `addresses`: those at
/// which this process listens, as ADDRESS:PORT, so that its own port is not reported as in use.
/// Facts that a confined server may not read are omitted. Thread safety: any thread. Blocks:
/// briefly, for files in /proc and /sys and for the users file; not on an event loop.
[[nodiscard]] std::vector<finding> findings(const serve_options& options,
                                            const std::vector<std::string>& addresses);

// The checks, in the order of the table.
void check_servers(local_state& state, finding_list& into);
void check_port(local_state& state, finding_list& into);
void check_own_addresses(local_state& state, finding_list& into);
void check_firewall(local_state& state, finding_list& into);
void check_users(local_state& state, finding_list& into);
void check_limits(local_state& state, finding_list& into);
void check_io_uring(local_state& state, finding_list& into);
void check_confinement(local_state& state, finding_list& into);
void check_cpu(local_state& state, finding_list& into);
void check_pressure(local_state& state, finding_list& into);
void check_network(local_state& state, finding_list& into);
void check_clock(local_state& state, finding_list& into);
void check_own_name(local_state& state, finding_list& into);
void check_unit(local_state& state, finding_list& into);
void check_shares(local_state& state, finding_list& into);

}  // namespace sluice::cli::doctor

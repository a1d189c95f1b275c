#include "sluice/cli/doctor/local/local_checks.hpp"

#include <unistd.h>

#include <array>

namespace sluice::cli::doctor {
namespace {

constexpr std::array checks{
    local_check{.name = "running servers", .run = check_servers, .is_cheap = false},
    local_check{.name = "port", .run = check_port, .is_cheap = true},
    local_check{.name = "own addresses", .run = check_own_addresses, .is_cheap = false},
    local_check{.name = "firewall", .run = check_firewall, .is_cheap = true},
    local_check{.name = "users file", .run = check_users, .is_cheap = true},
    local_check{.name = "limits of the process", .run = check_limits, .is_cheap = true},
    local_check{.name = "io_uring", .run = check_io_uring, .is_cheap = true},
    local_check{.name = "confinement", .run = check_confinement, .is_cheap = true},
    local_check{.name = "CPU", .run = check_cpu, .is_cheap = true},
    local_check{.name = "disk pressure", .run = check_pressure, .is_cheap = true},
    local_check{.name = "network settings", .run = check_network, .is_cheap = true},
    local_check{.name = "clock", .run = check_clock, .is_cheap = true},
    local_check{.name = "own name", .run = check_own_name, .is_cheap = false},
    local_check{.name = "systemd unit", .run = check_unit, .is_cheap = true},
    // The last, because a file system that hangs ends the run.
    local_check{.name = "shares", .run = check_shares, .is_cheap = false},
};

}  // namespace

std::span<const local_check> local_checks() noexcept {
    return checks;
}

void check_host(local_state& state, finding_list& into) {
    for (const local_check& each : local_checks()) {
        into.begin(each.name);
        each.run(state, into);
    }
}

std::vector<finding> findings(const serve_options& options, const std::vector<std::string>& addresses) {
    local_state state{.options = options, .configuration = {}};
    if (not addresses.empty())
        state.servers.push_back({.process = static_cast<std::uint64_t>(::getpid()),
                                 .name = options.name,
                                 .addresses = addresses,
                                 .paths = {}});
    state.account = server_account::of_this_process();
    finding_list found;
    for (const local_check& each : local_checks())
        if (each.is_cheap) each.run(state, found);
    return found.findings();
}

}  // namespace sluice::cli::doctor

#include "sluice/cli/doctor/remote/remote_checks.hpp"

#include <algorithm>
#include <array>

#include "sluice/cli/doctor/remote/logon.hpp"
#include "sluice/cli/doctor/remote/reach.hpp"
#include "sluice/cli/doctor/remote/resolution.hpp"
#include "sluice/cli/serve/interfaces.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr std::chrono::milliseconds lookup_within{5'000};
constexpr std::chrono::milliseconds connect_within{3'000};
constexpr std::size_t addresses_max = 4;

void add_all(std::vector<finding> found, finding_list& into) {
    for (finding& one : found)
        into.add(std::move(one));
}

void check_name(remote_state& state, finding_list& into) {
    const resolution seen = resolve_within(state.target.host, state.target.port, lookup_within);
    add_all(judge_resolution(state.target.host, seen, resolver_files::of_this_host()), into);
    state.addresses = seen.addresses;
    // Each address costs up to connect_within.
    if (state.addresses.size() > addresses_max)
        state.addresses.erase(state.addresses.begin() + addresses_max, state.addresses.end());
}

void check_connection(remote_state& state, finding_list& into) {
    if (state.addresses.empty()) return;
    std::vector<connect_attempt> attempts;
    path_figures figures;
    for (const io::socket_address& address : state.addresses) {
        io::socket_handle connected;
        attempts.push_back(try_connect(address, connect_within, connected));
        if (attempts.back().code != 0 or state.working) continue;
        state.working = address;
        figures = figures_of(connected);
    }
    add_all(judge_attempts(state.target.host, state.target.port, attempts), into);
    if (state.working) add_all(judge_path(figures), into);
}

void check_protocol(remote_state& state, finding_list& into) {
    if (not state.working) return;
    state.protocol = negotiate_with(*state.working, state.random, state.until);
    add_all(judge_protocol(state.target.port, state.protocol), into);
    add_all(judge_negotiation(state.protocol, std::chrono::system_clock::now()), into);
    add_all(judge_clients(state.protocol), into);
}

[[nodiscard]] bool is_this_host(const io::socket_address& address) {
    const auto own = own_addresses();
    return std::ranges::any_of(own, [&](const std::string& text) {
        const auto each = io::socket_address::ip(text, address.port());
        return each and each->ip_bytes() == address.ip_bytes();
    });
}

void check_logon(remote_state& state, finding_list& into) {
    if (not state.protocol.is_smb2() or state.who.user.empty()) return;
    const logon_facts seen = log_on_to(state.target, *state.working, state.who, true);
    const bool is_refused = seen.logon and seen.logon->status() == smb::wire::nt_status::logon_failure;
    const known_account account = is_refused and is_this_host(*state.working)
                                      ? account_in_file(state.users_file, state.who)
                                      : known_account::unknown;
    add_all(judge_logon(state.target, seen, account), into);
    add_all(judge_speed(seen), into);
}

void check_open_access(remote_state& state, finding_list& into) {
    if (not state.protocol.is_smb2()) return;
    remote_target without_file = state.target;
    without_file.path.clear();
    const auto who = [&](const char* user, bool has_password) {
        smb::auth::credentials made{.user = user,
                                    .domain = {},
                                    .workstation = {},
                                    .target_name = "cifs/" + state.target.host,
                                    .hash = {}};
        if (has_password)
            if (auto hash = smb::auth::nt_hash::of_password(""); hash) made.hash = std::move(*hash);
        return made;
    };
    const logon_facts anonymous = log_on_to(without_file, *state.working, who("", false), false);
    const logon_facts guest = log_on_to(without_file, *state.working, who("Guest", true), false);
    add_all(judge_open_access(state.target, anonymous, guest), into);
}

constexpr std::array checks{remote_check{.name = "name resolution", .run = check_name},
                            remote_check{.name = "connection", .run = check_connection},
                            remote_check{.name = "protocol", .run = check_protocol},
                            remote_check{.name = "logon", .run = check_logon},
                            remote_check{.name = "logons without a password", .run = check_open_access}};

}  // namespace

std::span<const remote_check> remote_checks() noexcept {
    return checks;
}

void check_server(remote_state& state, finding_list& into) {
    for (const remote_check& each : remote_checks()) {
        into.begin(each.name);
        each.run(state, into);
    }
}

}  // namespace sluice::cli::doctor

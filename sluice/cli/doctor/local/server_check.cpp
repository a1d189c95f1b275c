// The servers of this host, whether they answer at the addresses of this host, and signs of a
// firewall.

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "sluice/cli/doctor/local/local_checks.hpp"
#include "sluice/cli/doctor/local/proc_text.hpp"
#include "sluice/cli/doctor/remote/reach.hpp"
#include "sluice/cli/doctor/text_file.hpp"
#include "sluice/cli/serve/interfaces.hpp"
#include "sluice/cli/status/json_value.hpp"
#include "sluice/cli/status/status_socket.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr std::chrono::milliseconds connect_within{1'000};
constexpr std::size_t addresses_max = 8;
constexpr std::size_t sockets_max = 16;

// The sockets of this account. Root also asks the server of the Debian package, whose directory
// belongs to the account `sluice`.
[[nodiscard]] std::vector<std::string> sockets_to_ask(const serve_options& options) {
    std::vector<std::string> found = status_sockets();
    if (not options.status_socket.empty()) found.insert(found.begin(), options.status_socket);
    std::error_code unreadable;
    if (::geteuid() == 0 and found.empty())
        for (const auto& entry : std::filesystem::directory_iterator("/run/sluice", unreadable))
            if (entry.path().extension() == ".sock") found.push_back(entry.path().string());
    if (found.size() > sockets_max) found.resize(sockets_max);
    return found;
}

[[nodiscard]] bool is_loopback(const io::socket_address& address) {
    const auto own = io::socket_address::loopback_v4(address.port()).ip_bytes();
    return address.ip_bytes() == own or
           address.ip_bytes() == io::socket_address::loopback_v6(address.port()).ip_bytes();
}

// Returns the addresses at which the servers say that they listen; for a listener at all addresses,
// those of this host.
[[nodiscard]] std::vector<io::socket_address> addresses_to_try(const std::vector<running_server>& servers) {
    std::vector<io::socket_address> found;
    for (const running_server& server : servers)
        for (const std::string& text : server.addresses) {
            const auto listening = io::socket_address::parse(text);
            if (not listening) continue;
            const bool is_any = *listening == io::socket_address::any_v4(listening->port()) or * listening ==
                                io::socket_address::any_v6(listening->port());
            if (not is_any) found.push_back(*listening);
            if (is_any)
                for (const std::string& own : own_addresses())
                    if (const auto each = io::socket_address::ip(own, listening->port()); each)
                        found.push_back(*each);
        }
    if (found.size() > addresses_max) found.resize(addresses_max);
    return found;
}

// Root may check the configuration of a service that does not run. Then the rights of its account
// matter, not those of root.
void use_account_of_unit(local_state& state, finding_list& into) {
    if (::geteuid() != 0) return;
    for (const char* const directory :
         {"/etc/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system"}) {
        const std::string path = fmt::format("{}/sluice.service", directory);
        const std::string user = parse_unit_user(text_of_file(path), state.configuration);
        const auto known = user.empty() ? std::nullopt : server_account::user_id_of(user);
        if (not known) continue;
        state.account = server_account::of_user(*known);
        into.note("server", fmt::format("rights are checked for the account '{}' of the service", user),
                  path);
        return;
    }
}

}  // namespace

void check_servers(local_state& state, finding_list& into) {
    for (const std::string& path : sockets_to_ask(state.options)) {
        const auto answer = ask_server(path, "status\n");
        if (not answer) continue;
        const auto document = json_value::parse(*answer);
        if (not document or (*document)["format"].text() != "sluice-status") continue;
        running_server server{.process = (*document)["program"]["pid"].count(),
                              .name = (*document)["server"]["name"].text(),
                              .addresses = {},
                              .paths = {}};
        for (const json_value& each : (*document)["server"]["addresses"].elements())
            server.addresses.push_back(each.text());
        for (const json_value& each : (*document)["shares"].elements())
            server.paths.push_back(each["source"].text());
        into.note("server",
                  fmt::format("the server '{}' is running (process {})", server.name, server.process),
                  fmt::format("it listens at {}", fmt::join(server.addresses, ", ")));
        state.servers.push_back(std::move(server));
    }
    if (state.servers.empty()) {
        const std::string start = state.configuration.empty()
                                      ? "sluice serve DIRECTORY"
                                      : "sluice serve --config " + shell_word(state.configuration);
        into.add({.level = severity::problem,
                  .check = "server",
                  .what = "no server of this account is running",
                  .evidence = fmt::format("no server answers on a status socket in {}", status_directory()),
                  .remedy = start + "; or of the Debian package: systemctl start sluice"});
        use_account_of_unit(state, into);
        return;
    }
    const auto status = text_of_file(fmt::format("/proc/{}/status", state.servers.front().process));
    if (const auto user = parse_user_id(status); user) state.account = server_account::of_user(*user);
}

void check_own_addresses(local_state& state, finding_list& into) {
    std::vector<connect_attempt> attempts;
    bool is_reachable = false;
    std::uint16_t port = 0;
    for (const io::socket_address& address : addresses_to_try(state.servers)) {
        io::socket_handle connected;
        attempts.push_back(try_connect(address, connect_within, connected));
        is_reachable |= not is_loopback(address);
        port = address.port();
    }
    if (attempts.empty()) return;
    for (finding& one : judge_attempts("this host", port, attempts))
        into.add(std::move(one));
    if (not is_reachable)
        into.add(
            {.level = severity::warning,
             .check = "connection",
             .what =
                 "the server can only be reached from this host, because it listens at the loopback address, "
                 "or this host has no other address",
             .evidence = attempts.front().address,
             .remedy = "sluice serve --listen ::"});
}

void check_firewall(local_state& state, finding_list& into) {
    const std::string modules = text_of_file("/proc/modules", 1U << 20);
    std::vector<std::string> signs;
    for (const std::string_view line : lines_of(modules)) {
        const auto words = words_of(line);
        if (words.size() > 2 and (words[0] == "nf_tables" or words[0] == "ip_tables") and words[2] != "0")
            signs.emplace_back(words[0]);
    }
    if (not trimmed(text_of_file("/proc/net/ip_tables_names")).empty()) signs.emplace_back("iptables");
    if (signs.empty()) return;
    into.note(
        "firewall",
        fmt::format(
            "a packet filter may be active; if other hosts cannot connect, permit the port: nft add rule "
            "inet filter input tcp dport {} accept",
            state.port()),
        fmt::format("in use: {}; 'nft list ruleset' as root lists its rules", fmt::join(signs, ", ")));
}

}  // namespace sluice::cli::doctor

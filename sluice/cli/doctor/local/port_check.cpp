// The port: which program has it, and whether this account may use it.

#include <dirent.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "sluice/cli/doctor/local/local_checks.hpp"
#include "sluice/cli/doctor/local/port_owner.hpp"
#include "sluice/cli/doctor/text_file.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr const char* check = "port";
constexpr std::size_t listing_bytes_max = 1U << 20;
constexpr std::size_t processes_max = 100'000;

[[nodiscard]] std::optional<std::uint32_t> process_number(const std::string& name) noexcept {
    std::uint32_t number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code != std::errc() or end != name.data() + name.size()) return std::nullopt;
    return number;
}

[[nodiscard]] bool has_socket(const std::string& descriptors, std::uint64_t inode) {
    std::error_code failed;
    for (std::filesystem::directory_iterator at(descriptors, failed), end; not failed and at != end;
         at.increment(failed)) {
        std::array<char, 64> link{};
        const ssize_t size = ::readlink(at->path().c_str(), link.data(), link.size());
        if (size > 0 and parse_socket_link({link.data(), static_cast<std::size_t>(size)}) == inode)
            return true;
    }
    return false;
}

[[nodiscard]] finding taken(const port_facts& seen) {
    const std::string owner = seen.owner.name.empty()
                                  ? fmt::format("a program of the account {} that this account cannot see",
                                                seen.listeners.front().user_id)
                                  : fmt::format("{} (process {})", seen.owner.name, seen.owner.process);
    const bool is_samba = seen.owner.name == "smbd";
    return {.level = severity::problem,
            .check = check,
            .what = fmt::format("port {} is in use by another program: {}", seen.port, owner),
            .evidence = seen.listeners.front().is_loopback ? "it listens on the loopback address" : "",
            .remedy = is_samba
                          ? "systemctl disable --now smbd; or choose another port: sluice serve --port 1445"
                          : fmt::format("stop that program (ss -tlnp 'sport = :{}'), or choose another port: "
                                        "sluice serve --port 1445",
                                        seen.port)};
}

}  // namespace

port_owner owner_of_socket(std::uint64_t inode) {
    std::error_code failed;
    std::size_t count = 0;
    for (std::filesystem::directory_iterator at("/proc", failed), end;
         not failed and at != end and count != processes_max; at.increment(failed), ++count) {
        const auto process = process_number(at->path().filename().string());
        if (not process or not has_socket(at->path().string() + "/fd", inode)) continue;
        const std::string name = text_of_file(at->path().string() + "/comm");
        return {.process = *process, .name = std::string(trimmed(name))};
    }
    return {};
}

std::vector<finding> judge_port(const port_facts& seen) {
    if (not seen.listeners.empty() and not seen.is_of_sluice and seen.owner.name != "sluice")
        return {taken(seen)};
    if (not seen.listeners.empty()) {
        const bool is_local = std::ranges::all_of(seen.listeners, &tcp_listener::is_loopback);
        if (not is_local)
            return {{.level = severity::note,
                     .check = check,
                     .what = fmt::format("sluice listens on port {}", seen.port),
                     .evidence = "",
                     .remedy = {}}};
        return {{.level = severity::problem,
                 .check = check,
                 .what = fmt::format(
                     "the server listens on port {} of the loopback address only, so that other hosts "
                     "cannot connect",
                     seen.port),
                 .evidence = "",
                 .remedy = "sluice serve --listen ::"}};
    }
    if (seen.is_root or seen.port >= seen.first_free_port)
        return {{.level = severity::note,
                 .check = check,
                 .what = fmt::format("port {} is free", seen.port),
                 .evidence = "",
                 .remedy = {}}};
    return {{.level = severity::warning,
             .check = check,
             .what = fmt::format(
                 "port {} is free, but this account may not use it; 'sluice serve' then uses 1445, "
                 "which Windows before 11 24H2 cannot connect to",
                 seen.port),
             .evidence = fmt::format("net.ipv4.ip_unprivileged_port_start is {}", seen.first_free_port),
             .remedy = fmt::format(
                 "sysctl -w net.ipv4.ip_unprivileged_port_start={}; or let systemd start the server "
                 "with AmbientCapabilities=CAP_NET_BIND_SERVICE",
                 seen.port)}};
}

void check_port(local_state& state, finding_list& into) {
    port_facts facts{.port = state.port(), .listeners = {}, .owner = {}};
    for (const char* const path : {"/proc/net/tcp", "/proc/net/tcp6"})
        for (const tcp_listener& one : parse_listeners(text_of_file(path, listing_bytes_max)))
            if (one.port == facts.port) facts.listeners.push_back(one);
    const std::string suffix = ":" + std::to_string(facts.port);
    for (const running_server& server : state.servers)
        facts.is_of_sluice |= std::ranges::any_of(
            server.addresses, [&](const std::string& address) { return address.ends_with(suffix); });
    // This reads all of /proc, and is needed only for another program.
    if (not facts.listeners.empty() and not facts.is_of_sluice)
        facts.owner = owner_of_socket(facts.listeners.front().inode);
    // The account of a service gets the permission from its unit.
    facts.is_root = state.account.user_id == 0 or ::geteuid() == 0;
    const auto first = parse_numbers(text_of_file("/proc/sys/net/ipv4/ip_unprivileged_port_start"));
    if (not first.empty() and first.front() <= 65535)
        facts.first_free_port = static_cast<std::uint16_t>(first.front());
    // Other ports of running servers are their own affair, unless a configuration names this one.
    const bool is_elsewhere =
        facts.listeners.empty() and not state.servers.empty() and state.configuration.empty();
    if (is_elsewhere) return;
    for (finding& one : judge_port(facts))
        into.add(std::move(one));
}

}  // namespace sluice::cli::doctor

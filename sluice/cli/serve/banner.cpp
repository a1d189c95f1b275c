#include "sluice/cli/serve/banner.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace sluice::cli {

namespace {

[[nodiscard]] std::string shares_text(const banner_facts& facts) {
    std::string text;
    for (const share_options& share : facts.shares) {
        if (share.is_home) continue;
        text += fmt::format("  {:<16} {}{}{}\n", share.name,
                            share.referral.empty() ? share.path : referral_text(share),
                            share.read_only ? "  (read-only)" : "", share.encrypt ? "  (encrypted)" : "");
    }
    if (facts.homes.empty()) return text;
    const auto users = std::ranges::count(facts.shares, true, &share_options::is_home);
    text += fmt::format("  {:<16} {}  ({} user{}{})\n", "homes", facts.homes, users, users == 1 ? "" : "s",
                        facts.homes_are_read_only ? ", read-only" : "");
    return text;
}

constexpr std::size_t names_max = 20;

[[nodiscard]] std::string names_text(const std::vector<std::string>& users) {
    if (users.size() <= names_max + 1) return fmt::format("{}", fmt::join(users, ", "));
    const std::span first(users.begin(), names_max);
    return fmt::format("{}, and {} others", fmt::join(first, ", "), users.size() - names_max);
}

[[nodiscard]] std::string users_text(const banner_facts& facts) {
    std::string text;
    if (facts.fresh_password.empty()) {
        text = fmt::format("User        {}\n", names_text(facts.users));
        text += facts.users_are_for_now
                    ? "            with the password from the command line, until the server stops\n"
                    : "            with the password set earlier; change it with 'sluice user passwd NAME'\n";
    } else {
        text = fmt::format("User        {}\nPassword    {}\n", facts.users.front(), facts.fresh_password);
        text += fmt::format("            newly generated and shown only once; its hash is stored in {}\n",
                            facts.users_file);
    }
    if (facts.allows_guests)
        text += fmt::format(
            "            anonymous logons are accepted, without signing and encryption, {}\n",
            facts.guests_write ? "and may change files" : "to read only unless a share says otherwise");
    return text;
}

[[nodiscard]] std::string mount_text(const banner_facts& facts) {
    const std::string& host = facts.addresses.front();
    const std::string& user = facts.users.front();
    const bool has_share = not facts.shares.empty() and not facts.shares.front().is_home;
    const std::string& share = has_share ? facts.shares.front().name : user;
    const bool is_usual = facts.port == 445;
    std::string text;
    text += fmt::format("Windows     net use Z: \\\\{}\\{} /user:{}{}\n", host, share, user,
                        is_usual ? "" : fmt::format(" /TCPPORT:{}", facts.port));
    if (not is_usual) text += "            (ports other than 445: Windows 11 24H2, Server 2025 and later)\n";
    const std::string port = is_usual ? "" : fmt::format(":{}", facts.port);
    text += fmt::format("macOS       open 'smb://{}@{}{}/{}'\n", user, host, port, share);
    text += fmt::format("Linux       sudo mount -t cifs //{}/{} /mnt -o username={}{}\n", host, share, user,
                        is_usual ? "" : fmt::format(",port={}", facts.port));
    text += fmt::format("            smbclient{} //{}/{} -U {}\n",
                        is_usual ? "" : fmt::format(" -p {}", facts.port), host, share, user);
    return text;
}

// Why the server does not listen at port 445, and how it can.
[[nodiscard]] std::string port_text(const banner_facts& facts) {
    switch (facts.choice) {
        case listening_choice::as_given:
            return "";
        case listening_choice::activated:
            return "            on sockets of the service manager\n";
        case listening_choice::port_not_free:
            return "            not at port 445, which another process uses\n";
        case listening_choice::port_not_allowed:
            return fmt::format(
                "            for port 445, run 'sudo setcap cap_net_bind_service=+ep {}' once, or set "
                "AmbientCapabilities=CAP_NET_BIND_SERVICE in a unit, or run 'sudo sysctl "
                "net.ipv4.ip_unprivileged_port_start=445'\n",
                facts.program);
    }
    return "";
}

}  // namespace

std::string banner_text(const banner_facts& facts) {
    std::string text = fmt::format("{} serves\n\n{}\n", facts.server_name, shares_text(facts));
    text += users_text(facts);
    text += '\n';
    text += mount_text(facts);
    text += fmt::format("\nListening   {}\n", fmt::join(facts.listening, ", "));
    text += port_text(facts);
    if (not facts.discovery.empty()) text += fmt::format("Discovery   {}\n", facts.discovery);
    text += fmt::format("Protection  SMB 2.0.2 to 3.1.1, {}{}\n",
                        facts.requires_signing ? "signed" : "signed on request",
                        facts.encrypts ? ", encrypted" : "; encrypted on request");
    text += fmt::format("Files       accessed as {}\n", facts.runs_as);
    text += facts.hardening;
    if (not facts.metrics.empty()) text += fmt::format("Metrics     {}\n", facts.metrics);
    if (not facts.web.empty()) text += fmt::format("Web page    {}\n", facts.web);
    text += fmt::format("I/O         {}\n", facts.multiplexer);
    return text;
}

}  // namespace sluice::cli

// The network of this host: interfaces, TCP settings, clock, own name; and the systemd unit.

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <limits.h>
#include <sys/timex.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "sluice/cli/doctor/local/local_checks.hpp"
#include "sluice/cli/doctor/local/proc_text.hpp"
#include "sluice/cli/doctor/remote/resolution.hpp"
#include "sluice/cli/doctor/text_file.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr std::size_t interfaces_max = 64;

[[nodiscard]] finding warning(std::string check, std::string what, std::string evidence, std::string remedy) {
    return {.level = severity::warning,
            .check = std::move(check),
            .what = std::move(what),
            .evidence = std::move(evidence),
            .remedy = std::move(remedy)};
}

void check_mtus(finding_list& into) {
    constexpr std::uint64_t usual = 1500;
    std::error_code failed;
    std::vector<std::string> seen;
    for (std::filesystem::directory_iterator at("/sys/class/net", failed), end;
         not failed and at != end and seen.size() != interfaces_max; at.increment(failed)) {
        const std::string name = at->path().filename().string();
        const auto mtu = parse_numbers(text_of_file(at->path().string() + "/mtu"));
        const bool is_up = trimmed(text_of_file(at->path().string() + "/operstate")) != "down";
        if (name == "lo" or mtu.empty() or not is_up) continue;
        seen.push_back(fmt::format("{}: {}", name, mtu.front()));
        if (mtu.front() < usual)
            into.add(warning(
                "network",
                fmt::format("the interface {} carries packets of at most {} bytes", name, mtu.front()),
                "usual are 1500", "if it is not a tunnel or VPN: ip link set " + name + " mtu 1500"));
    }
    if (not seen.empty())
        into.note("network", "interfaces and their MTU", fmt::format("{}", fmt::join(seen, ", ")));
}

}  // namespace

void check_network(local_state&, finding_list& into) {
    check_mtus(into);
    const std::string congestion(trimmed(text_of_file("/proc/sys/net/ipv4/tcp_congestion_control")));
    if (not congestion.empty())
        into.note("network", "TCP uses the congestion control " + congestion,
                  congestion == "bbr" ? "" : "over distant or lossy networks, bbr is often faster");
    constexpr std::uint64_t enough = 1U << 20;
    constexpr std::uint64_t huge = 256U << 20;
    const auto sizes = parse_numbers(text_of_file("/proc/sys/net/ipv4/tcp_wmem"));
    if (sizes.size() != 3) return;
    const std::string evidence = fmt::format("net.ipv4.tcp_wmem is {}", fmt::join(sizes, " "));
    const char* const remedy = "sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304'";
    if (sizes[2] < enough)
        into.add(
            warning("network",
                    "the send buffers of TCP are limited to less than 1 MiB, so that distant clients read "
                    "slowly",
                    evidence, remedy));
    if (sizes[1] > huge or sizes[2] > huge)
        into.add(warning("network",
                         "the send buffers of TCP may be huge, so that slow clients hold much memory",
                         evidence, remedy));
}

void check_clock(local_state&, finding_list& into) {
    timex state{};
    const int code = ::adjtimex(&state);
    if (code < 0) return;
    if (code == TIME_ERROR or (state.status & STA_UNSYNC) != 0)
        into.add(warning("clock",
                         "the clock is not synchronised; Kerberos rejects logons if it differs by 5 minutes",
                         "the kernel reports STA_UNSYNC", "timedatectl set-ntp true"));
    else
        into.note("clock", "the clock is synchronised",
                  fmt::format("estimated error {} ms", state.esterror / 1000));
}

void check_own_name(local_state&, finding_list& into) {
    constexpr std::chrono::milliseconds within{3'000};
    std::array<char, HOST_NAME_MAX + 1> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return;
    const resolution seen = resolve_within(name.data(), 0, within);
    if (not seen.addresses.empty()) return;
    into.add(warning("name", fmt::format("the own name '{}' of this host does not resolve", name.data()),
                     seen.is_timed_out ? "the resolver did not answer in time" : "no address",
                     fmt::format("echo '127.0.1.1 {}' >> /etc/hosts", name.data())));
}

void check_unit(local_state& state, finding_list& into) {
    std::error_code failed;
    if (not std::filesystem::exists("/run/systemd/system", failed)) return;
    std::string unit;
    for (const char* const directory :
         {"/etc/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system"})
        if (const std::string path = fmt::format("{}/sluice.service", directory);
            unit.empty() and std::filesystem::exists(path, failed))
            unit = path;
    if (unit.empty()) return;
    const bool is_enabled = std::filesystem::exists(std::filesystem::symlink_status(
        "/etc/systemd/system/multi-user.target.wants/sluice.service", failed));
    if (is_enabled)
        into.note("unit", "systemd starts the server at boot", unit);
    else
        into.add(
            warning("unit", "systemd does not start the server at boot", unit,
                    state.servers.empty() ? "systemctl enable --now sluice" : "systemctl enable sluice"));
}

}  // namespace sluice::cli::doctor

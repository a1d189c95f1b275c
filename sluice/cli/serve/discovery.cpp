#include "sluice/cli/serve/discovery.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string_view>

#include "sluice/base/random.hpp"
#include "sluice/smb/auth/hmac.hpp"

namespace sluice::cli {

std::array<std::byte, 16> discovery_identity(const serve_options& options) {
    std::array<std::byte, 16> identity;
    std::string machine;
    if (std::ifstream file("/etc/machine-id"); not(file >> machine) or machine.empty()) {
        system_random().fill(identity);
        return identity;
    }
    // The ID of the machine is confidential, so only a keyed hash of it is sent.
    const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
    const bytes_view parts[] = {bytes("sluice discovery"), bytes(options.name)};
    const auto code = smb::auth::hmac_sha256(bytes(machine)).code(parts);
    std::ranges::copy(code.view().span().first<16>(), identity.begin());
    return identity;
}

started_discovery start_discovery(const serve_options& options, const std::string& server_name,
                                  const std::array<std::byte, 16>& identity,
                                  const std::vector<io::socket_address>& listening,
                                  smb::server::event_log& log) {
    using smb::server::event_severity;
    if (not options.discovery) return {.running = nullptr, .where = "off"};
    if (listening.empty() or std::ranges::all_of(listening, discovery::is_loopback)) return {};
    discovery::advertiser::settings settings{
        .description = {.name = server_name, .port = discovery::advertised_port(listening)},
        .listening = listening,
        .identity = identity};
    std::vector<discovery::advertiser::problem> problems;
    auto started = discovery::advertiser::start(settings, problems);
    if (not started) problems.push_back({.protocol = "all", .why = started.error()});
    for (const discovery::advertiser::problem& each : problems)
        log.write(event_severity::warning, "the server does not appear in network views",
                  {{"protocol", each.protocol}, {"why", each.why.message()}});
    if (not started or *started == nullptr) return {.running = nullptr, .where = "not available"};
    const auto chosen = discovery::choose_links(discovery::read_interfaces(), listening);
    const std::string where =
        chosen.names.empty()
            ? "no private network; interfaces that appear later are used"
            : fmt::format("'{}' in the network view of computers on {} (--no-discovery: off)", server_name,
                          fmt::join(chosen.names, ", "));
    return {.running = *std::move(started), .where = where};
}

}  // namespace sluice::cli

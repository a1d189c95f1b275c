#include "sluice/cli/serve/discovery.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sluice::cli {

started_discovery start_discovery(const serve_options& options, const std::string& server_name,
                                  const std::vector<io::socket_address>& listening,
                                  smb::server::event_log& log) {
    using smb::server::event_severity;
    if (not options.discovery) return {.running = nullptr, .where = "off"};
    if (listening.empty() or std::ranges::all_of(listening, discovery::is_loopback)) return {};
    discovery::advertiser::settings settings{
        .description = {.name = server_name, .port = listening.front().port()}, .listening = listening};
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

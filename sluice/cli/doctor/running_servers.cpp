#include "sluice/cli/doctor/running_servers.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "sluice/cli/serve/server_name.hpp"
#include "sluice/cli/status/json_value.hpp"
#include "sluice/cli/status/status_socket.hpp"
#include "sluice/cli/status/status_text.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr std::size_t sockets_max = 16;
constexpr std::size_t refusals_max = 5;
constexpr const char* service_directory = "/run/sluice";

[[nodiscard]] std::vector<std::string> sockets_of_service() {
    std::vector<std::string> found;
    std::error_code failed;
    for (std::filesystem::directory_iterator at(service_directory, failed), end;
         not failed and at != end and found.size() != sockets_max; at.increment(failed))
        if (is_status_socket_name(at->path().filename().native())) found.push_back(at->path().string());
    std::ranges::sort(found);
    return found;
}

// One refusal, as in "2026-11-28T13:00:00Z from 192.0.2.7:50000: logon failed: wrong password".
[[nodiscard]] std::string refusal_line(const json_value& refusal) {
    const std::string peer = refusal["peer"].text();
    return fmt::format("{}{}: {}", refusal["at"].text(), peer.empty() ? "" : " from " + peer,
                       refusal_reason(refusal));
}

[[nodiscard]] std::optional<running_server> server_at(const std::string& socket) {
    const auto answer = ask_server(socket, "status\n");
    if (not answer) return std::nullopt;
    const auto document = json_value::parse(*answer);
    if (not document or (*document)["format"].text() != "sluice-status") return std::nullopt;
    running_server server{.process = (*document)["program"]["pid"].count(),
                          .name = (*document)["server"]["name"].text(),
                          .addresses = {},
                          .paths = {}};
    for (const json_value& each : (*document)["server"]["addresses"].elements())
        server.addresses.push_back(each.text());
    for (const json_value& each : (*document)["shares"].elements())
        server.paths.push_back(each["source"].text());
    const auto& refusals = (*document)["refusals"].elements();
    for (auto one = refusals.rbegin(); one != refusals.rend() and server.refusals.size() != refusals_max;
         ++one)
        server.refusals.push_back(refusal_line(*one));
    return server;
}

[[nodiscard]] std::vector<running_server> servers_at(std::vector<std::string> sockets) {
    if (sockets.size() > sockets_max) sockets.resize(sockets_max);
    std::vector<running_server> servers;
    for (const std::string& socket : sockets)
        if (auto server = server_at(socket); server) servers.push_back(*std::move(server));
    return servers;
}

}  // namespace

std::vector<running_server> running_servers(const std::string& status_socket) {
    std::vector<std::string> own = status_sockets();
    if (not status_socket.empty() and std::ranges::find(own, status_socket) == own.end())
        own.insert(own.begin(), status_socket);
    std::vector<running_server> servers = servers_at(std::move(own));
    // The socket of a server that was killed remains, so that a socket alone proves nothing.
    if (servers.empty() and ::geteuid() == 0) servers = servers_at(sockets_of_service());
    return servers;
}

bool listens_at(const running_server& server, const io::socket_address& address) {
    return std::ranges::any_of(server.addresses, [&](const std::string& text) {
        const auto listening = io::socket_address::parse(text);
        if (not listening or listening->port() != address.port()) return false;
        return listening->ip_bytes() == address.ip_bytes() or * listening ==
               io::socket_address::any_v4(address.port()) or * listening ==
               io::socket_address::any_v6(address.port());
    });
}

running_server this_server(const serve_options& options, std::vector<std::string> addresses) {
    return {.process = static_cast<std::uint64_t>(::getpid()),
            .name = options.name.empty() ? default_server_name() : options.name,
            .addresses = std::move(addresses),
            .paths = {}};
}

}  // namespace sluice::cli::doctor

#include "sluice/cli/serve/listening.hpp"

#include <sys/socket.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/serve/interfaces.hpp"
#include "sluice/cli/serve/serve_rules.hpp"

namespace sluice::cli {

namespace {

using smb::server::smb_server;

[[nodiscard]] io::socket_address address_of(int descriptor) noexcept {
    io::socket_address address;
    socklen_t bytes = io::socket_address::capacity;
    if (::getsockname(descriptor, static_cast<sockaddr*>(address.data()), &bytes) == 0) address.resize(bytes);
    return address;
}

[[nodiscard]] std::string listening_problem(const error& why) {
    const bool is_of_port = why == std::errc::address_in_use or why == std::errc::permission_denied;
    return why.message() + (is_of_port ? "; use --port or --listen to choose another port" : "");
}

// The kernel may release the sockets of a killed server only some time after its end, when it takes
// down its rings. The clients of persistent handles wait.
[[nodiscard]] result<void> start_at(smb_server& server, const serve_options& options, std::uint16_t port) {
    constexpr std::chrono::milliseconds pause{50};
    constexpr unsigned attempts_max = 200;
    const auto where = addresses_for(options, port, {});
    result<void> started = server.start(where);
    for (unsigned attempts = 1; server.context().has_persistent_opens() and attempts != attempts_max;
         ++attempts) {
        if (started or started.error() != std::errc::address_in_use) break;
        std::this_thread::sleep_for(pause);
        started = server.start(where);
    }
    return started;
}

}  // namespace

std::vector<io::socket_address> addresses_for(const serve_options& options, std::uint16_t port,
                                              const std::vector<int>& activated) {
    std::vector<io::socket_address> all;
    for (const int descriptor : activated)
        all.push_back(address_of(descriptor));
    if (not all.empty()) return all;
    for (const std::string& text : options.listen) {
        const auto address = listener_address(text, port);
        ENSURE(address.has_value(), "checked when the options were read");
        all.push_back(*address);
    }
    if (all.empty()) all.push_back(io::socket_address::any_v6(port));
    return all;
}

std::function<std::vector<smb::server::network_interface>()> interfaces_for(
    const serve_options& options, const std::vector<int>& activated) {
    if (options.advertise.empty())
        return
            [listening = addresses_for(options, usual_port, activated)] { return own_interfaces(listening); };
    auto advertised = parse_advertised(options.advertise);
    if (not advertised) fail("invalid value for --advertise: " + advertised.error());
    return [always = *std::move(advertised)] { return always; };
}

std::expected<listening_choice, std::string> start_listening(smb_server& server, const serve_options& options,
                                                             const std::vector<int>& activated) {
    if (not activated.empty()) {
        if (const auto started = server.start_with(activated); not started)
            return std::unexpected(reason_of(started.error()));
        return listening_choice::activated;
    }
    const bool has_choice = options.port == 0;
    const auto started = start_at(server, options, has_choice ? usual_port : options.port);
    if (started) return listening_choice::as_given;
    const bool is_forbidden = started.error() == std::errc::permission_denied;
    const bool may_retry = has_choice and (is_forbidden or started.error() == std::errc::address_in_use);
    if (not may_retry) return std::unexpected(listening_problem(started.error()));
    const auto retried = server.start(addresses_for(options, unprivileged_port, {}));
    if (not retried) return std::unexpected(listening_problem(retried.error()));
    return is_forbidden ? listening_choice::port_not_allowed : listening_choice::port_not_free;
}

}  // namespace sluice::cli

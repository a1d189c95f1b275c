#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/io/call/socket_address.hpp"
#include "sluice/smb/server/server.hpp"

namespace sluice::cli {

inline constexpr std::uint16_t usual_port = 445;
inline constexpr std::uint16_t unprivileged_port = 1445;

/// How a server listens.
enum class listening_choice : std::uint8_t {
    as_given,          ///< at the addresses of the options, or at the usual port
    port_not_free,     ///< at port 1445, because another process has port 445
    port_not_allowed,  ///< at port 1445, because the account may not use port 445
    activated,         ///< from the sockets of the service manager
};

/// Returns the addresses at which a server with these options listens, with `port` for those
/// without one; of `activated` sockets if there are any.
[[nodiscard]] std::vector<io::socket_address> addresses_for(const serve_options& options, std::uint16_t port,
                                                            const std::vector<int>& activated);

/// Returns the source of the interfaces that clients receive: those of the options, or else those
/// of the machine at the time of the request.
[[nodiscard]] std::function<std::vector<smb::server::network_interface>()> interfaces_for(
    const serve_options& options, const std::vector<int>& activated);

/// Binds the given addresses. Without a port, binds the default port if permitted. If the service
/// manager has passed sockets, it uses them in place of all addresses: the manager has opened them
/// before the server, and keeps them open after it. Errors: a text.
/// Blocks: up to 10 s, if persistent handles wait for their clients and a killed server still has
/// the address.
[[nodiscard]] std::expected<listening_choice, std::string> start_listening(smb::server::smb_server& server,
                                                                           const serve_options& options,
                                                                           const std::vector<int>& activated);

}  // namespace sluice::cli

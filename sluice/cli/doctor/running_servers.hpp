#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/io/call/socket_address.hpp"

namespace sluice::cli::doctor {

/// A sluice server of this host.
struct running_server {
    std::uint64_t process = 0;
    std::string name;
    std::vector<std::string> addresses;   ///< "ADDRESS:PORT"
    std::vector<std::string> paths;       ///< the directories of its shares
    std::vector<std::string> refusals{};  ///< the last clients that it refused, the newest first
};

/// Returns the servers that answer on their status sockets: on `status_socket` if it is not empty,
/// and on those of this account. For root, if none of these answers, on those of the service of the
/// Debian package, whose directory belongs to the account `sluice`. Allocates: the texts. Blocks:
/// up to 10 s for a socket that does not answer, 16 sockets at most.
[[nodiscard]] std::vector<running_server> running_servers(const std::string& status_socket);

/// Returns whether the server says that it listens at this address, or at all addresses with this
/// port. Pure function.
[[nodiscard]] bool listens_at(const running_server& server, const io::socket_address& address);

/// Returns the server that this process is: with the name of the options, or that of the host.
[[nodiscard]] running_server this_server(const serve_options& options, std::vector<std::string> addresses);

}  // namespace sluice::cli::doctor

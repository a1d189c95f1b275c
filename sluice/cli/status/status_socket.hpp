#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.hpp"

// The directory of the account where running servers listen for `sluice status`.

namespace sluice::cli {

/// Returns $XDG_RUNTIME_DIR/sluice; without it /run/sluice for root and /tmp/sluice-UID for others.
[[nodiscard]] std::string status_directory();

/// Creates the directory if it is missing. Errors: those of mkdir(2); EPERM if it does not belong
/// to this account, or if others can access it.
[[nodiscard]] result<void> make_status_directory();

/// Returns the socket path of a server on that port: PORT.sock; or the alternative if a server on
/// another address uses it.
[[nodiscard]] std::string status_socket_path(std::uint16_t port);
[[nodiscard]] std::string second_status_socket_path(std::uint16_t port);

/// Returns the sockets in the directory, by name; none if it is missing or not trustworthy. Sockets
/// of servers that died are included.
[[nodiscard]] std::vector<std::string> status_sockets();

/// Returns the reply of the server at a socket to `question`. Errors: those of connecting
/// (ECONNREFUSED: it died); ETIMEDOUT; EFBIG. Blocks: for `within` at most.
[[nodiscard]] result<std::string> ask_server(const std::string& path, const std::string& question,
                                             std::chrono::seconds within = std::chrono::seconds(10));

}  // namespace sluice::cli

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.hpp"

// Where running servers answer `sluice status`: a folder of the account that runs them.

namespace sluice::cli {

/// $XDG_RUNTIME_DIR/sluice; without it /run/sluice for root and /tmp/sluice-UID for others.
[[nodiscard]] std::string status_folder();

/// Makes the folder if it is not there. Errors: those of mkdir(2); EPERM if it is not a folder of this
/// account that is closed to all others, whoever made it.
[[nodiscard]] result<void> make_status_folder();

/// Where a server on that port listens: PORT.sock; and what it takes if another has that, on another address.
[[nodiscard]] std::string status_socket_path(std::uint16_t port);
[[nodiscard]] std::string second_status_socket_path(std::uint16_t port);

/// The sockets in the folder, by name; none if there is no such folder, or it is not ours to trust. Those of
/// servers that died are among them.
[[nodiscard]] std::vector<std::string> status_sockets();

/// What the server at a socket answers to `question`. Errors: those of connecting (ECONNREFUSED: it died);
/// ETIMEDOUT; EFBIG. Blocks: for some seconds at most.
[[nodiscard]] result<std::string> ask_server(const std::string& path, const std::string& question);

}  // namespace sluice::cli

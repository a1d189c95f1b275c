#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

namespace sluice::cli {

/// The most sockets that a service manager may pass.
inline constexpr std::size_t activation_sockets_max = 64;

/// Takes the listening sockets that a service manager has passed to this process: sd_listen_fds(3),
/// variables LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES. It removes the variables, and sets
/// close-on-exec. Returns the descriptors; none if the variables are not set, or are meant for
/// another process. Warns about values that are not numbers, and ignores them.
/// Errors: a text, if a descriptor is not a listening TCP socket, or there are more than
/// activation_sockets_max.
/// Thread safety: the main thread, before there are others, and before the process opens files.
[[nodiscard]] std::expected<std::vector<int>, std::string> take_activation_sockets();

}  // namespace sluice::cli

#pragma once

#include <string>
#include <vector>

#include "sluice/io/call/socket_address.hpp"

namespace sluice::io {

/// Returns the addresses of a host by name or number, as the system looks names up, in the order in
/// which to try them. Errors name the host: ENOENT if there is no such name, EAGAIN if no name
/// server answered, EINVAL for a name with a NUL, ENOMEM, EIO. Allocates: the list. Blocks: for as
/// long as the system's resolver takes. Thread safety: any thread.
[[nodiscard]] result<std::vector<socket_address>> resolve(const std::string& host,
                                                          std::uint16_t port) noexcept;

}  // namespace sluice::io

#pragma once

#include <string>
#include <vector>

#include "sluice/smb/server/configuration.hpp"

namespace sluice::cli {

/// Addresses of this machine that others may reach it by, that of loopback last. Never empty.
[[nodiscard]] std::vector<std::string> own_addresses();

/// The interfaces that are up, one for each of their addresses, without loopback and addresses of the link;
/// the speed as the kernel tells it, or else a gigabit.
[[nodiscard]] std::vector<smb::server::network_interface> own_interfaces();

}  // namespace sluice::cli

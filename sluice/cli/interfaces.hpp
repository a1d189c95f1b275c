#pragma once

#include <span>
#include <string>
#include <vector>

#include "sluice/smb/server/configuration.hpp"

namespace sluice::cli {

/// Addresses of this machine that others may reach it by, that of loopback last. Never empty.
[[nodiscard]] std::vector<std::string> own_addresses();

/// The interfaces by which a server that listens at these addresses is reached, one for each address of an
/// interface that is up: the one a listener names, or for a listener at all of them every one but loopback
/// and those of the link. The speed is as the kernel tells it, or else a gigabit.
[[nodiscard]] std::vector<smb::server::network_interface> own_interfaces(
    std::span<const io::socket_address> listening);

}  // namespace sluice::cli

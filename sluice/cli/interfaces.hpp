#pragma once

#include <expected>
#include <span>
#include <string>
#include <vector>

#include "sluice/smb/server/session/configuration.hpp"

namespace sluice::cli {

/// Addresses of this machine that others may reach it by, that of loopback last. Never empty.
[[nodiscard]] std::vector<std::string> own_addresses();

/// The interfaces by which a server that listens at these addresses is reached now, one for each address of
/// an interface that is up and has a link: the one a listener names, or for a listener at all of them every
/// one but loopback and those of the link. Where that leaves none, loopback: nobody else is there.
///
/// The speed is as the kernel tells it, or else a gigabit. An interface can spread what it receives (RSS) if
/// it has several receive queues or no device behind it, for then the sender's processor does the work.
/// Blocks: for the kernel's tables, briefly. Thread safety: any thread.
[[nodiscard]] std::vector<smb::server::network_interface> own_interfaces(
    std::span<const io::socket_address> listening);

/// What `--advertise` says instead, each ADDRESS[,speed=SPEED][,rss][,index=N], or `none` alone. A speed is
/// in bits per second, with k, m, g or t behind it for more of them; a gigabit if not given. Addresses of one
/// interface have one index; without, each has its own. On failure the text says what is wrong.
[[nodiscard]] std::expected<std::vector<smb::server::network_interface>, std::string> parse_advertised(
    std::span<const std::string> texts);

}  // namespace sluice::cli

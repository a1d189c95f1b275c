#pragma once

#include <expected>
#include <span>
#include <string>
#include <vector>

#include "sluice/smb/server/session/configuration.hpp"

namespace sluice::cli {

/// Returns the addresses by which other hosts may reach this machine, the loopback address last.
/// Never empty.
[[nodiscard]] std::vector<std::string> own_addresses();

/// Returns the interfaces by which a server that listens at these addresses can be reached now: one
/// for each address of an interface that is up and has a link. For a listener at a specific
/// address, that address; for a listener at all addresses, every one except loopback and link-local
/// addresses. If none remains, returns loopback, because no other host can connect.
///
/// The speed is the one that the kernel reports, or else 1 Gbit/s. An interface can spread receives
/// (RSS) if it has several receive queues, or if it has no device: then the CPU of the sender does
/// the work. Blocks: briefly, for the kernel's tables. Thread safety: any thread.
[[nodiscard]] std::vector<smb::server::network_interface> own_interfaces(
    std::span<const io::socket_address> listening);

/// Parses the values of `--advertise`, which replace own_interfaces(): each is
/// ADDRESS[,speed=SPEED][,rss][,index=N], or `none` alone. A speed is in bits per second, with an
/// optional suffix k, m, g or t; the default is 1 Gbit/s. Addresses of the same interface have the
/// same index; without one, each address has its own. Errors: the rule that a value violates.
[[nodiscard]] std::expected<std::vector<smb::server::network_interface>, std::string> parse_advertised(
    std::span<const std::string> texts);

}  // namespace sluice::cli

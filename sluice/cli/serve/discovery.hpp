#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/discovery/advertiser/advertiser.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::cli {

/// How the server appears in the network view of other computers.
struct started_discovery {
    std::unique_ptr<discovery::advertiser> running;  // null: it does not appear
    std::string where;                               // for the banner: where, or why not
};

/// Returns an identity of the server with this name on this host, which stays the same: a hash of
/// /etc/machine-id. Without that file, it is random. Call it before that file becomes inaccessible.
/// Blocks: for the file system.
[[nodiscard]] std::array<std::byte, 16> discovery_identity(const serve_options& options);

/// Starts to advertise the server, unless the options forbid it or it listens on loopback
/// addresses only. A protocol that cannot be used is a warning in the log. Allocates: yes. Blocks:
/// no.
[[nodiscard]] started_discovery start_discovery(const serve_options& options, const std::string& server_name,
                                                const std::array<std::byte, 16>& identity,
                                                const std::vector<io::socket_address>& listening,
                                                smb::server::event_log& log);

}  // namespace sluice::cli

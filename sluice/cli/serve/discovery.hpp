#pragma once

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

/// Starts to advertise the server, unless the options forbid it or it listens on loopback
/// addresses only. A protocol that cannot be used is a warning in the log. Allocates: yes. Blocks:
/// no.
[[nodiscard]] started_discovery start_discovery(const serve_options& options, const std::string& server_name,
                                                const std::vector<io::socket_address>& listening,
                                                smb::server::event_log& log);

}  // namespace sluice::cli

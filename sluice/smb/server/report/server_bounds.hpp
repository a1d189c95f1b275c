#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "sluice/smb/server/report/limit_rejections.hpp"

namespace sluice::smb::server {

/// The resources of the process.
struct process_resources {
    std::size_t descriptors = std::numeric_limits<std::size_t>::max();       // it may have open
    std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();  // that the machine has
};

/// The bounds that a server works with: those of limits.hpp, reduced to the
/// resources of the process.
///
/// Three quarters of the descriptors are for opens, at two each. So the half that one client may
/// hold, at the four that an open can need, leaves a quarter. An eighth is for connections; an
/// eighth of these, but at least a few, may be without a session. A sixteenth is for open
/// snapshots, at up to four each. The rest is for the server itself. So a connection is accepted
/// whichever files clients have open.
struct server_bounds {
    shared_bounds shared{};  // by limit
    std::size_t connections_without_session = 0;
    std::size_t sessions_in_progress = 0;
    std::size_t buffer_bytes = 0;  // of all loops

    [[nodiscard]] static server_bounds of(const process_resources& what) noexcept;
};

}  // namespace sluice::smb::server

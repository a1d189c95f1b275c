#include "sluice/smb/server/report/server_bounds.hpp"

#include <algorithm>

#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::size_t buffer_bytes_min = 64U << 20;
constexpr std::size_t connections_without_session_min = 8;

}  // namespace

server_bounds server_bounds::of(const process_resources& what) noexcept {
    server_bounds bounds;
    const auto shared = [&](limit which) -> std::size_t& {
        return bounds.shared[static_cast<std::size_t>(which)];
    };
    const std::size_t connections = std::min(limits::connections_max, what.descriptors / 8);
    bounds.connections_without_session = std::min(limits::connections_without_session_max,
                                                  std::max(connections / 8, connections_without_session_min));
    shared(limit::connections) =
        std::max<std::size_t>(connections - std::min(connections, bounds.connections_without_session),
                              connections_without_session_min);
    shared(limit::sessions) = limits::sessions_max;
    shared(limit::channels) = limits::channels_max;
    shared(limit::trees) = limits::trees_max;
    shared(limit::opens) = std::min(limits::opens_max, what.descriptors / 8 * 3);
    shared(limit::kept_opens) = limits::kept_opens_max;
    shared(limit::persistent_opens) = std::min(limits::persistent_opens_max, shared(limit::opens));
    shared(limit::locks) = limits::locks_max;
    shared(limit::pending_requests) = limits::pending_requests_max;
    shared(limit::watches) = limits::watches_max;
    shared(limit::queued_change_bytes) = limits::queued_change_bytes_max;
    shared(limit::cached_directories) = limits::cached_directories_max;
    shared(limit::snapshots) = std::min(limits::snapshots_max, what.descriptors / 64);
    shared(limit::pipe_bytes) = limits::pipe_bytes_max;
    bounds.sessions_in_progress = limits::sessions_in_progress_max;
    bounds.buffer_bytes = static_cast<std::size_t>(
        std::clamp<std::uint64_t>(what.memory_bytes / 4, buffer_bytes_min, limits::buffer_bytes_max));
    ENSURE(bounds.connections_without_session >= connections_without_session_min and
               bounds.sessions_in_progress != 0,
           "the server accepts connections and sessions, however few resources it has");
    return bounds;
}

}  // namespace sluice::smb::server

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::smb::server {

/// The limits at which the server rejects or drops something of a client. The first ones are shared by all
/// clients (client_quotas.hpp).
enum class limit : std::uint8_t {
    connections,
    sessions,
    channels,
    trees,
    opens,
    kept_opens,
    locks,
    pending_requests,
    watches,
    queued_change_bytes,
    // Not shared by quota.
    connections_without_session,
    sessions_in_progress,
    sessions_in_progress_per_connection,
    sessions_per_connection,
    channels_per_session,
    trees_per_session,
    opens_per_session,
    locks_per_open,
    pending_requests_per_connection,
    notify_changes,
    first_session,
    logon_waiters,
    logon_waiters_per_address,
    buffer_bytes,
    count,
};
inline constexpr std::size_t limits_count = static_cast<std::size_t>(limit::count);
inline constexpr std::size_t shared_limits_count = static_cast<std::size_t>(limit::queued_change_bytes) + 1;

/// The bound of each limit that clients share.
using shared_bounds = std::array<std::size_t, shared_limits_count>;

/// The name of its constant in limits.hpp.
[[nodiscard]] std::string_view name_of(limit which) noexcept;

/// Counts the rejections at each limit, and logs them at a bounded rate: one line per limit and
/// `logged_every`, with the limit, the client, the number of rejections since the last line, and a hint.
/// Thread safety: under the server's latch. Allocates: nothing, except the log.
class limit_rejections {
public:
    limit_rejections(event_log& log, clock_source& clock) noexcept : log_(log), clock_(clock) {}

    /// Something of `client` (a user or an address) was rejected or dropped at `which`.
    void add(limit which, std::string_view client) noexcept;
    [[nodiscard]] std::uint64_t of(limit which) const noexcept { return entries_[index(which)].rejected; }

    static constexpr std::chrono::seconds logged_every{10};

private:
    struct entry {
        std::uint64_t rejected = 0;
        std::uint64_t logged = 0;  // of these
        clock_source::steady_time log_next{};
    };
    [[nodiscard]] static constexpr std::size_t index(limit which) noexcept {
        return static_cast<std::size_t>(which);
    }

    event_log& log_;
    clock_source& clock_;
    std::array<entry, limits_count> entries_{};
};

}  // namespace sluice::smb::server

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::smb::server {

/// The limits at which the server rejects or drops something of a client. The first ones are shared
/// by all clients (client_quotas.hpp).
enum class limit : std::uint8_t {
    connections,
    sessions,
    channels,
    trees,
    opens,
    kept_opens,
    persistent_opens,
    locks,
    pending_requests,
    watches,
    queued_change_bytes,
    cached_directories,
    snapshots,
    pipe_bytes,
    // Not shared by quota.
    connections_without_session,
    sessions_in_progress,
    sessions_in_progress_per_connection,
    sessions_per_connection,
    channels_per_session,
    trees_per_session,
    opens_per_session,
    locks_per_open,
    locks_per_persistent_open,
    pending_requests_per_connection,
    notify_changes,
    first_session,
    logon_waiters,
    logon_waiters_per_address,
    buffer_bytes,
    count,
};
inline constexpr std::size_t limits_count = static_cast<std::size_t>(limit::count);
inline constexpr std::size_t shared_limits_count = static_cast<std::size_t>(limit::pipe_bytes) + 1;

/// The bound of each limit that clients share.
using shared_bounds = std::array<std::size_t, shared_limits_count>;

/// The name of its constant in limits.hpp.
[[nodiscard]] std::string_view name_of(limit which) noexcept;

/// Counts the rejections at each limit, and logs them at a bounded rate: one line per
/// limit and `logged_every`, with the limit, the client, the number of rejections since
/// the last line, and a hint.
/// Monitor: any thread that holds no mutex; `mutex_` guards which lines are written, the counts are
/// atomic, and lines are written without the mutex. Allocates: nothing, except the log.
class limit_rejections {
public:
    limit_rejections(event_log& log, clock_source& clock) noexcept : log_(log), clock_(clock) {}

    /// Something of `client` (a user or an address) was rejected or dropped at `which`.
    void add(limit which, std::string_view client) noexcept;
    [[nodiscard]] std::uint64_t of(limit which) const noexcept {
        return rejected_[index(which)].load(std::memory_order_relaxed);
    }

    static constexpr std::chrono::seconds logged_every{10};

private:
    struct entry {
        std::uint64_t logged = 0;  // rejections that the log contains
        clock_source::steady_time log_next{};
    };
    [[nodiscard]] static constexpr std::size_t index(limit which) noexcept {
        return static_cast<std::size_t>(which);
    }

    // The number of rejections to log now; 0: none.
    [[nodiscard]] std::uint64_t take_unlogged(std::size_t which, std::uint64_t rejected) noexcept;

    event_log& log_;
    clock_source& clock_;
    std::array<std::atomic<std::uint64_t>, limits_count> rejected_{};
    ranked_mutex<lock_rank::leaf> mutex_;
    std::array<entry, limits_count> entries_ SLUICE_GUARDED_BY(mutex_){};
};

}  // namespace sluice::smb::server

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/report/server_bounds.hpp"
#include "sluice/smb/server/session/admitted.hpp"

namespace sluice::smb::server {

class channel;
class session;

/// Decides which connections and sessions the server keeps.
///
/// Before a client has authenticated, its address identifies it. A new connection or session in
/// progress is never rejected because of others: beyond the bound, the oldest one of the address
/// with most of them is dropped. Once a client has authenticated, its user identifies it:
/// client_quotas.hpp divides connections, sessions and channels.
///
/// Invariants:
///   1. The connections without a session are in one order, from enter() until
///      establish() or leave().
///   2. The sessions in progress are in the other, from begin() until establish() or end().
///   3. A connection that has had a session is counted for one client.
/// Monitor: any thread that holds no mutex; `mutex_` guards the two orders, and what connections
/// and sessions have for them (admitted.hpp). Allocates: nodes per connection and session.
/// Complexity: O(log n).
class admission {
public:
    admission(const server_bounds& bounds, client_quotas& quotas, limit_rejections& rejections) noexcept
        : bounds_(bounds), quotas_(quotas), rejections_(rejections) {}
    admission(const admission&) = delete;
    admission& operator=(const admission&) = delete;

    /// A new connection. Returns the handle of one to close instead of it; null if there is room.
    [[nodiscard]] std::shared_ptr<connection_handle> enter(admitted_connection& fresh);
    void leave(admitted_connection& gone) noexcept;

    /// Returns whether a connection may begin one more session.
    [[nodiscard]] bool may_begin(const admitted_connection& on) noexcept;
    /// A new session in progress. Returns the ID of one to end instead of it, if there is no
    /// room.
    [[nodiscard]] std::optional<std::uint64_t> begin(session& fresh, admitted_connection& on);
    /// Returns the ID of one to end, if there are more sessions in progress than the bound.
    [[nodiscard]] std::optional<std::uint64_t> excess() noexcept {
        const lock_guard held(mutex_);
        return sessions_.size() > bounds_.sessions_in_progress ? sessions_.victim() : std::nullopt;
    }
    void end(session& gone) noexcept;

    /// A session's client has authenticated on a channel of a connection: the first one of the
    /// session, or another. Called on the loop of that connection. Returns whether the client may
    /// have it; if not, nothing has changed.
    [[nodiscard]] bool establish(channel& fresh, admitted_connection& on);

    [[nodiscard]] std::size_t connections_without_session() const noexcept {
        const lock_guard held(mutex_);
        return connections_.size();
    }
    [[nodiscard]] std::size_t sessions_in_progress() const noexcept {
        const lock_guard held(mutex_);
        return sessions_.size();
    }
    [[nodiscard]] const server_bounds& bounds() const noexcept { return bounds_; }

private:
    [[nodiscard]] client_reference client_of(const session& of, const admitted_connection& on);
    void remove(admitted_connection& waiting) noexcept SLUICE_REQUIRES(mutex_);
    void remove(admitted_session& in_progress) noexcept SLUICE_REQUIRES(mutex_);

    const server_bounds bounds_;
    client_quotas& quotas_;
    limit_rejections& rejections_;
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    connection_order connections_ SLUICE_GUARDED_BY(mutex_);
    session_order sessions_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/mutex.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::cli {

/// A client that was refused. A text that the server does not know is empty.
struct refused_client {
    clock_source::utc_time at{};
    std::string event;  ///< "logon failed", "share access denied", or that an address is denied
    std::string peer;   ///< its address
    std::string user;   ///< only of a user who has logged on: others may type a password there
    std::string share;
    std::string why;
};

/// Passes the events of a server on to its log, and keeps the last ones about clients that were
/// refused, for the administrator: a client learns no reason. At most refusals_max are kept, and
/// refusals_of_peer_max of one address, so that one client cannot hide all others; the oldest goes
/// first.
///
/// Monitor: any thread; `mutex_` guards the list, and events are passed on without it. Allocates:
/// an entry for each refusal; texts beyond text_bytes_max are cut. Without memory, the refusal is
/// passed on, but not kept.
class recent_refusals final : public smb::server::event_log {
public:
    recent_refusals(smb::server::event_log& to, const clock_source& clock) noexcept
        : to_(to), clock_(clock) {}

    void write(smb::server::event_severity severity, std::string_view what,
               std::initializer_list<smb::server::event_field> fields) noexcept override;

    /// Returns the refusals, the oldest first. Allocates: the list.
    [[nodiscard]] std::vector<refused_client> list() const;

    static constexpr std::size_t refusals_max = 32;
    static constexpr std::size_t refusals_of_peer_max = 8;
    static constexpr std::size_t text_bytes_max = 128;

private:
    void keep(refused_client&& fresh);

    smb::server::event_log& to_;
    const clock_source& clock_;
    mutable mutex mutex_;
    std::deque<refused_client> kept_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::cli

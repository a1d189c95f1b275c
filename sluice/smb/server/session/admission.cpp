#include "sluice/smb/server/session/admission.hpp"

#include <utility>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/session/channel.hpp"
#include "sluice/smb/server/session/session.hpp"

namespace sluice::smb::server {

admitted_connection* admission::enter(admitted_connection& fresh) {
    admitted_connection* evicted = nullptr;
    if (connections_.size() >= bounds_.connections_without_session) {
        evicted = *connections_.victim();
        connections_.remove(*std::exchange(evicted->waits, std::nullopt));
        rejections_.add(limit::connections_without_session, evicted->from.text());
    }
    fresh.waits = connections_.add(fresh.from, &fresh);
    return evicted;
}

void admission::leave(admitted_connection& gone) noexcept {
    if (gone.waits) connections_.remove(*std::exchange(gone.waits, std::nullopt));
    gone.counted.reset();
}

bool admission::may_begin(const admitted_connection& on) noexcept {
    if (on.sessions_in_progress < limits::sessions_in_progress_per_connection_max) return true;
    rejections_.add(limit::sessions_in_progress_per_connection, on.from.text());
    return false;
}

std::optional<std::uint64_t> admission::begin(session& fresh, admitted_connection& on) {
    std::optional<std::uint64_t> evicted;
    if (sessions_.size() >= bounds_.sessions_in_progress) {
        evicted = sessions_.victim();
        rejections_.add(limit::sessions_in_progress, on.from.text());
    }
    fresh.admitted.in_progress = sessions_.add(on.from, fresh.id);
    fresh.admitted.begun_on = &on;
    ++on.sessions_in_progress;
    return evicted;
}

void admission::end(session& gone) noexcept {
    if (gone.admitted.in_progress) {
        sessions_.remove(*std::exchange(gone.admitted.in_progress, std::nullopt));
        --std::exchange(gone.admitted.begun_on, nullptr)->sessions_in_progress;
    }
    gone.admitted.counted.reset();
    // Here, because the last reference to the session may be released on a thread that does not hold the
    // latch.
    gone.admitted.client = {};
}

client_reference admission::client_of(const session& of, const admitted_connection& on) {
    if (of.user.is_anonymous or of.user.is_guest) return quotas_.guest(on.from);
    return quotas_.user(of.user.name);
}

bool admission::establish(channel& fresh, admitted_connection& on) {
    ENSURE(on.owner == fresh.connection, "a channel is established on its own connection");
    session& of = *fresh.session;
    const bool is_first = not of.admitted.client;
    const client_reference client = is_first ? client_of(of, on) : of.admitted.client;
    quota_hold of_session;
    quota_hold of_connection;
    quota_hold of_channel = quotas_.take(client, limit::channels);
    if (of_channel.amount() == 0) return false;
    if (is_first and (of_session = quotas_.take(client, limit::sessions)).amount() == 0) return false;
    if (on.counted.amount() == 0 and (of_connection = quotas_.take(client, limit::connections)).amount() == 0)
        return false;
    fresh.counted = std::move(of_channel);
    if (is_first) {
        end(of);  // no longer in progress
        of.admitted.client = client;
        of.admitted.counted = std::move(of_session);
    }
    if (of_connection.amount() != 0) {
        if (on.waits) connections_.remove(*std::exchange(on.waits, std::nullopt));
        on.counted = std::move(of_connection);
        on.has_had_session = true;
    }
    return true;
}

}  // namespace sluice::smb::server

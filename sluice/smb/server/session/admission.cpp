#include "sluice/smb/server/session/admission.hpp"

#include <utility>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/session/channel.hpp"
#include "sluice/smb/server/session/session.hpp"

namespace sluice::smb::server {

void admission::remove(admitted_connection& waiting) noexcept {
    if (waiting.waits) connections_.remove(*std::exchange(waiting.waits, std::nullopt));
}

void admission::remove(admitted_session& in_progress) noexcept {
    if (not in_progress.in_progress) return;
    sessions_.remove(*std::exchange(in_progress.in_progress, std::nullopt));
    admitted_connection& on = *std::exchange(in_progress.begun_on, nullptr);
    ENSURE(on.sessions_in_progress != 0, "a session in progress is counted for its connection");
    --on.sessions_in_progress;
}

std::shared_ptr<connection_handle> admission::enter(admitted_connection& fresh) {
    std::shared_ptr<connection_handle> evicted;
    std::optional<client_address> from;
    {
        const lock_guard held(mutex_);
        if (connections_.size() >= bounds_.connections_without_session) {
            admitted_connection& victim = **connections_.victim();
            ENSURE(victim.waits.has_value(),
                   "a connection is in the order while it waits for its first session");
            remove(victim);
            evicted = victim.handle;
            from = victim.from;
        }
        ENSURE(not fresh.waits, "a connection enters once");
        fresh.waits = connections_.add(fresh.from, &fresh);
        ENSURE(connections_.size() <= std::max<std::size_t>(bounds_.connections_without_session, 1),
               "no more connections wait than the bound");
    }
    if (from) rejections_.add(limit::connections_without_session, from->text());
    return evicted;
}

void admission::leave(admitted_connection& gone) noexcept {
    {
        const lock_guard held(mutex_);
        remove(gone);
        ENSURE(gone.sessions_in_progress == 0, "sessions in progress end before their connection leaves");
    }
    gone.counted.reset();
}

bool admission::may_begin(const admitted_connection& on) noexcept {
    {
        const lock_guard held(mutex_);
        if (on.sessions_in_progress < limits::sessions_in_progress_per_connection_max) return true;
    }
    rejections_.add(limit::sessions_in_progress_per_connection, on.from.text());
    return false;
}

std::optional<std::uint64_t> admission::begin(session& fresh, admitted_connection& on) {
    std::optional<std::uint64_t> evicted;
    {
        const lock_guard held(mutex_);
        if (sessions_.size() >= bounds_.sessions_in_progress) evicted = sessions_.victim();
        ENSURE(not fresh.admitted.in_progress and not fresh.admitted.client,
               "a session begins once, without a client");
        fresh.admitted.in_progress = sessions_.add(on.from, fresh.id);
        fresh.admitted.begun_on = &on;
        ++on.sessions_in_progress;
    }
    if (evicted) rejections_.add(limit::sessions_in_progress, on.from.text());
    return evicted;
}

void admission::end(session& gone) noexcept {
    quota_hold released;  // without the mutex
    const lock_guard held(mutex_);
    remove(gone.admitted);
    released = std::move(gone.admitted.counted);
}

client_reference admission::client_of(const session& of, const admitted_connection& on) {
    if (of.user.is_anonymous or of.user.is_guest) return quotas_.guest(on.from);
    return quotas_.user(of.user.name);
}

bool admission::establish(channel& fresh, admitted_connection& on) {
    ENSURE(on.handle == fresh.connection, "a channel is established on its own connection");
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
    const bool is_first_of_connection = of_connection.amount() != 0;
    if (is_first_of_connection) on.counted = std::move(of_connection);
    const lock_guard held(mutex_);
    ENSURE(on.counted.amount() == 1, "a connection with a session is counted for a client");
    if (is_first) {
        remove(of.admitted);  // no longer in progress
        of.admitted.client = client;
        of.admitted.counted = std::move(of_session);
    }
    if (is_first_of_connection) {
        remove(on);
        on.has_had_session = true;
    }
    return true;
}

}  // namespace sluice::smb::server

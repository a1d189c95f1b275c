#include "sluice/smb/server/report/limit_rejections.hpp"

#include <string>
#include <utility>

namespace sluice::smb::server {

namespace {

struct description {
    limit which;
    std::string_view name;
    std::string_view hint;
};

constexpr std::string_view hint_for_user =
    "close what this user does not need; 'sluice status' shows users and limits";
constexpr std::string_view hint_for_descriptors =
    "close files of this user, or raise the descriptor limit (ulimit -Hn, LimitNOFILE=)";
constexpr std::string_view hint_for_address =
    "if this address is not a client of yours, block it in the firewall";
constexpr std::string_view hint_for_program = "the client program holds too much; check it, and restart it";

constexpr std::array<description, limits_count> descriptions{{
    {limit::connections, "connections_max", hint_for_user},
    {limit::sessions, "sessions_max", hint_for_user},
    {limit::channels, "channels_max", hint_for_user},
    {limit::trees, "trees_max", hint_for_user},
    {limit::opens, "opens_max", hint_for_descriptors},
    {limit::kept_opens, "kept_opens_max", hint_for_user},
    {limit::persistent_opens, "persistent_opens_max", hint_for_user},
    {limit::locks, "locks_max", hint_for_user},
    {limit::pending_requests, "pending_requests_max", hint_for_user},
    {limit::watches, "watches_max", hint_for_user},
    {limit::queued_change_bytes, "queued_change_bytes_max", hint_for_user},
    {limit::cached_directories, "cached_directories_max", hint_for_user},
    {limit::snapshots, "snapshots_max", hint_for_user},
    {limit::pipe_bytes, "pipe_bytes_max", hint_for_user},
    {limit::connections_without_session, "connections_without_session_max", hint_for_address},
    {limit::sessions_in_progress, "sessions_in_progress_max", hint_for_address},
    {limit::sessions_in_progress_per_connection, "sessions_in_progress_per_connection_max", hint_for_address},
    {limit::sessions_per_connection, "sessions_per_connection_max", hint_for_program},
    {limit::channels_per_session, "channels_per_session_max", hint_for_program},
    {limit::trees_per_session, "trees_per_session_max", hint_for_program},
    {limit::opens_per_session, "opens_per_session_max", hint_for_program},
    {limit::locks_per_open, "locks_per_open_max", hint_for_program},
    {limit::locks_per_persistent_open, "locks_per_persistent_open_max", hint_for_program},
    {limit::pending_requests_per_connection, "pending_requests_per_connection_max", hint_for_program},
    {limit::notify_changes, "notify_changes_max", hint_for_program},
    {limit::first_session, "first_session_within", hint_for_address},
    {limit::logon_waiters, "logon_waiters_max", hint_for_address},
    {limit::logon_waiters_per_address, "logon_waiters_per_address_max", hint_for_address},
    {limit::buffer_bytes, "buffer_bytes_max", hint_for_user},
}};

[[nodiscard]] constexpr bool are_in_order() noexcept {
    for (std::size_t i = 0; i != descriptions.size(); ++i)
        if (static_cast<std::size_t>(descriptions[i].which) != i) return false;
    return true;
}
static_assert(are_in_order());

}  // namespace

std::string_view name_of(limit which) noexcept {
    ENSURE(which < limit::count, "each limit has a name");
    return descriptions[static_cast<std::size_t>(which)].name;
}

std::uint64_t limit_rejections::take_unlogged(std::size_t which, std::uint64_t rejected) noexcept {
    const auto now = clock_.steady_now();
    const lock_guard held(mutex_);
    entry& known = entries_[which];
    // Another thread, with a later rejection, may have been faster.
    if (rejected <= known.logged or (known.logged != 0 and now < known.log_next)) return 0;
    known.log_next = now + logged_every;
    return rejected - std::exchange(known.logged, rejected);
}

void limit_rejections::add(limit which, std::string_view client) noexcept {
    ENSURE(which < limit::count, "a rejection is at a limit");
    // relaxed: a count, orders nothing.
    const std::uint64_t rejected = rejected_[index(which)].fetch_add(1, std::memory_order_relaxed) + 1;
    const std::uint64_t unlogged = take_unlogged(index(which), rejected);
    if (unlogged == 0) return;
    const std::string count = std::to_string(unlogged);
    const description& what = descriptions[index(which)];
    log_.write(event_severity::warning, "limit reached",
               {{"limit", what.name}, {"client", client}, {"rejected", count}, {"hint", what.hint}});
}

}  // namespace sluice::smb::server

#include <algorithm>

#include "sluice/smb/server/limits.hpp"
#include "sluice/smb/server/snapshot.hpp"

namespace sluice::smb::server {

namespace {

[[nodiscard]] constexpr std::uint64_t ms(std::chrono::milliseconds of) noexcept {
    return static_cast<std::uint64_t>(of.count());
}
[[nodiscard]] constexpr std::uint64_t seconds(std::chrono::seconds of) noexcept {
    return static_cast<std::uint64_t>(of.count());
}

}  // namespace

void limits_in_use::merge(const limits_in_use& other) noexcept {
    for (const auto member :
         {&limits_in_use::connections, &limits_in_use::connections_without_session, &limits_in_use::sessions,
          &limits_in_use::opens, &limits_in_use::credits_of_connection,
          &limits_in_use::pending_requests_of_connection, &limits_in_use::unsent_bytes_of_connection,
          &limits_in_use::sessions_of_connection, &limits_in_use::channels_of_session,
          &limits_in_use::trees_of_session, &limits_in_use::opens_of_session, &limits_in_use::locks_of_open,
          &limits_in_use::changes_of_watch})
        this->*member = std::max(this->*member, other.*member);
}

std::vector<limit_row> limit_rows(const limits_in_use& now) {
    // clang-format off: a table
    return {
        {"connections_max", "Connections", "connections", limits::connections_max, "", now.connections},
        {"connections_without_session_max", "Connections", "connections without a session",
         limits::connections_without_session_max, "", now.connections_without_session},
        {"first_session_within", "Connections", "until the first session is set up",
         seconds(limits::first_session_within), "s"},
        {"unsent_bytes_max", "Connections", "replies unsent before no more requests are read",
         limits::unsent_bytes_max, "bytes", now.unsent_bytes_of_connection},
        {"transfer_bytes_max", "Messages", "one READ, WRITE or other transaction", limits::transfer_bytes_max, "bytes"},
        {"transfer_bytes_max_single_credit", "Messages", "the same in dialect 2.0.2",
         limits::transfer_bytes_max_single_credit, "bytes"},
        {"frame_bytes_max", "Messages", "one frame", limits::frame_bytes_max, "bytes"},
        {"frame_bytes_max_before_session", "Messages", "one frame before there is a session",
         limits::frame_bytes_max_before_session, "bytes"},
        {"messages_per_compound_max", "Messages", "messages in one compound", limits::messages_per_compound_max},
        {"reply_bytes_per_frame_max", "Messages", "replies to one compound before the rest is refused",
         limits::reply_bytes_per_frame_max, "bytes"},
        {"credits_max", "Messages", "credits of a connection", limits::credits_max, "", now.credits_of_connection},
        {"credits_before_session_max", "Messages", "credits before there is a session",
         limits::credits_before_session_max},
        {"pending_requests_max", "Messages", "requests of a connection that wait",
         limits::pending_requests_max, "", now.pending_requests_of_connection},
        {"log_on_failures_free", "Logging on", "failures of an address before answers come late",
         limits::log_on_failures_free},
        {"log_on_delay_max", "Logging on", "how late at most", ms(limits::log_on_delay_max), "ms"},
        {"sessions_max", "Sessions and files", "sessions", limits::sessions_max, "", now.sessions},
        {"sessions_per_connection_max", "Sessions and files", "sessions of a connection",
         limits::sessions_per_connection_max, "", now.sessions_of_connection},
        {"channels_per_session_max", "Sessions and files", "channels of a session",
         limits::channels_per_session_max, "", now.channels_of_session},
        {"former_channels_max", "Sessions and files", "ended sessions whose signing keys a connection keeps",
         limits::former_channels_max},
        {"trees_per_session_max", "Sessions and files", "tree connections of a session",
         limits::trees_per_session_max, "", now.trees_of_session},
        {"opens_max", "Sessions and files", "opens", limits::opens_max, "", now.opens},
        {"opens_per_session_max", "Sessions and files", "opens of a session",
         limits::opens_per_session_max, "", now.opens_of_session},
        {"locks_per_open_max", "Sessions and files", "byte-range locks of an open",
         limits::locks_per_open_max, "", now.locks_of_open},
        {"notify_changes_max", "Sessions and files", "changes of a watched directory, kept till asked for",
         limits::notify_changes_max, "", now.changes_of_watch},
        {"break_within", "Sessions and files", "time to answer a break", seconds(limits::break_within), "s"},
        {"told_again_after", "Sessions and files", "until a break is told on another channel",
         ms(limits::told_again_after), "ms"},
        {"durable_timeout_default", "Sessions and files", "a durable open without its client, unless it asks",
         seconds(limits::durable_timeout_default), "s"},
        {"durable_timeout_max", "Sessions and files", "the same at most", seconds(limits::durable_timeout_max), "s"},
        {"path_units_max", "Sessions and files", "a path", limits::path_units_max, "UTF-16 units"},
        {"component_units_max", "Sessions and files", "one component of it", limits::component_units_max,
         "UTF-16 units"},
        {"open_attempts_max", "Sessions and files", "attempts of an open whose name changes",
         limits::open_attempts_max},
        {"caching_waits_max", "Sessions and files", "waits of an open, rename or removal for clients that cache",
         limits::caching_waits_max},
        {"loop_turn_max", "Sessions and files", "a turn of an event loop until it is reported",
         ms(limits::loop_turn_max), "ms"},
        {"peer_pause_min", "Other servers", "between looks at what another server has", ms(limits::peer_pause_min),
         "ms"},
        {"peer_pause_max", "Other servers", "the same at most", ms(limits::peer_pause_max), "ms"},
        {"peer_attempts_max", "Other servers", "looks until an open is given up", limits::peer_attempts_max},
    };
    // clang-format on
}

}  // namespace sluice::smb::server

#include "sluice/cli/limits.hpp"

#include <fmt/core.h>

#include <string_view>

#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/server/limits.hpp"

namespace sluice::cli {

namespace {

void print(std::string_view what, auto limit, std::string_view unit = "") {
    fmt::print("{:<58} {:>10} {}\n", what, limit, unit);
}

}  // namespace

void print_limits() {
    namespace server = smb::server::limits;
    namespace auth = smb::auth::limits;
    fmt::print("Connections\n");
    print("  at once", server::connections_max);
    print("  of them without a session", server::connections_without_session_max);
    print("  until the first session is set up", server::first_session_within.count(), "s");
    print("  replies unsent before no more requests are read", server::unsent_bytes_max, "bytes");
    fmt::print("Messages\n");
    print("  one READ, WRITE or other transaction", server::transfer_bytes_max, "bytes");
    print("  the same in dialect 2.0.2", server::transfer_bytes_max_single_credit, "bytes");
    print("  one frame", server::frame_bytes_max, "bytes");
    print("  one frame before there is a session", server::frame_bytes_max_before_session, "bytes");
    print("  messages in one compound", server::messages_per_compound_max);
    print("  replies to one compound before the rest is refused", server::reply_bytes_per_frame_max, "bytes");
    print("  credits", server::credits_max);
    print("  credits before there is a session", server::credits_before_session_max);
    print("  requests that wait, for each connection", server::pending_requests_max);
    fmt::print("Logging on\n");
    print("  one token", auth::token_bytes_max, "bytes");
    print("  exchanges until it must be decided", auth::round_trips_max);
    print("  failures of an address before answers come late", server::log_on_failures_free);
    print("  how late at most", server::log_on_delay_max.count(), "ms");
    fmt::print("Sessions and files\n");
    print("  sessions", server::sessions_max);
    print("  sessions of a connection", server::sessions_per_connection_max);
    print("  channels of a session", server::channels_per_session_max);
    print("  tree connections of a session", server::trees_per_session_max);
    print("  opens", server::opens_max);
    print("  opens of a session", server::opens_per_session_max);
    print("  byte-range locks of an open", server::locks_per_open_max);
    print("  changes of a watched directory, kept until asked for", server::notify_changes_max);
    print("  time to answer a break", server::break_within.count(), "s");
    print("  a durable open without its client, unless it asks", server::durable_timeout_default.count(),
          "s");
    print("  the same at most", server::durable_timeout_max.count(), "s");
    print("  a path", server::path_units_max, "UTF-16 units");
    print("  one component of it", server::component_units_max, "UTF-16 units");
}

}  // namespace sluice::cli

#include <algorithm>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/report/snapshot.hpp"
#include "sluice/smb/wire/rpc/rpc_pipe.hpp"
#include "sluice/smb/wire/rpc/rpc_srvsvc.hpp"

namespace sluice::smb::server {

namespace {

// The action at a limit. The guide gives the reasons: docs/guide/serve.md.
constexpr std::string_view fair_share = "rejected for a client that holds more than is free";
constexpr std::string_view rejected = "rejected";
constexpr std::string_view evicts_oldest = "the oldest of the address with most is dropped";

[[nodiscard]] constexpr std::uint64_t ms(std::chrono::milliseconds of) noexcept {
    return static_cast<std::uint64_t>(of.count());
}
[[nodiscard]] constexpr std::uint64_t seconds(std::chrono::seconds of) noexcept {
    return static_cast<std::uint64_t>(of.count());
}

// A resource that clients share.
[[nodiscard]] limit_row shared(limit which, std::string_view group, std::string_view what,
                               const limits_in_use& now, std::string_view unit = {}) {
    const shared_use& use = now.shared[static_cast<std::size_t>(which)];
    return {.name = name_of(which),
            .group = group,
            .what = what,
            .limit = use.bound,
            .unit = unit,
            .in_use = use.in_use,
            .when_reached = fair_share,
            .rejected = now.rejections[static_cast<std::size_t>(which)],
            .of_client = use.of_client};
}

// Another one whose rejections are counted.
[[nodiscard]] limit_row counted(limit which, limit_row row, std::string_view when_reached,
                                const limits_in_use& now) {
    row.name = name_of(which);
    row.when_reached = when_reached;
    row.rejected = now.rejections[static_cast<std::size_t>(which)];
    return row;
}

void add_connections(std::vector<limit_row>& to, const limits_in_use& now) {
    constexpr std::string_view group = "Connections";
    to.push_back(shared(limit::connections, group, "connections with a session", now));
    to.push_back(counted(limit::connections_without_session,
                         {.name = {},
                          .group = group,
                          .what = "connections without a session",
                          .limit = now.connections_without_session_bound,
                          .in_use = now.connections_without_session},
                         evicts_oldest, now));
    to.push_back(counted(limit::first_session,
                         {.name = {},
                          .group = group,
                          .what = "time to establish the first session",
                          .limit = seconds(limits::first_session_within),
                          .unit = "s"},
                         "the connection is closed", now));
    to.push_back({"keep_alive_idle", group, "idle time before a client is probed",
                  seconds(limits::keep_alive_idle), "s"});
    to.push_back(
        {"keep_alive_interval", group, "time between probes", seconds(limits::keep_alive_interval), "s"});
    to.push_back({.name = "keep_alive_probes",
                  .group = group,
                  .what = "unanswered probes",
                  .limit = limits::keep_alive_probes,
                  .when_reached = "the connection is closed"});
    to.push_back({.name = "user_timeout",
                  .group = group,
                  .what = "time that a client may leave data unacknowledged",
                  .limit = seconds(limits::user_timeout),
                  .unit = "s",
                  .when_reached = "the connection is closed"});
    to.push_back({"unsent_bytes_max", group, "send queue at which reading of requests pauses",
                  limits::unsent_bytes_max, "bytes", now.unsent_bytes_of_connection});
    to.push_back(counted(limit::buffer_bytes,
                         {.name = {},
                          .group = group,
                          .what = "buffers for requests and replies",
                          .limit = now.buffer_bytes_bound,
                          .unit = "bytes",
                          .in_use = now.buffer_bytes},
                         "the largest connection of the largest user is closed", now));
    to.push_back({"buffer_bytes_per_connection_max", group,
                  "buffers at which reading from a connection pauses",
                  limits::buffer_bytes_per_connection_max, "bytes", now.buffer_bytes_of_connection});
}

void add_messages(std::vector<limit_row>& to, const limits_in_use& now) {
    constexpr std::string_view group = "Messages";
    to.push_back({"transfer_bytes_max", group, "one READ, WRITE or other transaction",
                  limits::transfer_bytes_max, "bytes"});
    to.push_back({"transfer_bytes_max_single_credit", group, "the same in dialect 2.0.2",
                  limits::transfer_bytes_max_single_credit, "bytes"});
    to.push_back({"frame_bytes_max", group, "one frame", limits::frame_bytes_max, "bytes"});
    to.push_back({"frame_bytes_max_before_session", group, "one frame before the first session",
                  limits::frame_bytes_max_before_session, "bytes"});
    to.push_back(
        {"messages_per_compound_max", group, "messages in one compound", limits::messages_per_compound_max});
    to.push_back({"reply_bytes_per_frame_max", group, "replies to one compound before the rest is rejected",
                  limits::reply_bytes_per_frame_max, "bytes"});
    to.push_back({"credits_max", group, "credits of a connection", limits::credits_max, "",
                  now.credits_of_connection});
    to.push_back({"credits_before_session_max", group, "credits before the first session",
                  limits::credits_before_session_max});
    to.push_back(shared(limit::pending_requests, group, "waiting requests", now));
    to.push_back(counted(limit::pending_requests_per_connection,
                         {.name = {},
                          .group = group,
                          .what = "waiting requests of a connection",
                          .limit = limits::pending_requests_per_connection_max,
                          .in_use = now.pending_requests_of_connection},
                         rejected, now));
    to.push_back({"pending_bytes_per_connection_max", group, "bytes of those requests and their frames",
                  limits::pending_bytes_per_connection_max, "bytes"});
}

void add_compression(std::vector<limit_row>& to) {
    constexpr std::string_view group = "Compression";
    to.push_back({"compressed_read_bytes_min", group, "shortest data of a READ that are compressed",
                  limits::compressed_read_bytes_min, "bytes"});
    to.push_back({"compressed_read_bytes_max", group, "longest data of a READ that are compressed",
                  limits::compressed_read_bytes_max, "bytes"});
    to.push_back({"compression_saves_min", group, "a compressed reply saves at least one byte in so many",
                  limits::compression_saves_min, "bytes"});
    to.push_back({"compression_skips", group,
                  "READs of an open without compression after one that saved less",
                  limits::compression_skips});
}

void add_logons(std::vector<limit_row>& to, const limits_in_use& now) {
    constexpr std::string_view group = "Logging on";
    to.push_back({"logon_failures_free", group, "failures of an address before its attempts wait",
                  limits::logon_failures_free});
    to.push_back({"logon_failures_free_per_network", group, "the same for an IPv6 network (/64)",
                  limits::logon_failures_free_per_network});
    to.push_back(
        {"logon_delay_max", group, "longest wait between two attempts", ms(limits::logon_delay_max), "ms"});
    to.push_back(counted(limit::logon_waiters,
                         {.name = {},
                          .group = group,
                          .what = "waiting attempts",
                          .limit = limits::logon_waiters_max,
                          .in_use = now.logon_waiters},
                         "rejected unchecked", now));
    to.push_back(counted(limit::logon_waiters_per_address,
                         {.name = {},
                          .group = group,
                          .what = "waiting attempts of an address",
                          .limit = limits::logon_waiters_per_address_max},
                         "rejected unchecked", now));
    to.push_back(counted(limit::sessions_in_progress,
                         {.name = {},
                          .group = group,
                          .what = "sessions in progress",
                          .limit = limits::sessions_in_progress_max,
                          .in_use = now.sessions_in_progress},
                         evicts_oldest, now));
    to.push_back(counted(limit::sessions_in_progress_per_connection,
                         {.name = {},
                          .group = group,
                          .what = "sessions in progress of a connection",
                          .limit = limits::sessions_in_progress_per_connection_max},
                         rejected, now));
}

void add_cached_directories(std::vector<limit_row>& to, std::string_view group, const limits_in_use& now) {
    to.push_back(shared(limit::cached_directories, group, "cached directories", now));
    to.back().when_reached = "the directory gets no lease";
    to.push_back({"own_changes_kept_max", group, "names of a cached directory whose last change is known",
                  limits::own_changes_kept_max});
    to.push_back({"own_changes_kept_total_max", group, "the same of all cached directories",
                  limits::own_changes_kept_total_max});
    to.push_back({"directory_events_max", group, "changed names of a cached directory, to examine",
                  limits::directory_events_max});
    to.back().when_reached = "the leases of the directory are broken";
    to.push_back({"directory_events_total_max", group, "the same of all cached directories",
                  limits::directory_events_total_max});
    to.back().when_reached = "the leases of a directory are broken";
    to.push_back({"watches_per_cached_directory_max", group, "opens of a cached directory",
                  limits::watches_per_cached_directory_max});
    to.back().when_reached = "the open gets no lease";
}

void add_loops(std::vector<limit_row>& to, std::string_view group) {
    to.push_back({"stop_notice_max", group, "for the notifications of clients before the server stops",
                  ms(limits::stop_notice_max), "ms"});
    to.push_back({"stop_notice_check_period", group, "between checks whether these notifications are sent",
                  ms(limits::stop_notice_check_period), "ms"});
    to.push_back({"loop_turn_max", group, "a turn of an event loop that is reported when it ends",
                  ms(limits::loop_turn_max), "ms"});
    to.push_back({"loop_stall_min", group, "a turn of an event loop that is reported at once",
                  ms(limits::loop_stall_min), "ms"});
    to.push_back({"slow_turn_log_period", group, "time between two reports of such turns of one loop",
                  seconds(limits::slow_turn_log_period), "s"});
    to.push_back({"loop_sample_period", group, "time between two samples of the event loops",
                  ms(limits::loop_sample_period), "ms"});
    to.push_back({"loop_samples_apart_max", group, "longest time that counts between two samples",
                  ms(limits::loop_samples_apart_max), "ms"});
}

void add_sessions(std::vector<limit_row>& to, const limits_in_use& now) {
    constexpr std::string_view group = "Sessions and files";
    const auto per = [&](limit which, std::string_view what, std::size_t bound, std::size_t in_use) {
        to.push_back(counted(which,
                             {.name = {}, .group = group, .what = what, .limit = bound, .in_use = in_use},
                             rejected, now));
    };
    to.push_back(shared(limit::sessions, group, "sessions", now));
    per(limit::sessions_per_connection, "sessions of a connection", limits::sessions_per_connection_max,
        now.sessions_of_connection);
    to.push_back(shared(limit::channels, group, "channels", now));
    per(limit::channels_per_session, "channels of a session", limits::channels_per_session_max,
        now.channels_of_session);
    to.push_back({"former_channels_max", group, "ended sessions whose signing keys a connection keeps",
                  limits::former_channels_max});
    to.push_back(shared(limit::trees, group, "tree connections", now));
    per(limit::trees_per_session, "tree connections of a session", limits::trees_per_session_max,
        now.trees_of_session);
    to.push_back(shared(limit::opens, group, "opens", now));
    per(limit::opens_per_session, "opens of a session", limits::opens_per_session_max, now.opens_of_session);
    to.push_back(shared(limit::kept_opens, group, "durable opens without their client", now));
    to.back().when_reached = "the open is closed with its connection";
    to.push_back(shared(limit::persistent_opens, group, "persistent opens", now));
    to.back().when_reached = "the open is durable at most";
    to.push_back(shared(limit::locks, group, "byte-range locks", now));
    per(limit::locks_per_open, "byte-range locks of an open", limits::locks_per_open_max, now.locks_of_open);
    per(limit::locks_per_persistent_open, "byte-range locks of a persistent open",
        limits::locks_per_persistent_open_max, 0);
    to.push_back(shared(limit::watches, group, "watched directories", now));
    to.push_back(shared(limit::queued_change_bytes, group, "queued change notifications", now, "bytes"));
    to.back().when_reached = "the watch loses its changes; its client lists the directory";
    add_cached_directories(to, group, now);
    to.push_back(shared(limit::snapshots, group, "open snapshots", now));
    per(limit::notify_changes, "queued change notifications per watch", limits::notify_changes_max,
        now.changes_of_watch);
    to.back().when_reached = "the watch loses its changes; its client lists the directory";
    to.push_back({"names_examined_per_call_max", group, "names that a query examines between turns",
                  limits::names_examined_per_call_max});
    to.push_back({"offload_token_lifetime_default", group, "default validity of a token of an offloaded copy",
                  seconds(limits::offload_token_lifetime_default), "s"});
    to.push_back({"offload_token_lifetime_max", group, "longest validity that a client can ask for",
                  seconds(limits::offload_token_lifetime_max), "s"});
    to.push_back({"offload_token_data_bytes_max", group, "data that one token stands for",
                  limits::offload_token_data_bytes_max, "bytes"});
    to.push_back({"break_within", group, "time to answer a break", seconds(limits::break_within), "s"});
    to.push_back({"break_resend_delay", group, "time before a break is sent on another channel",
                  ms(limits::break_resend_delay), "ms"});
    to.push_back({"durable_timeout_default", group, "default time that a durable open waits for its client",
                  seconds(limits::durable_timeout_default), "s"});
    to.push_back({"durable_timeout_max", group, "longest time that a client can ask for",
                  seconds(limits::durable_timeout_max), "s"});
    to.push_back({"quota_users_max", group, "users that a query or change of quotas can name",
                  limits::quota_users_max});
    to.push_back({"quota_list_entries_max", group, "users in one part of the list of quotas",
                  limits::quota_list_entries_max});
    to.push_back({"referral_time_to_live", group, "time that a client may cache a referral to other servers",
                  seconds(limits::referral_time_to_live), "s"});
    to.push_back({"path_units_max", group, "a path", limits::path_units_max, "UTF-16 units"});
    to.push_back(
        {"component_units_max", group, "one component of it", limits::component_units_max, "UTF-16 units"});
    to.push_back(
        {"open_attempts_max", group, "attempts of an open whose name changes", limits::open_attempts_max});
    to.push_back({"caching_waits_max", group, "waits for caching clients per open, rename or removal",
                  limits::caching_waits_max});
    to.push_back({"rename_attempts_max", group, "attempts of a rename that waits for others",
                  limits::rename_attempts_max});
    add_loops(to, group);
}

// The codecs have these limits.
static_assert(limits::pipe_arguments_bytes_max == wire::rpc_limits().arguments_bytes_max and
              limits::pipe_results_bytes_max == wire::rpc_limits().results_bytes_max and
              limits::pipe_calls_per_write_max == wire::rpc_limits().calls_per_write_max and
              limits::pipe_unread_bytes_max == wire::rpc_limits().unread_bytes_max);
static_assert(limits::pipe_depth_max == wire::ndr_limits().depth_max and
              limits::pipe_elements_max == wire::ndr_limits().elements_max and
              limits::pipe_handles_max == wire::rpc_handle_table::handles_max);
static_assert(limits::pipe_listed_max == wire::rpc_listed_max and
              limits::pipe_listed_bytes_max == wire::rpc_listed_bytes_max and
              limits::pipe_examined_max == wire::rpc_examined_max and
              limits::pipe_paths_max == wire::rpc_paths_max);

void add_pipes(std::vector<limit_row>& to, const limits_in_use& now) {
    constexpr std::string_view group = "Named pipes";
    to.push_back(shared(limit::pipe_bytes, group, "incomplete requests, open objects and unread replies", now,
                        "bytes"));
    to.back().when_reached = "the pipe of a client that holds more than is free is disconnected";
    to.push_back({.name = "pipe_arguments_bytes_max",
                  .group = group,
                  .what = "arguments of one call",
                  .limit = limits::pipe_arguments_bytes_max,
                  .unit = "bytes",
                  .when_reached = "the pipe is disconnected"});
    to.push_back({.name = "pipe_results_bytes_max",
                  .group = group,
                  .what = "results of one call",
                  .limit = limits::pipe_results_bytes_max,
                  .unit = "bytes",
                  .when_reached = rejected});
    to.push_back({.name = "pipe_unread_bytes_max",
                  .group = group,
                  .what = "unread replies of one pipe",
                  .limit = limits::pipe_unread_bytes_max,
                  .unit = "bytes",
                  .when_reached = "the pipe is disconnected"});
    to.push_back({.name = "pipe_calls_per_write_max",
                  .group = group,
                  .what = "calls in one write",
                  .limit = limits::pipe_calls_per_write_max,
                  .when_reached = "the pipe is disconnected"});
    to.push_back({.name = "pipe_depth_max",
                  .group = group,
                  .what = "depth of the arguments of one call",
                  .limit = limits::pipe_depth_max,
                  .when_reached = rejected});
    to.push_back({.name = "pipe_elements_max",
                  .group = group,
                  .what = "names or SIDs that one call looks up",
                  .limit = limits::pipe_elements_max,
                  .when_reached = rejected});
    to.push_back({.name = "pipe_handles_max",
                  .group = group,
                  .what = "objects that one pipe has open",
                  .limit = limits::pipe_handles_max,
                  .when_reached = rejected});
    to.push_back({"pipe_listed_max", group, "entries in one part of a list", limits::pipe_listed_max});
    to.push_back(
        {"pipe_listed_bytes_max", group, "bytes of such a part", limits::pipe_listed_bytes_max, "bytes"});
    to.push_back({"pipe_examined_max", group, "sessions or opens that one part of a list examines",
                  limits::pipe_examined_max});
    to.push_back(
        {"pipe_paths_max", group, "paths of opens that one call determines", limits::pipe_paths_max});
    to.push_back({"pipe_ends_per_turn", group, "sessions and opens that calls end in one turn of a loop",
                  limits::pipe_ends_per_turn});
}

void add_other_servers(std::vector<limit_row>& to) {
    constexpr std::string_view group = "Other servers";
    to.push_back({"peer_pause_min", group, "shortest time between checks of another server",
                  ms(limits::peer_pause_min), "ms"});
    to.push_back(
        {"peer_pause_max", group, "longest time between such checks", ms(limits::peer_pause_max), "ms"});
    to.push_back({"peer_attempts_max", group, "checks until an open is rejected", limits::peer_attempts_max});
}

void add_recycle_bins(std::vector<limit_row>& to) {
    constexpr std::string_view group = "Recycle bins";
    to.push_back({"tidying_pause", group, "time between two passes", ms(limits::tidying_pause), "ms"});
    to.push_back({"tidying_part_pause", group, "time between the parts of a pass, of 1000 names or 20 ms",
                  ms(limits::tidying_part_pause), "ms"});
    to.push_back({"date_step_max", group, "step of the date after which no file is too old",
                  ms(limits::date_step_max), "ms"});
}

}  // namespace

void limits_in_use::merge(const limits_in_use& other) noexcept {
    for (const auto member :
         {&limits_in_use::connections, &limits_in_use::connections_without_session, &limits_in_use::sessions,
          &limits_in_use::opens, &limits_in_use::credits_of_connection,
          &limits_in_use::pending_requests_of_connection, &limits_in_use::unsent_bytes_of_connection,
          &limits_in_use::buffer_bytes_of_connection, &limits_in_use::sessions_of_connection,
          &limits_in_use::channels_of_session, &limits_in_use::trees_of_session,
          &limits_in_use::opens_of_session, &limits_in_use::locks_of_open, &limits_in_use::changes_of_watch})
        this->*member = std::max(this->*member, other.*member);
}

std::vector<limit_row> limit_rows(const limits_in_use& now) {
    std::vector<limit_row> rows;
    add_connections(rows, now);
    add_messages(rows, now);
    add_compression(rows);
    add_logons(rows, now);
    add_sessions(rows, now);
    add_pipes(rows, now);
    add_other_servers(rows);
    add_recycle_bins(rows);
    return rows;
}

std::vector<limit_row> limit_rows(const server_bounds& bounds) {
    limits_in_use none;
    for (std::size_t i = 0; i != shared_limits_count; ++i)
        none.shared[i].bound = bounds.shared[i];
    none.connections_without_session_bound = bounds.connections_without_session;
    none.buffer_bytes_bound = bounds.buffer_bytes;
    return limit_rows(none);
}

}  // namespace sluice::smb::server

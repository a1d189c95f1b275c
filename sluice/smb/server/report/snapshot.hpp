#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/report/server_bounds.hpp"
#include "sluice/smb/server/report/traffic.hpp"
#include "sluice/smb/wire/create/lease.hpp"

// The state of a server at one moment, as plain values. They do not refer to the server, so that
// they can be taken on any thread and read anywhere.

namespace sluice::smb::server {

/// A resource that clients share (client_quotas.hpp).
struct shared_use {
    std::size_t bound = 0;
    std::size_t in_use = 0;
    std::size_t of_client = 0;  // that has most
};

/// The current use of each limit of limits.hpp, and the rejections at it.
struct limits_in_use {
    std::size_t connections = 0;
    std::size_t connections_without_session = 0;
    std::size_t sessions = 0;
    std::size_t sessions_in_progress = 0;
    std::size_t opens = 0;
    std::size_t logon_waiters = 0;
    std::size_t buffer_bytes = 0;
    std::array<shared_use, shared_limits_count> shared{};  // by limit
    std::array<std::uint64_t, limits_count> rejections{};  // by limit; so far
    // The bounds of this server: see server_bounds.hpp.
    std::size_t connections_without_session_bound = 0;
    std::size_t buffer_bytes_bound = 0;
    // For the connection, session, open or directory that has most.
    std::size_t credits_of_connection = 0;
    std::size_t pending_requests_of_connection = 0;
    std::size_t unsent_bytes_of_connection = 0;
    std::size_t buffer_bytes_of_connection = 0;
    std::size_t sessions_of_connection = 0;
    std::size_t channels_of_session = 0;
    std::size_t trees_of_session = 0;
    std::size_t opens_of_session = 0;
    std::size_t locks_of_open = 0;     // in the opens inspected
    std::size_t changes_of_watch = 0;  // likewise

    /// Takes the higher use of both, for each limit.
    void merge(const limits_in_use& other) noexcept;
};

/// A loop and the thread that runs it.
struct loop_status {
    std::string multiplexer;  // "io_uring", "epoll"
    std::size_t connections = 0;
};

struct share_status {
    std::string name;
    std::string source;  // the directory or image
    bool is_read_only = false;
    bool requires_encryption = false;
    bool is_hidden = false;
    std::size_t trees = 0;  // sessions connected to it
    std::size_t files = 0;  // files and directories that are open
};

/// A connection that a session uses.
struct channel_status {
    std::string peer;  // address and port
    std::string dialect;
    std::string signing;  // the algorithm
    std::string cipher;   // empty: none was agreed on
    std::size_t loop = 0;
    std::uint64_t credits = 0;
    std::size_t pending_requests = 0;
    std::size_t unsent_bytes = 0;
    server::traffic traffic;
};

struct session_status {
    std::uint64_t id = 0;
    std::string user;
    std::string domain;
    std::string state;  // "in_progress", "valid", "expired"
    bool is_guest = false;
    bool is_anonymous = false;
    bool has_keys = false;  // signs, and can encrypt
    bool requires_encryption = false;
    clock_source::utc_time since{};
    std::string client;  // the guid it calls itself by
    std::vector<std::string> shares;
    std::vector<channel_status> channels;
    std::size_t opens = 0;
};

struct locked_range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool is_exclusive = false;
};

/// The kind of caching that a client may do for an open.
enum class caching_kind : std::uint8_t { none, oplock, lease };

struct open_status {
    std::uint64_t number = 0;   // in its id
    std::uint64_t session = 0;  // 0: its client is gone, and may come back
    std::string share;
    std::string path;    // in the share; empty for a pipe
    std::string stream;  // empty: the file itself
    bool is_directory = false;
    bool is_pipe = false;
    bool is_durable = false;
    bool deletes_on_close = false;
    std::uint32_t access = 0;        // [MS-SMB2] 2.2.13.1
    std::uint32_t share_access = 0;  // 2.2.13
    caching_kind caching = caching_kind::none;
    wire::lease_state cached = wire::lease_state::none;
    bool is_breaking = false;
    std::size_t locks = 0;
    std::vector<locked_range> first_locks;  // at most open_locks_shown_max
    std::size_t kept_changes = 0;           // in the directory it watches
};

/// The largest number of locks that are listed for one open.
inline constexpr std::size_t open_locks_shown_max = 16;

/// An I/O path, and how often it was used.
struct path_use {
    std::string_view name;
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
};

/// The parts of a snapshot besides the traffic. The lists can be long. Their numbers are cheap; the
/// details are requested in slices, so that no snapshot keeps a loop from its clients for long.
struct snapshot_request {
    bool has_totals = false;                    // everything but the details below
    bool has_names = false;                     // share, path and locks of the opens, too
    std::span<const std::uint64_t> sessions{};  // ids to describe; ended sessions are omitted
    std::span<const std::uint64_t> opens{};     // numbers: likewise
};

struct server_snapshot {
    server::traffic traffic;
    // With has_totals.
    std::string name;
    clock_source::utc_time started_at{};
    clock_source::utc_time taken_at{};
    std::vector<std::string> addresses;
    std::vector<loop_status> loops;
    std::vector<share_status> shares;
    std::vector<path_use> paths;
    std::size_t files = 0;
    std::size_t leases = 0;
    std::size_t buffers = 0;
    std::uint64_t denied_connections = 0;  // so far, from addresses that the rules deny
    std::uint64_t cross_loop_posts = 0;    // so far, posts from one loop to another
    std::uint64_t loop_slow_turns = 0;     // so far, turns of loops that took long
    std::uint64_t loop_stalls = 0;         // so far, how often a loop was stuck in one turn
    limits_in_use in_use;
    std::vector<std::uint64_t> session_ids;   // ascending
    std::vector<std::uint64_t> open_numbers;  // ascending
    // The requested details.
    std::vector<session_status> sessions;
    std::vector<open_status> opens;
};

/// One limit of limits.hpp.
struct limit_row {
    std::string_view name;   // in limits.hpp
    std::string_view group;  // "Connections", …
    std::string_view what;   // for people
    std::uint64_t limit = 0;
    std::string_view unit{};                   // empty: a number of things
    std::optional<std::uint64_t> in_use{};     // std::nullopt: it limits something that is not held
    std::string_view when_reached{};           // what the server does then; empty: it
                                               // follows from the protocol
    std::optional<std::uint64_t> rejected{};   // so far; std::nullopt: not counted
    std::optional<std::uint64_t> of_client{};  // of `in_use`, the part of the client with most
};

/// Every limit, in the order in which they are shown. Allocates: the list.
[[nodiscard]] std::vector<limit_row> limit_rows(const limits_in_use& now);
/// The same for a server that is not running: nothing is in use.
[[nodiscard]] std::vector<limit_row> limit_rows(const server_bounds& bounds);

}  // namespace sluice::smb::server

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// The resources that a client can make the server use, and their bounds. `sluice serve --limits`
// prints the limits; limit_rows.cpp states the action at each. client_quotas.hpp divides the
// resources that all clients share. Limits that need descriptors are lower if the process may have
// few (server_bounds.hpp).
namespace sluice::smb::server::limits {

/// Largest READ, WRITE or other transaction, in bytes: the size that Windows uses with multi-credit
/// requests.
inline constexpr std::uint32_t transfer_bytes_max = 8U << 20;
/// Without multi-credit requests (2.0.2).
inline constexpr std::uint32_t transfer_bytes_max_single_credit = 64U << 10;
/// Largest frame: a whole transfer, its header, and room for compounded messages.
inline constexpr std::size_t frame_bytes_max = transfer_bytes_max + (64U << 10);
/// The same before the connection's first session is established: tokens are short.
inline constexpr std::size_t frame_bytes_max_before_session = 128U << 10;
/// How long a connection may take until its first session is established.
inline constexpr std::chrono::seconds first_session_within{30};

inline constexpr std::size_t connections_max = 4096;
/// Connections without a session. Beyond, the oldest of the address with most of them is closed.
inline constexpr std::size_t connections_without_session_max = 512;
/// A client that has vanished is detected after keep_alive_idle without traffic and
/// keep_alive_probes unanswered probes.
inline constexpr std::chrono::seconds keep_alive_idle{120};
inline constexpr std::chrono::seconds keep_alive_interval{20};
inline constexpr unsigned keep_alive_probes = 3;
/// How long a client may leave data unacknowledged, or not receive replies, before its connection
/// ends.
inline constexpr std::chrono::seconds user_timeout{180};
/// Message ids a client may use ahead of the server's replies.
inline constexpr std::uint16_t credits_max = 8192;
/// Credits granted before the first session.
inline constexpr std::uint16_t credits_before_session_max = 16;
/// Requests that wait for something with an interim reply: of all clients, and of one connection.
inline constexpr std::size_t pending_requests_max = 32'768;
inline constexpr std::size_t pending_requests_per_connection_max = 511;  // as Windows
/// Bytes of the frames of those of one connection; one of them may always wait.
inline constexpr std::size_t pending_bytes_per_connection_max = 16U << 20;
inline constexpr std::size_t messages_per_compound_max = 128;
/// Bytes of unsent replies at which the server stops reading the client's requests.
inline constexpr std::size_t unsent_bytes_max = 32U << 20;
/// Bytes of replies to one frame after which the server rejects its remaining messages.
inline constexpr std::size_t reply_bytes_per_frame_max = 32U << 20;

/// The READ replies that are compressed, in bytes of data: shorter ones are mostly header, and
/// longer ones would keep a loop busy for long.
inline constexpr std::size_t compressed_read_bytes_min = 128;
inline constexpr std::size_t compressed_read_bytes_max = 1U << 20;
/// A reply is sent compressed if that saves at least one byte in so many.
inline constexpr std::size_t compression_saves_min = 32;
/// READs of an open that are not compressed after one that saved less.
inline constexpr unsigned compression_skips = 15;

/// Bytes of buffers for requests and replies, of all clients: a quarter of the memory of the
/// machine, at most this.
inline constexpr std::size_t buffer_bytes_max = 4UL << 30;
/// Bytes of buffers that one connection may use before the server stops reading its requests.
inline constexpr std::size_t buffer_bytes_per_connection_max = 64U << 20;

inline constexpr std::size_t sessions_max = 16'384;
/// Sessions whose client has not authenticated yet. Beyond, the oldest of the address
/// with most of them ends.
inline constexpr std::size_t sessions_in_progress_max = 1024;
inline constexpr std::size_t sessions_in_progress_per_connection_max = 64;
inline constexpr std::size_t sessions_per_connection_max = 1024;
/// The limit of Windows, which clients expect.
inline constexpr std::size_t channels_per_session_max = 32;
/// Ended sessions whose signing keys a connection keeps, to answer late requests.
inline constexpr std::size_t former_channels_max = 16;
inline constexpr std::size_t channels_max = 32'768;
inline constexpr std::size_t trees_max = 65'536;
inline constexpr std::size_t trees_per_session_max = 1024;
inline constexpr std::size_t opens_max = 131'072;
inline constexpr std::size_t opens_per_session_max = 65'536;
/// Durable opens without their client.
inline constexpr std::size_t kept_opens_max = 16'384;
/// Persistent opens, and the locks that the record of one has room for (journal/handle_record.hpp).
inline constexpr std::size_t persistent_opens_max = 16'384;
inline constexpr std::size_t locks_per_persistent_open_max = 100;
inline constexpr std::size_t locks_max = 262'144;
inline constexpr std::size_t locks_per_open_max = 8192;
/// Directories with a watch, and the memory of the changes queued for their clients.
inline constexpr std::size_t watches_max = 16'384;
inline constexpr std::size_t queued_change_bytes_max = 16U << 20;
/// Snapshots with open files, each counted for each tree connection that uses it: a volume each.
inline constexpr std::size_t snapshots_max = 1024;
/// Directories that clients may cache by leases, each counted for each open of it; the names of one
/// whose last own change is known, and those of all; the names of one with events to examine, and
/// those of all; the opens of one.
inline constexpr std::size_t cached_directories_max = 16'384;
inline constexpr std::size_t own_changes_kept_max = 4096;
inline constexpr std::size_t own_changes_kept_total_max = 65'536;
inline constexpr std::size_t directory_events_max = 4096;
inline constexpr std::size_t directory_events_total_max = 65'536;
inline constexpr std::size_t watches_per_cached_directory_max = 64;
/// Changes queued for a watched directory; beyond, its client must list the directory.
inline constexpr std::size_t notify_changes_max = 1024;

/// Bytes of incomplete requests and unread replies on named pipes.
inline constexpr std::size_t pipe_bytes_max = 64U << 20;
/// Bytes of the arguments and results of one call, and of the unread replies of one pipe.
inline constexpr std::size_t pipe_arguments_bytes_max = 64U << 10;
inline constexpr std::size_t pipe_results_bytes_max = 1U << 20;
inline constexpr std::size_t pipe_unread_bytes_max = 2U << 20;
inline constexpr std::size_t pipe_calls_per_write_max = 1;
/// Sessions and opens that the calls on one loop end in one of its turns; they end the others in
/// later turns. A session ends with all its opens in one turn, as by a LOGOFF, and so may exceed
/// it.
inline constexpr std::size_t pipe_ends_per_turn = 16;
/// The depth of the arguments of one call, and the elements of an array in them.
inline constexpr std::size_t pipe_depth_max = 4;
inline constexpr std::size_t pipe_elements_max = 1000;
/// Objects that the client of one pipe has open.
inline constexpr std::size_t pipe_handles_max = 64;
/// Entries and bytes of one part of a list; and the sessions or opens that one call examines, and
/// the paths of opens that it determines. To find those opens, it goes through the numbers of all
/// (open_table::ends_after). A list of users that have logged on, and a call that ends sessions,
/// examine all sessions.
inline constexpr std::size_t pipe_listed_max = 1000;
inline constexpr std::size_t pipe_listed_bytes_max = 512U << 10;
inline constexpr std::size_t pipe_examined_max = 4096;
inline constexpr std::size_t pipe_paths_max = 1000;

/// Names that one call of a query of a directory examines; then the loop serves others. A name
/// whose security descriptor is read counts as several (open/directory_scan.hpp).
inline constexpr std::size_t names_examined_per_call_max = 2048;

/// Failed logons of an address without delay, and the longest pause before each further check of a
/// password.
inline constexpr unsigned logon_failures_free = 5;
/// The same for an IPv6 network of 64 bits, in which every host may have many addresses.
inline constexpr unsigned logon_failures_free_per_network = 64;
inline constexpr std::chrono::milliseconds logon_delay_max{5000};
/// Attempts that wait for their check; further ones are rejected unchecked. All attempts of one
/// address are checked before first_session_within has passed.
inline constexpr std::size_t logon_waiters_max = 512;
inline constexpr std::size_t logon_waiters_per_address_max = 4;
static_assert(logon_waiters_per_address_max * logon_delay_max < first_session_within);

/// How long the holder of an oplock or a lease may take to answer a break.
inline constexpr std::chrono::seconds break_within{35};
/// How long a break notification may remain undelivered on one channel before it is sent on
/// another: on a local network, TCP has then sent a lost segment again after 200, 600 and 1400 ms.
inline constexpr std::chrono::milliseconds break_resend_delay{1500};
/// How long a durable open is kept without its client if the client requests no time.
inline constexpr std::chrono::seconds durable_timeout_default{60};
inline constexpr std::chrono::seconds durable_timeout_max{300};
/// How many users a query or change of quotas may name, and how many a list of them has at most.
inline constexpr std::size_t quota_users_max = 64;
inline constexpr std::size_t quota_list_entries_max = 256;
/// How long a client may use a referral to another server before it asks for a new one.
inline constexpr std::chrono::seconds referral_time_to_live{300};

/// How long a token of an offloaded copy is valid if the client requests no time, and at most; and
/// how much data one stands for, as much as one request of the other kind may copy.
inline constexpr std::chrono::seconds offload_token_lifetime_default{60};
inline constexpr std::chrono::seconds offload_token_lifetime_max{300};
inline constexpr std::uint64_t offload_token_data_bytes_max = 16U << 20;

/// How often a CREATE starts again at once because the name it found has changed since.
inline constexpr unsigned open_attempts_max = 32;
/// How often a CREATE, rename or removal waits for a lease break or a CLOSE and then starts again.
/// Each client that caches a file may end one wait.
inline constexpr unsigned caching_waits_max = 4096;

/// How often a rename or link starts again because other clients had to give up caching.
inline constexpr unsigned rename_attempts_max = 32;

/// A turn of an event loop that lasts this long is reported when it ends; one that lasts as long as
/// a stall, at once. The sampling period of the loops, and the most time that counts between two
/// samples.
inline constexpr std::chrono::milliseconds loop_turn_max{100};
inline constexpr std::chrono::milliseconds loop_stall_min{1000};
inline constexpr std::chrono::milliseconds loop_sample_period{25};
inline constexpr std::chrono::milliseconds loop_samples_apart_max{50};
/// How long a stop waits until clients that are notified of it have these messages, and how often
/// it checks.
inline constexpr std::chrono::milliseconds stop_notice_max{200};
inline constexpr std::chrono::milliseconds stop_notice_check_period{5};
/// How often slow turns of one loop are logged; those in between are counted.
inline constexpr std::chrono::seconds slow_turn_log_period{10};

/// The pause before the next attempt at a file that another server is checking, has open or has
/// locked; it doubles from the first to the second.
inline constexpr std::chrono::milliseconds peer_pause_min{1};
inline constexpr std::chrono::milliseconds peer_pause_max{64};
/// How often an open, a rename or the removal before a reply is tried while another server is
/// checking the file: about three seconds for an open.
inline constexpr unsigned peer_attempts_max = 50;

/// The time between two passes over a recycle bin, and between the parts of a pass.
inline constexpr std::chrono::milliseconds tidying_pause{600'000};
inline constexpr std::chrono::milliseconds tidying_part_pause{10};
/// A pass removes no files for their age if the date has advanced so much more than time has.
inline constexpr std::chrono::milliseconds date_step_max{3'600'000};

/// Longest path within a share, in UTF-16 units, and its longest component.
inline constexpr std::size_t path_units_max = 32'760;
inline constexpr std::size_t component_units_max = 255;

}  // namespace sluice::smb::server::limits

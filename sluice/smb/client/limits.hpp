#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::smb::client::limits {

/// Credits a connection asks for in all: with 64 KiB each, what may be under way at once. Servers grant what
/// they like.
inline constexpr std::uint32_t credits_wanted = 1024;

/// More than this are not counted, whatever a server grants.
inline constexpr std::uint32_t credits_max = 32768;

/// Data of one READ or WRITE, however much more the server would take: what one frame can carry with room
/// for the headers.
inline constexpr std::uint32_t transfer_bytes_max = 8U << 20;

/// A frame of a server is at most a transfer and this: headers, encryption, and what stands beside the data.
inline constexpr std::size_t frame_overhead_bytes_max = 4096;

/// Until a dialect is agreed on, no frame is longer.
inline constexpr std::size_t first_frame_bytes_max = 64U << 10;

/// Small frames are received many at a time into one buffer of this length.
inline constexpr std::size_t staging_bytes = 64U << 10;

/// A READ of at least this much is received where the caller wants it, past the staging buffer.
inline constexpr std::size_t direct_read_bytes_min = 8U << 10;

/// While such are awaited, no more than this is read ahead: it would have to be copied.
inline constexpr std::size_t direct_lookahead_bytes = 256;

/// Memory of messages that a connection keeps for the next ones; what comes back beyond it is freed.
inline constexpr std::size_t kept_bytes_max = 16U << 20;

/// What goes to the kernel in one call; more requests wait for the next.
inline constexpr std::size_t pieces_per_write_max = 64;
inline constexpr std::size_t bytes_per_write_max = 256U << 10;

/// Messages a server puts into one frame.
inline constexpr std::size_t messages_per_frame_max = 64;

/// Rounds of a session set-up by NTLM: so many message ids each binding of a channel needs.
inline constexpr unsigned binding_ids_per_channel = 2;

/// Rounds of a session set-up.
inline constexpr unsigned log_on_rounds_max = 8;

/// Without a word from the server, while it owes one, for so long: the connection is dead.
inline constexpr std::chrono::seconds reply_timeout{60};

/// After a channel was lost, a server may refuse what changes something until it has done with what came
/// before: it is asked again after a pause that doubles, for so long.
inline constexpr std::chrono::milliseconds repeat_pause_min{1};
inline constexpr std::chrono::milliseconds repeat_pause_max{100};
inline constexpr std::chrono::seconds repeat_within{60};

/// The address of one server after the other gets this long to answer.
inline constexpr std::chrono::seconds connect_timeout{15};

/// A path on the wire, and what QUERY_DIRECTORY may return at once.
inline constexpr std::size_t path_bytes_max = 32767;
inline constexpr std::uint32_t listing_bytes = 64U << 10;

/// A folder with more entries is taken for a server that never stops.
inline constexpr std::size_t listing_entries_max = 16U << 20;

}  // namespace sluice::smb::client::limits

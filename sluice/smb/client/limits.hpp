#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::smb::client::limits {

/// The number of credits that a connection requests in total, 64 KiB each. They limit the requests
/// in flight. Servers may grant fewer.
inline constexpr std::uint32_t credits_wanted = 1024;

/// Credits beyond this number are not counted.
inline constexpr std::uint32_t credits_max = 32768;

/// Data of one READ or WRITE, even if the server accepts more. One frame can carry them with their
/// headers.
inline constexpr std::uint32_t transfer_bytes_max = 8U << 20;

/// The part of a frame that is not data of a transfer: headers, encryption, and other fields.
inline constexpr std::size_t frame_overhead_bytes_max = 4096;
/// The shortest data of a WRITE that are compressed, and the part that must be saved: one byte in
/// so many. WRITEs that are not compressed after one that saved less.
inline constexpr std::size_t compressed_write_bytes_min = 4096;
inline constexpr std::size_t compression_saves_min = 32;
inline constexpr unsigned compression_skips = 15;

/// The largest frame before a dialect is negotiated.
inline constexpr std::size_t first_frame_bytes_max = 64U << 10;

/// Small frames are received together into one buffer of this length.
inline constexpr std::size_t staging_bytes = 64U << 10;

/// A READ of at least this length is received directly into the caller's memory.
inline constexpr std::size_t direct_read_bytes_min = 8U << 10;

/// While such a READ is awaited, at most this much is read ahead, because it must be copied.
inline constexpr std::size_t direct_lookahead_bytes = 256;

/// Memory of messages that a connection keeps for reuse. Memory beyond it is freed.
inline constexpr std::size_t kept_bytes_max = 16U << 20;

/// The number of buffers in one system call. Further requests wait for the next call.
inline constexpr std::size_t pieces_per_write_max = 64;
inline constexpr std::size_t bytes_per_write_max = 256U << 10;

/// The largest number of messages in a server's frame.
inline constexpr std::size_t messages_per_frame_max = 64;

/// The rounds of a session setup with NTLM, and thus the message ids that the binding of a channel
/// needs.
inline constexpr unsigned binding_ids_per_channel = 2;

/// The largest number of rounds of a session setup.
inline constexpr unsigned logon_rounds_max = 8;

/// If the server is silent for this time while it owes a reply, the connection is considered lost.
inline constexpr std::chrono::seconds reply_timeout{60};

/// After the loss of a channel, a server may reject modifying requests until it has finished the
/// earlier ones. The client repeats them after a pause that doubles, up to these limits.
inline constexpr std::chrono::milliseconds repeat_pause_min{1};
inline constexpr std::chrono::milliseconds repeat_pause_max{100};
inline constexpr std::chrono::seconds repeat_within{60};

/// The time to connect to each address of a server, and then that in which the server answers
/// NEGOTIATE and the logon.
inline constexpr std::chrono::seconds connect_timeout{10};

/// The longest path on the wire, and the largest reply of QUERY_DIRECTORY.
inline constexpr std::size_t path_bytes_max = 32767;
inline constexpr std::uint32_t listing_bytes = 64U << 10;

/// A directory with more entries is considered endless.
inline constexpr std::size_t listing_entries_max = 16U << 20;

}  // namespace sluice::smb::client::limits

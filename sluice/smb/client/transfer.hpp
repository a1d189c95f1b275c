#pragma once

#include <functional>

#include "sluice/base/result.hpp"
#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/tree.hpp"

namespace sluice::smb::client {

/// The length of one READ or WRITE of a file that is copied, if the server accepts it. A server
/// sends larger READs at less cost if it need not process the data. A message that is received as a
/// whole should fit into a cache.
inline constexpr std::uint32_t download_piece_bytes = 2U << 20;
inline constexpr std::uint32_t upload_piece_bytes = 1U << 20;

/// The amount of one file that is in flight: enough for a fast network, small enough for a cache.
/// After an interrupted upload, all data before this distance from the end of the file are
/// complete.
inline constexpr std::uint64_t transfer_window_bytes = 8U << 20;
/// The largest number of segments, even if a server accepts only short ones.
inline constexpr std::uint64_t transfer_pieces_max = 32;

/// A consumer of the bytes of a file, in order. An error ends the transfer.
using byte_taker = std::function<result<void>(bytes_view, std::uint64_t offset_bytes)>;

/// A source of the bytes at an offset. It returns the number of bytes stored in `into`; zero at the
/// end.
using byte_source = std::function<result<std::size_t>(mutable_bytes into, std::uint64_t offset_bytes)>;

/// The reason why a transfer ended early: an error of the server's side, or of this one.
struct transfer_error {
    std::optional<client_error> remote;
    std::optional<error> local;

    [[nodiscard]] std::string message() const;
    /// Returns whether the same transfer may succeed over another connection.
    [[nodiscard]] bool is_of_connection() const noexcept { return remote and remote->is_of_connection(); }
};
template <class T>
using transferred = std::expected<T, transfer_error>;

/// Reads the bytes from `offset_bytes` to `end_bytes`, several READs in flight at a time, and
/// passes them to `to` in order. It never requests a byte after `end_bytes`, so that a server
/// cannot send without an end. Returns the offset of the first byte that was not read: less than
/// `end_bytes` if the file ended before. Allocates: the segments. Suspends. Blocks: as `to` does.
[[nodiscard]] io::task<transferred<std::uint64_t>> download(remote_file& from, std::uint64_t offset_bytes,
                                                            std::uint64_t end_bytes,
                                                            const byte_taker& to) noexcept;

/// Writes the bytes of `from` from `offset_bytes` on, several WRITEs in flight at a time. Returns
/// the offset at which it ended. Segments may arrive in any order. Allocates: the segments.
/// Suspends. Blocks: as `from` does.
[[nodiscard]] io::task<transferred<std::uint64_t>> upload(remote_file& to, std::uint64_t offset_bytes,
                                                          std::uint64_t expected_end,
                                                          const byte_source& from) noexcept;

}  // namespace sluice::smb::client

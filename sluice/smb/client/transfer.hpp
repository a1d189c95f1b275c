#pragma once

#include <functional>

#include "sluice/base/result.hpp"
#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/tree.hpp"

namespace sluice::smb::client {

/// One READ or WRITE of a file that is copied, if the server takes as much. A server sends larger ones at
/// less cost where it need not touch the data, and what it has to receive whole is better small enough for a
/// cache.
inline constexpr std::uint32_t download_piece_bytes = 2U << 20;
inline constexpr std::uint32_t upload_piece_bytes = 1U << 20;

/// How much is under way at once of one file: enough for a fast network, little enough for a cache. What was
/// written before this much from the end of a file whose upload was cut off is all there.
inline constexpr std::uint64_t transfer_window_bytes = 8U << 20;
/// However little a server takes or gives at once.
inline constexpr std::uint64_t transfer_pieces_max = 32;

/// Takes the bytes of a file in order; an error ends the transfer.
using byte_taker = std::function<result<void>(bytes_view, std::uint64_t offset_bytes)>;

/// Gives the bytes at an offset: how many of `into` it filled; none at the end.
using byte_giver = std::function<result<std::size_t>(mutable_bytes into, std::uint64_t offset_bytes)>;

/// Why a transfer ended early: the server's side, or this one's.
struct transfer_error {
    std::optional<client_error> remote;
    std::optional<error> local;

    [[nodiscard]] std::string message() const;
    /// Returns whether the same transfer may succeed over another connection.
    [[nodiscard]] bool is_of_connection() const noexcept { return remote and remote->is_of_connection(); }
};
template <class T>
using transferred = std::expected<T, transfer_error>;

/// Reads the bytes from `offset_bytes` to `end_bytes`, several READs in flight at a time, and gives them to
/// `to` in order. Never asks for a byte after `end_bytes`, so that a server cannot send without end. Returns
/// the offset of the first byte that was not read: less than `end_bytes` if the file ended before. Allocates:
/// the pieces. Suspends. Blocks: as `to` does.
[[nodiscard]] io::task<transferred<std::uint64_t>> download(remote_file& from, std::uint64_t offset_bytes,
                                                            std::uint64_t end_bytes,
                                                            const byte_taker& to) noexcept;

/// Writes what `from` gives from `offset_bytes` on, many pieces ahead. Returns where it ended. Pieces may
/// arrive in any order. Allocates: the pieces. Suspends. Blocks: as `from` does.
[[nodiscard]] io::task<transferred<std::uint64_t>> upload(remote_file& to, std::uint64_t offset_bytes,
                                                          std::uint64_t expected_end,
                                                          const byte_giver& from) noexcept;

}  // namespace sluice::smb::client

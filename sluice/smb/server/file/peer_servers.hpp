#pragma once

#include <cstdint>
#include <memory>

#include "sluice/base/result.hpp"
#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/sync/byte_range.hpp"
#include "sluice/vfs/metadata.hpp"

// Other servers, in other processes, that serve the same files: what a server shows them of what its clients
// do, and asks of theirs. The program hands in how (sluice serve --shared-locks); the rules, and why they
// suffice, are in docs/algorithms/shared_locks.md.

namespace sluice::smb::server {

/// What a server shows the others of one file. For every way of access there are two signs: somebody here
/// uses it, somebody here denies it to others. These two must never be up at different servers; two of the
/// same may. Shared and exclusive locks alone cannot say that: of two who read and deny writing, each would
/// have to lock what is denied exclusively, and they would be in each other's way.
enum class peer_sign : std::uint16_t {
    none = 0,
    has_open = 0x0001,  ///< the file or a stream of it, for whatever
    reads = 0x0002,
    writes = 0x0004,
    removes = 0x0008,
    stream_stays = 0x0010,  ///< a stream of it is open that must not go, and so must not the file
    denies_reading = 0x0020,
    denies_writing = 0x0040,
    denies_removing = 0x0080,
    goes = 0x0200,  ///< it is removed when all have closed it
};
inline constexpr unsigned peer_sign_bits = 10;

enum class peer_lock : std::uint8_t { free, shared, exclusive };

/// The last byte that servers tell each other apart: all behind it are one with it. Locks there exclude each
/// other more than they must, but what the kernel can count (2^63) suffices for them, and for the signs.
inline constexpr std::uint64_t peer_byte_last = INT64_MAX - 64;

/// One file as this server and the others see it. What a server shows and locks goes with the object, and
/// with the process. Nothing here waits: EAGAIN is for a file that another server is just looking at, for
/// microseconds as a rule, and then one tries again from the loop. Thread safety: under the server's latch.
/// Blocks: for the file system.
class peer_file {
public:
    peer_file() noexcept = default;
    peer_file(const peer_file&) = delete;
    peer_file& operator=(const peer_file&) = delete;
    virtual ~peer_file() = default;

    /// Shows `up`, unless another server shows any of `unless`; asks and shows in one step. Returns what is
    /// in the way (or `unless`, as far as it was not told apart); none: done. Errors: EAGAIN; those of the
    /// files by which it is done.
    [[nodiscard]] virtual result<peer_sign> raise(peer_sign up, peer_sign unless) noexcept = 0;
    /// Shows `down` no more.
    virtual void lower(peer_sign down) noexcept = 0;

    /// From here to unseal() nobody else has the file open, nor can open it. Errors: EBUSY if somebody has;
    /// EAGAIN; as raise().
    [[nodiscard]] virtual result<void> seal() noexcept = 0;
    virtual void unseal() noexcept = 0;

    /// Sets what this server has locked of a range that has bytes, the last at most peer_byte_last: it
    /// replaces what it had there. False if others are in the way, never for less than it had. While has_open
    /// is shown.
    [[nodiscard]] virtual bool lock(const sync::byte_range& where, peer_lock to) noexcept = 0;
    /// Whether others leave room for such a lock.
    [[nodiscard]] virtual bool is_lockable(const sync::byte_range& where, peer_lock to) noexcept = 0;
};

/// Thread safety: under the server's latch.
class peer_servers {
public:
    peer_servers() noexcept = default;
    peer_servers(const peer_servers&) = delete;
    peer_servers& operator=(const peer_servers&) = delete;
    virtual ~peer_servers() = default;

    /// A file, by its key; nothing is shown of it yet. This outlives it.
    [[nodiscard]] virtual std::unique_ptr<peer_file> file(const vfs::file_key& key) = 0;
};

}  // namespace sluice::smb::server

template <>
inline constexpr bool sluice::smb::wire::is_bit_flags<sluice::smb::server::peer_sign> = true;

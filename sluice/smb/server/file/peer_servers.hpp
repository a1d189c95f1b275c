#pragma once

#include <cstdint>
#include <memory>

#include "sluice/base/result.hpp"
#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/sync/byte_range.hpp"
#include "sluice/vfs/metadata.hpp"

// Other servers, in other processes, that serve the same files. Each publishes what its clients do
// with a file, and checks what the others have published. The program supplies the implementation
// (sluice serve --shared-locks); the rules, and why they suffice, are in
// docs/algorithms/shared_locks.md.

namespace sluice::smb::server {

/// The share-mode lock bytes by which a server shows the others its use of one file. Each kind of
/// access has two: a client here uses it, and a client here denies it to others. While one server
/// shows one of the two, no other server may show its counterpart; several may show the same one.
/// Shared and exclusive locks alone cannot express that: two opens that read and deny writing would
/// each have to lock the denied access exclusively, and would conflict.
enum class share_mode_lock_byte : std::uint16_t {
    none = 0,
    has_open = 0x0001,  ///< the file or a stream of it, for any access
    reads = 0x0002,
    writes = 0x0004,
    removes = 0x0008,
    stream_stays = 0x0010,  ///< an open stream of it must stay, and so must the file
    denies_reading = 0x0020,
    denies_writing = 0x0040,
    denies_removing = 0x0080,
    goes = 0x0200,  ///< it is removed when all have closed it
};
inline constexpr unsigned share_mode_lock_byte_bits = 10;

enum class peer_lock : std::uint8_t { free, shared, exclusive };

/// The last byte that servers distinguish: they treat all bytes after it as one with it. Locks
/// there conflict more than they must, but the kernel's range (2^63) suffices for them and for the
/// lock bytes.
inline constexpr std::uint64_t peer_byte_last = INT64_MAX - 64;

/// One file as this server and the others see it. The lock bytes and locks of a server end with the
/// object, and with the process. No call waits: EAGAIN means that another server is checking the
/// file, as a rule for microseconds; the caller then tries again from the loop. Thread safety:
/// one thread at a time, that of an open file under its mutex. Blocks: for the file system.
class peer_file {
public:
    peer_file() noexcept = default;
    peer_file(const peer_file&) = delete;
    peer_file& operator=(const peer_file&) = delete;
    virtual ~peer_file() = default;

    /// Shows `up`, unless another server shows any of `unless`; checks and shows in one step.
    /// Returns the conflicting bytes (or `unless`, if they were not distinguished); none on
    /// success. Errors: EAGAIN; those of the files that store the bytes.
    [[nodiscard]] virtual result<share_mode_lock_byte> raise(share_mode_lock_byte up,
                                                             share_mode_lock_byte unless) noexcept = 0;
    /// Stops showing `down`.
    virtual void lower(share_mode_lock_byte down) noexcept = 0;

    /// Keeps the file from being open at, or opened by, any other server until
    /// end_exclusive_claim(). Errors: EBUSY if another server has it open; EAGAIN; as raise().
    [[nodiscard]] virtual result<void> claim_exclusively() noexcept = 0;
    virtual void end_exclusive_claim() noexcept = 0;

    /// Sets the locks of this server in a range that has bytes, the last at most peer_byte_last;
    /// replaces its previous locks there. Returns false if locks of others conflict, never for less
    /// than it had. Only while has_open is shown.
    [[nodiscard]] virtual bool lock(const sync::byte_range& where, peer_lock to) noexcept = 0;
    /// Returns whether the locks of other servers allow such a lock.
    [[nodiscard]] virtual bool is_lockable(const sync::byte_range& where, peer_lock to) noexcept = 0;
};

/// Thread safety: any thread.
class peer_servers {
public:
    peer_servers() noexcept = default;
    peer_servers(const peer_servers&) = delete;
    peer_servers& operator=(const peer_servers&) = delete;
    virtual ~peer_servers() = default;

    /// Returns a file, by its key; nothing is shown for it yet. This outlives it.
    [[nodiscard]] virtual std::unique_ptr<peer_file> file(const vfs::file_key& key) = 0;
};

}  // namespace sluice::smb::server

template <>
inline constexpr bool sluice::smb::wire::is_bit_flags<sluice::smb::server::share_mode_lock_byte> = true;

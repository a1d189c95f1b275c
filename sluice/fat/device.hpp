#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sluice/base/bytes.hpp"
#include "sluice/base/result.hpp"
#include "sluice/io/call/request.hpp"

namespace sluice::io {
class file_handle;
}

namespace sluice::fat {

/// The position of a byte of a device in a file of the host, for transfers that bypass the engine
/// (splice, clone).
struct file_location {
    io::file_handle* file = nullptr;  // lives as long as the device
    std::uint64_t offset = 0;         // bytes from the start of that file
    bool forgets = false;             // whether device::discard() can evict whole
                                      // pages there from memory
};

/// The bytes that contain a volume: the interface between the file system and image files,
/// partitions, memory, and the recorders and fault injectors of tests.
///
/// Invariants, of every implementation:
///   1. The size never changes while the device lives; no call accesses bytes outside it.
///   2. A transfer is complete or an error; after a failed write any part of its range may have
///      changed.
///   3. A read sees every write that returned before it began. A completed barrier makes durable
///      every write that returned before the barrier began, in any thread; without one, writes may
///      become durable in any order.
///
/// Thread safety: all members, from any thread. The caller excludes concurrent transfers of
/// overlapping ranges: a read that overlaps a concurrent write may return any mixture of old and
/// new bytes.
class device {
public:
    virtual ~device() = default;
    device(const device&) = delete;
    device& operator=(const device&) = delete;

    /// Bytes; at most 2^63-1. Complexity: O(1), no system call.
    [[nodiscard]] virtual std::uint64_t size_bytes() const noexcept = 0;

    /// Returns whether writes can succeed at all.
    [[nodiscard]] virtual bool is_writable() const noexcept = 0;

    /// Fills all `pieces`, in their order, with the bytes from `offset` on. The call may change the
    /// elements of `pieces`, but never memory outside the pieces.
    /// Errors: EIO, also for a range that reaches past the end; ESTALE. Allocates: nothing.
    /// Blocks: for the file system of the host.
    [[nodiscard]] virtual result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept = 0;

    /// Reads like read_at, but only bytes that are available without waiting. Returns false if it
    /// would have to wait, for a disk or another thread, or if the device cannot determine that;
    /// then `into` may hold anything.
    /// Errors: as read_at. Allocates, blocks: no.
    [[nodiscard]] virtual result<bool> try_read_at([[maybe_unused]] std::uint64_t offset,
                                                   [[maybe_unused]] std::span<std::byte> into) noexcept {
        return false;
    }

    /// Writes all `pieces` from `offset` (bytes) on. They are durable only after a barrier.
    /// Errors: EIO, also for a range that reaches past the end; EBADF if not writable; ENOSPC,
    /// EDQUOT (a sparse image on a full disk). Allocates: nothing. Blocks: for the file system of
    /// the host.
    [[nodiscard]] virtual result<void> write_at(std::uint64_t offset,
                                                io::const_buffers_type pieces) noexcept = 0;

    /// Makes completed writes durable (invariant 3), or, with a nowait kind, starts to.
    /// Errors: EIO, ENOSPC, EDQUOT: written data has been lost. Allocates: nothing. Blocks: for the
    /// disk.
    [[nodiscard]] virtual result<void> barrier(
        io::barrier_kind kind = io::barrier_kind::wait_data_only) noexcept = 0;

    /// Makes `range` (bytes) read as zeros. Frees its blocks if the host supports that; otherwise
    /// writes zeros. Counts as a write. Errors: as write_at. Allocates: nothing. Blocks: for the
    /// file system of the host.
    [[nodiscard]] virtual result<void> punch_hole(byte_extent range) noexcept = 0;

    /// Declares that the content of `range` (bytes) is no longer needed. The host frees its blocks
    /// where that needs no writes, and the range may then read as anything. Counts as a write, with
    /// no order. Only a hint: an implementation without support does nothing. Returns true if the
    /// host no longer has any of the range in memory. Then a reader of pages that were spliced
    /// before does not see later writes to the range. Blocks: for the file system of the host.
    virtual bool discard([[maybe_unused]] byte_extent range) noexcept { return false; }

    /// Ends a batch: the writes since the last call. A device with a journal makes a batch durable
    /// atomically, and not before this call; other devices rely on barriers. Errors: as barrier.
    [[nodiscard]] virtual result<void> end_batch() noexcept { return {}; }
    /// Returns whether a batch should end soon, before the device must end it in the middle.
    /// Complexity: O(1).
    [[nodiscard]] virtual bool wants_batch_end() noexcept { return false; }

    /// Returns the position of the byte at `offset` in a host file. All bytes of the device from
    /// `offset` on follow there contiguously. Returns std::nullopt if the device is not (part of) a
    /// file.
    [[nodiscard]] virtual std::optional<file_location> location_of(
        [[maybe_unused]] std::uint64_t offset) noexcept {
        return std::nullopt;
    }

    /// The same for a single piece. Errors, Blocks: as read_at and write_at.
    [[nodiscard]] result<void> read_at(std::uint64_t offset, std::span<std::byte> bytes) noexcept;
    [[nodiscard]] result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

protected:
    device() noexcept = default;

    /// Returns success if the range is inside the device, for invariant 1. Errors: EIO.
    [[nodiscard]] result<void> check_inside(byte_extent range, const char* operation) const noexcept;
};

/// Returns the total number of bytes of a list of pieces. Complexity: linear in the number of
/// pieces.
[[nodiscard]] std::uint64_t bytes_in(io::buffers_type pieces) noexcept;
[[nodiscard]] std::uint64_t bytes_in(io::const_buffers_type pieces) noexcept;

}  // namespace sluice::fat

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

/// Where a byte of a device stands in a file of the host, for transfers that bypass us (splice, clone).
struct file_place {
    io::file_handle* file = nullptr;  // lives as long as the device
    std::uint64_t offset = 0;         // bytes from the start of that file
    bool forgets = false;             // whether device::discard() can have the host forget whole pages there
};

/// The bytes a volume lives in: the seam between the file system and image files, partitions, memory, and
/// the recorders and fault injectors of tests.
///
/// Invariants, of every implementation:
///   1. The size never changes while the device lives; no call reaches outside it.
///   2. A transfer is whole or an error; after a failed write any part of its range may have changed.
///   3. A read sees every write that returned before it began. A completed barrier makes durable every write
///      that returned before it began, in any thread; without one, writes may become durable in any order.
///
/// Thread safety: all members, from any thread. Transfers of overlapping ranges at once are the caller's to
/// exclude: a read beside an overlapping write may return any mixture of old and new bytes.
class device {
public:
    virtual ~device() = default;
    device(const device&) = delete;
    device& operator=(const device&) = delete;

    /// Bytes; at most 2^63-1. Complexity: O(1), no system call.
    [[nodiscard]] virtual std::uint64_t size_bytes() const noexcept = 0;

    /// Whether writes can succeed at all.
    [[nodiscard]] virtual bool is_writable() const noexcept = 0;

    /// Fills all `pieces`, in their order, with what stands from `offset` (bytes) on. The elements of
    /// `pieces` may be changed by the call, never the memory of theirs beyond its size.
    /// Errors: EIO, also for a range that reaches past the end; ESTALE. Allocates: nothing.
    /// Blocks: for the file system below.
    [[nodiscard]] virtual result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept = 0;

    /// As read_at, of what is at hand; false if it would have to wait, for a disk or another thread, and then
    /// `into` may hold anything. Who does not know says false. Errors: as read_at. Allocates, blocks: no.
    [[nodiscard]] virtual result<bool> try_read_at([[maybe_unused]] std::uint64_t offset,
                                                   [[maybe_unused]] std::span<std::byte> into) noexcept {
        return false;
    }

    /// Writes all `pieces` from `offset` (bytes) on. Durable only after a barrier.
    /// Errors: EIO, also for a range that reaches past the end; EBADF if not writable; ENOSPC, EDQUOT (a
    /// sparse image on a full disk). Allocates: nothing. Blocks: for the file system below.
    [[nodiscard]] virtual result<void> write_at(std::uint64_t offset,
                                                io::const_buffers_type pieces) noexcept = 0;

    /// Makes what was written durable (invariant 3), or, with a nowait kind, starts to.
    /// Errors: EIO, ENOSPC, EDQUOT: written data has been lost. Allocates: nothing. Blocks: for the disk.
    [[nodiscard]] virtual result<void> barrier(
        io::barrier_kind kind = io::barrier_kind::wait_data_only) noexcept = 0;

    /// Makes `range` (bytes) read as zeros, giving its blocks back where the host can; elsewhere writes
    /// zeros. Counts as a write. Errors: as write_at. Allocates: nothing. Blocks: for the file system below.
    [[nodiscard]] virtual result<void> punch_hole(byte_extent range) noexcept = 0;

    /// What stands in `range` (bytes) is not needed any more: the host gets its blocks back where that costs
    /// no writing, and the range may read as anything then. Counts as a write, in what order ever. Only a
    /// hint: whoever cannot does nothing. True: the host has none of it in memory any more, so that who took
    /// its pages before (splice) does not see what is written there next. Blocks: for the file system below.
    virtual bool discard([[maybe_unused]] byte_extent range) noexcept { return false; }

    /// What was written since the last one may count together: a device with a journal makes it durable as a
    /// whole or not at all, and not before; for any other that is the barriers' business. Errors: as barrier.
    [[nodiscard]] virtual result<void> end_batch() noexcept { return {}; }
    /// Whether a batch should end soon, lest it be ended in the middle. Complexity: O(1).
    [[nodiscard]] virtual bool wants_batch_end() noexcept { return false; }

    /// Where the byte at `offset` stands in a host file; as many bytes behind it as the device has stand
    /// there contiguously. Nothing if the device is no (part of a) file.
    [[nodiscard]] virtual std::optional<file_place> place_of([[maybe_unused]] std::uint64_t offset) noexcept {
        return std::nullopt;
    }

    /// The same for a single piece. Errors, Blocks: as read_at and write_at.
    [[nodiscard]] result<void> read_at(std::uint64_t offset, std::span<std::byte> bytes) noexcept;
    [[nodiscard]] result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

protected:
    device() noexcept = default;

    /// Whether `length` bytes from `offset` lie inside, for invariant 1. Errors: EIO.
    [[nodiscard]] result<void> check_inside(byte_extent range, const char* operation) const noexcept;
};

/// How many bytes a list of pieces has together. Complexity: linear in the number of pieces.
[[nodiscard]] std::uint64_t bytes_in(io::buffers_type pieces) noexcept;
[[nodiscard]] std::uint64_t bytes_in(io::const_buffers_type pieces) noexcept;

}  // namespace sluice::fat

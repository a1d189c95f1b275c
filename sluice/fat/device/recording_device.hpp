#pragma once

#include <mutex>
#include <vector>

#include "sluice/fat/device.hpp"

namespace sluice::fat {

/// A device that records every write and barrier. A crash test can reconstruct the image at any
/// moment, also with the writes reordered by the disk.
///
/// Invariants:
///   1. The log holds every change since the construction or clear_log, in the order in which the
///      calls returned.
///   2. Writes between two barriers may have reached the disk in any subset and order; writes
///      before a barrier that waits have reached it.
/// Thread safety: as device; log() requires that no other call is in progress.
class recording_device final : public device {
public:
    enum class event_kind : std::uint8_t { write, hole, barrier };
    struct event {
        event_kind kind = event_kind::write;
        byte_extent range;             // for writes and holes
        std::vector<std::byte> bytes;  // for writes
    };

    /// `below` outlives this.
    explicit recording_device(device& below) noexcept : below_(below) {}

    [[nodiscard]] const std::vector<event>& log() const noexcept { return log_; }
    void clear_log() noexcept;

    /// Applies one event to `image`; barriers do nothing. Errors: those of the image.
    static result<void> replay(const event& one, device& image) noexcept;

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return below_.is_writable(); }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        return below_.read_at(offset, pieces);
    }
    /// Allocates: a copy of the written bytes.
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override;
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    bool discard(byte_extent range) noexcept override;
    using device::read_at;
    using device::write_at;

private:
    void remember(event one);

    device& below_;
    std::mutex mutex_;  // guards log_
    std::vector<event> log_;
};

}  // namespace sluice::fat

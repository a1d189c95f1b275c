#pragma once

#include <mutex>
#include <vector>

#include "sluice/fat/device.hpp"

namespace sluice::fat {

/// A device that remembers every write and barrier, so that a crash test can make the image as it was, or as
/// a disk that reorders might have left it, at any moment.
///
/// Invariants:
///   1. The log holds every change since the beginning or clear_log, in the order in which they returned.
///   2. Writes between two barriers may have reached the disk in any subset and order; those before a
///      barrier that waits have reached it.
/// Thread safety: as device; log() is for when nobody else is at work.
class recording_device final : public device {
public:
    enum class event_kind : std::uint8_t { write, hole, barrier };
    struct event {
        event_kind kind = event_kind::write;
        byte_extent range;             // of writes and holes
        std::vector<std::byte> bytes;  // of writes
    };

    /// `below` outlives this.
    explicit recording_device(device& below) noexcept : below_(below) {}

    [[nodiscard]] const std::vector<event>& log() const noexcept { return log_; }
    void clear_log() noexcept;

    /// Does to `image` what one event did; barriers do nothing. Errors: of the image.
    static result<void> replay(const event& one, device& image) noexcept;

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return below_.is_writable(); }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        return below_.read_at(offset, pieces);
    }
    /// Allocates: a copy of what is written.
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

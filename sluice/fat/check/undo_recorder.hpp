#pragma once

#include <memory>
#include <vector>

#include "sluice/fat/codec/undo_format.hpp"

namespace sluice::fat {

/// A volume whose original bytes are recorded: before a block changes for the first time, its
/// content is written to the undo file.
///
/// Invariants:
///   1. The record of a block is durable before the block changes in the image.
///   2. A block is recorded once, with what it held when the recorder began.
///   3. The header says `complete` only after all changes of the image are durable.
/// Thread safety: one thread.
class undo_recorder final : public device {
public:
    /// Begins a recording in an empty `log`, durably. Both devices outlive the recorder. `binding`
    /// has the image, the volume, a random id, and the range that fingerprints cover. Errors: those
    /// of the devices. Blocks: for both.
    [[nodiscard]] static result<std::unique_ptr<undo_recorder>> begin(device& volume, device& log,
                                                                      undo_binding binding);

    /// Ends the recording: undo will replace the current content of the image. `image_modified` is
    /// the time of its last modification. Errors: those of the devices.
    [[nodiscard]] result<void> finish(std::int64_t image_modified);
    /// Returns whether no block was recorded.
    [[nodiscard]] bool is_empty() const noexcept { return ranges_.empty(); }

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return volume_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return volume_.is_writable(); }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        return volume_.read_at(offset, pieces);
    }
    /// Errors: also those of the undo file; the image is unchanged then.
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(
        io::barrier_kind kind = io::barrier_kind::wait_data_only) noexcept override {
        return volume_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    using device::read_at;
    using device::write_at;

private:
    undo_recorder(device& volume, device& log, const undo_binding& binding)
        : volume_(volume),
          log_(log),
          binding_(binding),
          is_recorded_(volume.size_bytes() / undo_block_bytes + 1) {}
    [[nodiscard]] result<void> record(byte_extent range);
    [[nodiscard]] result<void> append(byte_extent range);
    [[nodiscard]] result<void> write_header();

    device& volume_;
    device& log_;
    undo_binding binding_;
    std::vector<bool> is_recorded_;    // by block
    std::vector<byte_extent> ranges_;  // in the order of their records
    std::uint64_t end_ = undo_records_offset;
};

}  // namespace sluice::fat

#pragma once

#include <memory>
#include <mutex>

#include "sluice/fat/device/file_device.hpp"

namespace sluice::fat {

/// A file as a device that is larger than it: what was never written reads as zeros, and the file is only as
/// long as what was written. For what we keep beside an image.
///
/// Invariant: the file has `present_bytes_` at least; it never gets shorter, but by empty().
/// Thread safety: as device.
class sparse_device final : public device {
public:
    /// Errors: of asking for the file's length; EINVAL if it is append-only. Allocates: nothing.
    [[nodiscard]] static result<std::unique_ptr<sparse_device>> over(io::file_handle file,
                                                                     std::uint64_t size_bytes);

    /// How much of it is really there.
    [[nodiscard]] std::uint64_t present_bytes() const noexcept;

    /// Takes everything away, durably. Nobody else is at work. Errors: of the file system below.
    [[nodiscard]] result<void> empty() noexcept;

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return below_.is_writable(); }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override;
    [[nodiscard]] result<bool> try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept override;
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(
        io::barrier_kind kind = io::barrier_kind::wait_data_only) noexcept override {
        return below_.barrier(kind);
    }
    /// Lengthens the file where need be. Errors: also EFBIG.
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    using device::read_at;
    using device::write_at;

private:
    sparse_device(file_device below, std::uint64_t present_bytes) noexcept
        : below_(std::move(below)), present_bytes_(present_bytes) {}

    file_device below_;
    mutable std::mutex length_;  // guards what follows, and the lengthening by holes
    std::uint64_t present_bytes_;
};

}  // namespace sluice::fat

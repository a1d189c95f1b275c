#pragma once

#include <memory>
#include <mutex>

#include "sluice/fat/device/file_device.hpp"

namespace sluice::fat {

/// A file as a device that is larger than the file: bytes that were never written read as zeros,
/// and the file is only as long as the data written. Used for the files next to an image, such as
/// journals and overlays.
///
/// Invariant: the file has at least `present_bytes_` bytes; only empty() makes it shorter.
/// Thread safety: as device.
class sparse_device final : public device {
public:
    /// Errors: those of the query of the file's length; EINVAL if it was opened for appending.
    /// Allocates: nothing.
    [[nodiscard]] static result<std::unique_ptr<sparse_device>> over(io::file_handle file,
                                                                     std::uint64_t size_bytes);

    /// Returns the current length of the file.
    [[nodiscard]] std::uint64_t present_bytes() const noexcept;

    /// Truncates the file to zero bytes, durably. No other call may be in progress. Errors: those
    /// of the host's file system.
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
    /// Extends the file if necessary. Errors: also EFBIG.
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    using device::read_at;
    using device::write_at;

private:
    sparse_device(file_device below, std::uint64_t present_bytes) noexcept
        : below_(std::move(below)), present_bytes_(present_bytes) {}

    file_device below_;
    mutable std::mutex length_;  // guards the members below, and the extension by holes
    std::uint64_t present_bytes_;
};

}  // namespace sluice::fat

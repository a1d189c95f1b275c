#pragma once

#include <atomic>

#include "sluice/fat/device.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::fat {

/// An image file, or a block device of the host, as a device.
///
/// Invariant: the size is the one the file had when the device was made, or the one given. Someone who cuts
/// the file meanwhile makes reads fail with EIO; nobody is killed by a signal, since nothing is mapped.
class file_device final : public device {
public:
    /// Takes over an open file. Errors: of asking for its length; EINVAL if it is append-only, where writes
    /// would all go to the end. Allocates: nothing.
    [[nodiscard]] static result<file_device> over(io::file_handle file) noexcept;

    /// The same, of `size_bytes` whatever the file has: writes past its end lengthen it, reads there fail.
    [[nodiscard]] static result<file_device> growing(io::file_handle file, std::uint64_t size_bytes) noexcept;

    file_device(file_device&& other) noexcept
        : file_(std::move(other.file_)),
          size_(other.size_),
          can_forget_(other.can_forget_),
          discards_(other.discards_.load()) {}
    file_device& operator=(file_device&&) = delete;

    /// Cuts the file of a growing device to nothing, durably. Nobody else is at work. Errors: as
    /// io::file_handle::truncate, barrier.
    [[nodiscard]] result<void> empty() noexcept;
    /// Makes the file of a growing device so long at least, with a hole at its end. One thread, and nobody
    /// who writes past the end meanwhile. Errors: as io::file_handle::truncate.
    [[nodiscard]] result<void> lengthen(std::uint64_t file_bytes) noexcept;

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return size_; }
    [[nodiscard]] bool is_writable() const noexcept override { return file_.native().writable; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override;
    [[nodiscard]] result<bool> try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept override;
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override;
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    /// Punches a hole of the whole blocks of the host in `range`; not into a block device, nor once that
    /// failed.
    bool discard(byte_extent range) noexcept override;
    [[nodiscard]] std::optional<file_place> place_of(std::uint64_t offset) noexcept override;
    using device::read_at;
    using device::write_at;

private:
    struct abilities {
        bool discards = false;
        bool can_forget = false;
    };
    file_device(io::file_handle file, std::uint64_t size, abilities can) noexcept
        : file_(std::move(file)), size_(size), can_forget_(can.can_forget), discards_(can.discards) {}
    [[nodiscard]] static result<file_device> make(io::file_handle file, std::uint64_t size_bytes,
                                                  bool discards) noexcept;

    io::file_handle file_;
    std::uint64_t size_;
    bool can_forget_;             // as long as it discards
    std::atomic<bool> discards_;  // relaxed: a hint
};

}  // namespace sluice::fat

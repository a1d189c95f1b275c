#pragma once

#include <atomic>

#include "sluice/fat/device.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::fat {

/// An image file, or a block device of the host, as a device.
///
/// Invariant: the size is that of the file when the device was created, or the given one. If
/// another process truncates the file, reads fail with EIO. No process receives a signal, because
/// the file is not mapped.
class file_device final : public device {
public:
    /// Takes ownership of an open file. Errors: those of the query of its length; EINVAL if it was
    /// opened for appending, where all writes would go to the end. Allocates: nothing.
    [[nodiscard]] static result<file_device> over(io::file_handle file) noexcept;

    /// The same, with `size_bytes` instead of the length of the file: writes past its end extend
    /// it, reads there fail.
    [[nodiscard]] static result<file_device> growing(io::file_handle file, std::uint64_t size_bytes) noexcept;

    file_device(file_device&& other) noexcept
        : file_(std::move(other.file_)),
          size_(other.size_),
          can_forget_(other.can_forget_),
          discards_(other.discards_.load()) {}
    file_device& operator=(file_device&&) = delete;

    /// Truncates the file of a growing device to zero bytes, durably. No other call may be in
    /// progress. Errors: as io::file_handle::truncate, barrier.
    [[nodiscard]] result<void> empty() noexcept;
    /// Extends the file of a growing device to at least `file_bytes`, with a hole at its end. Call
    /// it from one thread, with no concurrent writes past the end. Errors: as
    /// io::file_handle::truncate.
    [[nodiscard]] result<void> lengthen(std::uint64_t file_bytes) noexcept;

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return size_; }
    [[nodiscard]] bool is_writable() const noexcept override { return file_.native().writable; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override;
    [[nodiscard]] result<bool> try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept override;
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override;
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    /// Punches a hole of the host's whole blocks in `range`. Does nothing on a block device, or
    /// once the operation has failed.
    bool discard(byte_extent range) noexcept override;
    [[nodiscard]] std::optional<file_location> location_of(std::uint64_t offset) noexcept override;
    using device::read_at;
    using device::write_at;

private:
    struct capabilities {
        bool discards = false;
        bool can_forget = false;
    };
    file_device(io::file_handle file, std::uint64_t size, capabilities can) noexcept
        : file_(std::move(file)), size_(size), can_forget_(can.can_forget), discards_(can.discards) {}
    [[nodiscard]] static result<file_device> make(io::file_handle file, std::uint64_t size_bytes,
                                                  bool discards) noexcept;

    io::file_handle file_;
    std::uint64_t size_;
    bool can_forget_;             // while discards_ is set
    std::atomic<bool> discards_;  // relaxed: a hint
};

}  // namespace sluice::fat

#pragma once

#include "sluice/fat/device.hpp"

namespace sluice::fat {

/// A range of another device as a device: a partition. The other device outlives it.
///
/// Invariant: the range is inside the other device, so an offset checked here is valid there.
class partition_device final : public device {
public:
    /// Errors: EINVAL if `range` (bytes) reaches outside `whole`. Allocates: nothing.
    [[nodiscard]] static result<partition_device> of(device& whole, byte_extent range) noexcept;

    partition_device(partition_device&& other) noexcept : whole_(other.whole_), range_(other.range_) {}
    partition_device& operator=(partition_device&&) = delete;

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return range_.length; }
    [[nodiscard]] bool is_writable() const noexcept override { return whole_.is_writable(); }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override;
    [[nodiscard]] result<bool> try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept override;
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override {
        return whole_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    bool discard(byte_extent range) noexcept override;
    [[nodiscard]] std::optional<file_location> location_of(std::uint64_t offset) noexcept override {
        return whole_.location_of(range_.offset + offset);
    }
    using device::read_at;
    using device::write_at;

private:
    partition_device(device& whole, byte_extent range) noexcept : whole_(whole), range_(range) {}

    device& whole_;
    byte_extent range_;
};

}  // namespace sluice::fat

#pragma once

#include <vector>

#include "sluice/fat/device.hpp"

namespace sluice::fat {

/// Bytes in memory as a device, for tests and fuzzing. Barriers do nothing.
class memory_device final : public device {
public:
    /// Creates a device of zeros. Allocates: `size_bytes`.
    explicit memory_device(std::size_t size_bytes) : bytes_(size_bytes) {}
    explicit memory_device(std::vector<std::byte> bytes) noexcept : bytes_(std::move(bytes)) {}

    /// Returns the bytes themselves, to inspect or damage them; not during transfers.
    [[nodiscard]] std::span<std::byte> bytes() noexcept { return bytes_; }

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return bytes_.size(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override;
    [[nodiscard]] result<bool> try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept override;
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(io::barrier_kind) noexcept override { return {}; }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    /// Sets the range to zeros.
    bool discard(byte_extent range) noexcept override;
    using device::read_at;
    using device::write_at;

private:
    std::vector<std::byte> bytes_;
};

}  // namespace sluice::fat

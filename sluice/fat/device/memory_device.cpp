#include "sluice/fat/device/memory_device.hpp"

#include <cstring>

namespace sluice::fat {

result<void> memory_device::read_at(std::uint64_t offset, io::buffers_type pieces) noexcept {
    const byte_extent range{offset, bytes_in(pieces)};
    if (const auto inside = check_inside(range, "read past the end of the image"); not inside) return inside;
    for (const io::buffer& piece : pieces) {
        if (piece.size() != 0) std::memcpy(piece.data(), bytes_.data() + offset, piece.size());
        offset += piece.size();
    }
    return {};
}

result<bool> memory_device::try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept {
    const auto done = read_at(offset, into);
    return done ? result<bool>(true) : failure(done.error());
}

result<void> memory_device::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    const byte_extent range{offset, bytes_in(pieces)};
    if (const auto inside = check_inside(range, "write past the end of the image"); not inside) return inside;
    for (const io::const_buffer& piece : pieces) {
        if (piece.size() != 0) std::memcpy(bytes_.data() + offset, piece.data(), piece.size());
        offset += piece.size();
    }
    return {};
}

result<void> memory_device::punch_hole(byte_extent range) noexcept {
    if (const auto inside = check_inside(range, "hole past the end of the image"); not inside) return inside;
    if (range.length != 0) std::memset(bytes_.data() + range.offset, 0, range.length);
    return {};
}

bool memory_device::discard(byte_extent range) noexcept {
    (void)punch_hole(range);
    return false;
}

}  // namespace sluice::fat

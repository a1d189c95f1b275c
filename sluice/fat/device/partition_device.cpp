#include "sluice/fat/device/partition_device.hpp"

namespace sluice::fat {

result<partition_device> partition_device::of(device& whole, byte_extent range) noexcept {
    const std::uint64_t size = whole.size_bytes();
    if (range.offset > size or range.length > size - range.offset)
        return failure({EINVAL, "partition past the end of the image"});
    return partition_device(whole, range);
}

result<void> partition_device::read_at(std::uint64_t offset, io::buffers_type pieces) noexcept {
    if (const auto inside = check_inside({offset, bytes_in(pieces)}, "read past the end of the partition");
        not inside)
        return inside;
    return whole_.read_at(range_.offset + offset, pieces);
}

result<bool> partition_device::try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept {
    if (const auto inside = check_inside({offset, into.size()}, "read past the end of the partition");
        not inside)
        return failure(inside.error());
    return whole_.try_read_at(range_.offset + offset, into);
}

result<void> partition_device::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    if (const auto inside = check_inside({offset, bytes_in(pieces)}, "write past the end of the partition");
        not inside)
        return inside;
    return whole_.write_at(range_.offset + offset, pieces);
}

result<void> partition_device::punch_hole(byte_extent range) noexcept {
    if (const auto inside = check_inside(range, "hole past the end of the partition"); not inside)
        return inside;
    return whole_.punch_hole({range_.offset + range.offset, range.length});
}

bool partition_device::discard(byte_extent range) noexcept {
    return check_inside(range, "discard") and whole_.discard({range_.offset + range.offset, range.length});
}

}  // namespace sluice::fat

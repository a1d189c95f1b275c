#include "sluice/fat/device.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

template <class Pieces>
std::uint64_t total_of(Pieces pieces) noexcept {
    std::uint64_t total = 0;
    for (const auto& piece : pieces)
        total += piece.size();
    return total;
}

}  // namespace

std::uint64_t bytes_in(io::buffers_type pieces) noexcept {
    return total_of(pieces);
}
std::uint64_t bytes_in(io::const_buffers_type pieces) noexcept {
    return total_of(pieces);
}

result<void> device::read_at(std::uint64_t offset, std::span<std::byte> bytes) noexcept {
    io::buffer piece(bytes);
    return read_at(offset, io::buffers_type(&piece, 1));
}

result<void> device::write_at(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    io::const_buffer piece(bytes);
    return write_at(offset, io::const_buffers_type(&piece, 1));
}

result<void> device::check_inside(byte_extent range, const char* operation) const noexcept {
    const std::uint64_t size = size_bytes();
    ENSURE(size <= INT64_MAX, "sizes of devices have 63 bits");
    if (range.offset > size or range.length > size - range.offset) return failure({EIO, operation});
    return {};
}

}  // namespace sluice::fat

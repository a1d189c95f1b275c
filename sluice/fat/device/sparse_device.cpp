#include "sluice/fat/device/sparse_device.hpp"

#include <algorithm>

namespace sluice::fat {

result<std::unique_ptr<sparse_device>> sparse_device::over(io::file_handle file, std::uint64_t size_bytes) {
    const auto length = file.maximum_extent();
    if (not length) return failure(length.error());
    auto below = file_device::growing(std::move(file), size_bytes);
    if (not below) return failure(below.error());
    return std::unique_ptr<sparse_device>(new sparse_device(*std::move(below), *length));
}

std::uint64_t sparse_device::present_bytes() const noexcept {
    const std::scoped_lock guard(length_);
    return present_bytes_;
}

result<void> sparse_device::empty() noexcept {
    const std::scoped_lock guard(length_);
    present_bytes_ = 0;
    return below_.empty();
}

result<void> sparse_device::read_at(std::uint64_t offset, io::buffers_type pieces) noexcept {
    const std::uint64_t wanted = bytes_in(pieces);
    if (const auto inside = check_inside({offset, wanted}, "read past the end"); not inside) return inside;
    const std::uint64_t present = present_bytes();
    if (offset < present and wanted <= present - offset) return below_.read_at(offset, pieces);
    for (const io::buffer& each : pieces) {
        const std::uint64_t there =
            std::min<std::uint64_t>(each.size(), present > offset ? present - offset : 0);
        const auto front = each.bytes().first(static_cast<std::size_t>(there));
        if (not front.empty())
            if (const auto read = below_.device::read_at(offset, front); not read) return read;
        std::ranges::fill(each.bytes().subspan(front.size()), std::byte{});
        offset += each.size();
    }
    return {};
}

// Another thread holds `length_` while it extends the file.
result<bool> sparse_device::try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept {
    if (const auto inside = check_inside({offset, into.size()}, "read past the end"); not inside)
        return failure(inside.error());
    std::uint64_t present = 0;
    {
        const std::unique_lock guard(length_, std::try_to_lock);
        if (not guard) return false;
        present = present_bytes_;
    }
    const auto there = into.first(static_cast<std::size_t>(
        std::min<std::uint64_t>(into.size(), present > offset ? present - offset : 0)));
    std::ranges::fill(into.subspan(there.size()), std::byte{});
    return there.empty() ? result<bool>(true) : below_.try_read_at(offset, there);
}

result<void> sparse_device::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    const std::uint64_t length = bytes_in(pieces);
    if (const auto inside = check_inside({offset, length}, "write past the end"); not inside) return inside;
    std::unique_lock guard(length_);
    // Only one thread at a time extends the file: a hole at its end must not truncate concurrent
    // writes of another thread.
    if (offset + length <= present_bytes_) guard.unlock();
    const auto done = below_.write_at(offset, pieces);
    if (done and guard.owns_lock()) present_bytes_ = offset + length;
    return done;
}

result<void> sparse_device::punch_hole(byte_extent range) noexcept {
    if (const auto inside = check_inside(range, "hole past the end"); not inside) return inside;
    const std::scoped_lock guard(length_);
    if (range.offset + range.length > present_bytes_) {
        const auto longer = below_.lengthen(range.offset + range.length);
        if (not longer) return longer;
        present_bytes_ = range.offset + range.length;
    }
    return below_.punch_hole(range);
}

}  // namespace sluice::fat

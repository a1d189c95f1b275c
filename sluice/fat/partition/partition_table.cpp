#include "sluice/fat/partition/partition_table.hpp"

#include <algorithm>

namespace sluice::fat {

const partition* partition_table::find(std::uint32_t number) const noexcept {
    const auto found = std::ranges::find(partitions, number, &partition::number);
    return found == partitions.end() ? nullptr : &*found;
}

std::optional<partition> partition_inside(const device& image, byte_extent range) noexcept {
    const std::uint64_t size = image.size_bytes();
    if (range.offset >= size or range.length == 0) return std::nullopt;
    partition found;
    found.range = {.offset = range.offset, .length = std::min(range.length, size - range.offset)};
    found.is_cut = found.range.length != range.length;
    return found;
}

}  // namespace sluice::fat

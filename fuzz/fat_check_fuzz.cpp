// A small volume with some of its bytes changed: check and repair end, and if the first repair made
// the volume consistent, a second one changes nothing.
//
// The input: a byte that selects the FAT type, then changes: the area (a byte: FAT, root, a
// directory, the boot sector), the offset (two bytes) and the new byte.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/fat/check/damaged_image_testing.hpp"
#include "sluice/fat/check/repair.hpp"

namespace {

using namespace sluice;

struct change {
    le8 area;
    le16 offset;
    le8 value;
};

fat::sample_volume& volume_of(unsigned choice) {
    static std::array volumes = {std::make_unique<fat::sample_volume>(fat::fat_type::fat12),
                                 std::make_unique<fat::sample_volume>(fat::fat_type::fat16),
                                 std::make_unique<fat::sample_volume>(fat::fat_type::fat32)};
    return *volumes[choice % volumes.size()];
}

void apply(byte_reader& input, const fat::geometry& shape, std::span<std::byte> image) {
    const std::uint64_t root =
        shape.type == fat::fat_type::fat32 ? shape.cluster_offset(2) : shape.root_offset;
    const std::array<std::uint64_t, 4> areas = {shape.fat_offset, root, shape.cluster_offset(12), 0};
    while (const auto one = input.take<change>())
        image[areas[one->area.value() % areas.size()] + one->offset.value() % 1024] =
            static_cast<std::byte>(one->value.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    byte_reader input(bytes_view(reinterpret_cast<const std::byte*>(data), size));
    const auto choice = input.take<le8>();
    if (not choice) return 0;
    fat::sample_volume& sample = volume_of(choice->value());
    const auto used = sample.image().bytes().first(sample.shape.volume_bytes);
    fat::memory_device image(std::vector<std::byte>(used.begin(), used.end()));
    apply(input, sample.shape, image.bytes());

    const auto report = fat::check(image);
    if (not report) return 0;
    ENSURE(not json_of(*report).empty());
    const auto repaired = fat::repair(image);
    if (not repaired or not repaired->after.is_consistent()) return 0;
    const auto again = fat::repair(image);
    ENSURE(again.has_value() and again->actions.empty());
    return 0;
}

// Any bytes as an image with a partition table: every partition is inside the
// image, and numbers ascend.

#include <cstdint>
#include <vector>

#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/limits.hpp"
#include "sluice/fat/partition/partition.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice;
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    fat::memory_device image(std::vector<std::byte>(bytes, bytes + size));
    const auto table = fat::read_partitions(image);
    ENSURE(table.has_value());
    ENSURE(table->partitions.size() <= fat::limits::partitions_max);
    std::uint32_t before = 0;
    for (const fat::partition& each : table->partitions) {
        ENSURE(each.range.length != 0 and each.range.offset < size);
        ENSURE(each.range.length <= size - each.range.offset);
        ENSURE(each.number > before);
        before = each.number;
    }
    const auto found = fat::find_volume(image, {});
    ENSURE(found.has_value() or not found.error().message.empty());
    return 0;
}

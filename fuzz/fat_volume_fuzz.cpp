// Random calls on a damaged volume. The input: the number of patches, each an offset of three
// bytes and a byte; then calls, of two bytes each. Created files stay open until the volume is
// unmounted and mounted again. No call stops the program or hangs, and a volume that was mounted
// can be mounted again.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/edit/format.hpp"
#include "sluice/fat/engine/file_system.hpp"

namespace {

using namespace sluice;
using fat::file_system;

constexpr std::size_t image_bytes = 160 << 10;
constexpr std::array names{"a", "b/c", "b/A long name for a file", "b", "b/d/e", "b/d", "NEW"};

// Returns the volume to damage, created once.
const std::vector<std::byte>& consistent_image() {
    static const std::vector<std::byte> made = [] {
        fat::memory_device image(image_bytes);
        const auto plan = fat::plan_format(image_bytes, {}).value();
        ENSURE(fat::format(image, plan).has_value());
        const simulated_clock clock;
        const auto fs = file_system::mount(image, plan.shape, clock, {.zone = fat::time_zone::utc()}).value();
        const std::vector<std::byte> content(3000, std::byte{'x'});
        for (const char* const path : {"b", "b/d"})
            ENSURE(fs->create(path, true, fat::attributes::none).has_value());
        for (const char* const path : {"a", "b/c", "b/A long name for a file", "b/d/e"}) {
            const auto file = fs->create(path, false, fat::attributes::none).value();
            fat::run_list::hint hint;
            ENSURE(fs->write(*file, hint, content, 0).has_value());
        }
        ENSURE(fs->unmount().has_value());
        return std::vector<std::byte>(image.bytes().begin(), image.bytes().end());
    }();
    return made;
}

void call(file_system& fs, std::vector<fat::inode_handle>& open, std::uint8_t what, std::uint8_t how) {
    const char* const path = names[how % names.size()];
    const std::uint64_t offset = std::uint64_t{how} * 700;
    std::array<std::byte, 2000> part{};
    if (what % 10 == 0) {
        if (auto made = fs.create(path, what % 20 == 0, fat::attributes::none))
            open.push_back(std::move(*made));
        return;
    }
    const auto found = fs.find(path);
    if (not found) return;
    fat::run_list::hint hint;
    switch (what % 10) {
        case 1:
            (void)fs.remove(**found);
            break;
        case 2:
            (void)fs.rename(**found, names[(how / 8U) % names.size()], file_system::if_taken::replace);
            break;
        case 3:
            (void)fs.write(**found, hint, part, offset);
            break;
        case 4:
            (void)fs.truncate(**found, offset);
            break;
        case 5:
            (void)fs.read(**found, hint, part, offset);
            break;
        case 6:
            (void)fs.flush(**found);
            break;
        case 7:
            for (std::uint32_t slot = 0;;) {
                const auto next = fs.list(**found, slot);
                if (not next or not*next) break;
                slot = (*next)->slot + 1;
            }
            break;
        case 8:
            (void)fs.for_each_extent(**found, {.offset = offset, .length = 1U << 20},
                                     [](const file_system::piece&) { return true; });
            break;
        default:
            (void)fs.commit();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fat::memory_device image(consistent_image());
    byte_reader input(bytes_view(std::as_bytes(std::span(data, size))));
    const auto patches = input.take<le8>();
    if (not patches) return 0;
    for (unsigned i = 0; i < patches->value(); ++i) {
        const auto where = input.take<le32>();  // three bytes of offset, one of the new value
        if (not where) break;
        // The table and the root directory come first.
        image.bytes()[(where->value() & 0xff'ffffU) % image_bytes] =
            static_cast<std::byte>(where->value() >> 24);
    }
    const simulated_clock clock;
    for (int round = 0; round < 2; ++round) {
        const auto shape = fat::read_geometry(image);
        if (not shape) return 0;
        const auto fs = file_system::mount(image, *shape, clock, {.zone = fat::time_zone::utc()});
        if (not fs) return 0;
        std::vector<fat::inode_handle> open;
        while (const auto each = input.take<le16>())
            call(**fs, open, static_cast<std::uint8_t>(each->value()),
                 static_cast<std::uint8_t>(each->value() >> 8));
        (void)(*fs)->free_clusters();
    }
    return 0;
}

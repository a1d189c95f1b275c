// Any bytes as an overlay of a small image: opening ends. An overlay that opens can be read,
// written and flushed, and contains the written bytes after it is opened again.
//
// The input: the overlay's header, then entries (slot 2 bytes, block 2, whether its checksum is
// right 1), which would not fit into the input otherwise. If only the checksum of a header is
// wrong, it is corrected, because no overlay would open otherwise.

#include <cstdint>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/device/overlay_device.hpp"

namespace {

using namespace sluice;

constexpr std::size_t image_bytes = 700'000;

struct wanted_entry {
    le16 slot;
    le16 block;
    le8 is_wrong;
};

void fill(byte_reader& input, fat::memory_device& store) {
    auto header = input.take<fat::overlay_header>();
    if (not header) return;
    header->checksum = le32(fat::crc32(
        bytes_view(reinterpret_cast<const std::byte*>(&*header), offsetof(fat::overlay_header, checksum))));
    (void)store.write_at(0, std::as_bytes(std::span(&*header, 1)));
    const auto binding = fat::decode(*header);
    if (not binding) return;
    while (const auto one = input.take<wanted_entry>()) {
        auto entry = fat::encode_entry(*binding, one->slot.value(), one->block.value());
        if (one->is_wrong.value() % 16 == 1) entry.checksum = le32(entry.checksum.value() + 1);
        (void)store.write_at(binding->layout.entry_offset(one->slot.value()),
                             std::as_bytes(std::span(&entry, 1)));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fat::memory_device image(image_bytes);
    fat::memory_device store(
        static_cast<std::size_t>(fat::overlay_layout::for_image(image_bytes).store_bytes()));
    byte_reader input(bytes_view(reinterpret_cast<const std::byte*>(data), size));
    fill(input, store);
    const auto opened = fat::overlay_device::open(image, store, store.size_bytes());
    if (not opened) {
        ENSURE(not opened.error().empty());
        return 0;
    }
    fat::device& overlay = **opened;
    std::vector<std::byte> before(image_bytes);
    ENSURE(overlay.read_at(0, before).has_value());
    const std::vector<std::byte> bytes(9000, std::byte{7});
    ENSURE(overlay.write_at(5000, std::span<const std::byte>(bytes)).has_value());
    ENSURE(overlay.punch_hole({.offset = 100'000, .length = 20'000}).has_value());
    ENSURE(overlay.barrier().has_value());
    std::ranges::copy(bytes, before.begin() + 5000);
    std::ranges::fill_n(before.begin() + 100'000, 20'000, std::byte{});
    const auto again = fat::overlay_device::open(image, store, store.size_bytes());
    ENSURE(again.has_value());
    std::vector<std::byte> after(image_bytes);
    ENSURE((*again)->read_at(0, after).has_value());
    ENSURE(before == after);
    return 0;
}

// Any bytes as an undo file of a small image: opening ends, and a file that opens is applied
// inside the volume only.
//
// The input: the header, then records (offset 3 bytes and length 2 in the volume, whether the
// checksum is right 1). If only the checksum of a header is wrong, it is corrected, because no file
// would open otherwise; so is the length of the log.

#include <cstdint>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/fat/check/undo_log.hpp"
#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/device/memory_device.hpp"

namespace {

using namespace sluice;

constexpr std::size_t image_bytes = 300'000;
constexpr std::size_t log_bytes_max = 4 << 20;

struct wanted_record {
    le16 offset;
    le8 offset_high;
    le16 length;
    le8 is_wrong;
};

void seal(fat::undo_header& header) {
    header.checksum = le32(fat::crc32(
        bytes_view(reinterpret_cast<const std::byte*>(&header), offsetof(fat::undo_header, checksum))));
}

// Returns the length of the file.
std::uint64_t fill(byte_reader& input, fat::memory_device& log) {
    auto header = input.take<fat::undo_header>();
    if (not header) return 0;
    seal(*header);
    const auto binding = fat::decode(*header);
    std::uint64_t end = fat::undo_records_offset;
    while (const auto one = input.take<wanted_record>()) {
        if (not binding) break;
        const std::uint64_t offset = one->offset.value() | std::uint64_t{one->offset_high.value()} << 16;
        const std::vector<std::byte> bytes(one->length.value(), std::byte{0xa7});
        if (end + sizeof(fat::undo_record) + bytes.size() > log.size_bytes()) break;
        fat::undo_record record{.offset = le64(offset), .length = le32(one->length.value()), .checksum = {}};
        const std::uint32_t sum =
            fat::checksum_of(*binding, end, record, bytes_view(bytes.data(), bytes.size()));
        record.checksum = le32(one->is_wrong.value() % 16 == 1 ? sum + 1 : sum);
        (void)log.write_at(end, std::as_bytes(std::span(&record, 1)));
        (void)log.write_at(end + sizeof record, std::span<const std::byte>(bytes));
        end += sizeof record + bytes.size();
    }
    if (header->log_bytes.value() == fat::undo_records_offset) header->log_bytes = le64(end);
    seal(*header);
    (void)log.write_at(0, std::as_bytes(std::span(&*header, 1)));
    return end;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fat::memory_device image(image_bytes);
    fat::memory_device log(log_bytes_max);
    byte_reader input(bytes_view(reinterpret_cast<const std::byte*>(data), size));
    const std::uint64_t present = fill(input, log);
    auto opened = fat::undo_log::open(log, present);
    if (not opened) {
        ENSURE(not opened.error().empty());
        return 0;
    }
    const auto fits = opened->check_image(image, 5);
    ENSURE(fits.has_value() or not fits.error().empty());
    const byte_extent volume = opened->binding().volume;
    const bool is_inside = volume.offset <= image_bytes and volume.length <= image_bytes - volume.offset;
    const auto done = opened->apply(image);
    ENSURE(done.has_value() == is_inside);
    std::uint64_t changed = 0;
    for (std::uint64_t at = 0; at != image_bytes; ++at) {
        if (image.bytes()[at] == std::byte{}) continue;
        ++changed;
        ENSURE(at >= volume.offset and at - volume.offset < volume.length);
    }
    ENSURE(changed == (is_inside ? opened->recorded_bytes() : 0));
    if (not done) return 0;
    const auto again = fat::undo_log::open(log, present);
    ENSURE(again.has_value() and again->binding().state == fat::undo_state::undone);
    return 0;
}

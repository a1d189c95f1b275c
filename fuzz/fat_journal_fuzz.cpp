// Any bytes as a journal of a small volume: opening ends, and a journal that opens is read,
// applied, and then empty.
//
// The input: whether the volume is marked dirty (a byte), the header without its checksum, which is
// computed, then records with the bytes that follow them. The byte before each record selects
// whether its checksums are corrected.

#include <cstdint>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/device/journal_device.hpp"
#include "sluice/fat/device/memory_device.hpp"

namespace {

using namespace sluice;

constexpr std::size_t volume_bytes = 100'000;

template <class T>
bytes_view view_of(const T& what, std::size_t bytes = sizeof(T)) {
    return {reinterpret_cast<const std::byte*>(&what), bytes};
}

// The volume is all zeros, so its fingerprint is known.
fat::journal_header mended(fat::journal_header header) {
    const std::vector<std::byte> start(512);
    header.fingerprint = le32(fat::crc32(bytes_view(start.data(), start.size())));
    header.volume_bytes = le64(volume_bytes);
    header.volume_offset = le64(0);
    header.checksum = le32(fat::crc32(view_of(header, offsetof(fat::journal_header, checksum))));
    return header;
}

void fill(byte_reader& input, const fat::journal_header& header, fat::memory_device& log) {
    (void)log.write_at(0, std::as_bytes(std::span(&header, 1)));
    const auto binding = fat::decode(header);
    if (not binding) return;
    std::uint64_t place = fat::journal_records_offset;
    while (const auto is_right = input.take<le8>()) {
        auto record = input.take<fat::journal_record>();
        if (not record) return;
        const bool is_write = record->kind.value() == static_cast<std::uint32_t>(fat::journal_kind::write);
        std::vector<std::byte> payload(is_write ? record->length.value() % 1024 : 0, std::byte{5});
        if (is_right->value() % 8 != 1) {
            record->payload_checksum = le32(fat::crc32(bytes_view(payload.data(), payload.size())));
            record->generation = le64(binding->generation);
            record->checksum = le32(fat::checksum_of(*binding, *record, place));
        }
        (void)log.write_at(place, std::as_bytes(std::span(&*record, 1)));
        (void)log.write_at(place + sizeof *record, std::span<const std::byte>(payload));
        place = (place + sizeof *record + payload.size() + 7) / 8 * 8;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    byte_reader input(bytes_view(reinterpret_cast<const std::byte*>(data), size));
    const auto is_dirty = input.take<le8>();
    const auto header = input.take<fat::journal_header>();
    if (not is_dirty or not header) return 0;
    fat::memory_device volume(volume_bytes);
    fat::memory_device log(fat::journal_bytes_min);
    volume.bytes()[37] = static_cast<std::byte>(is_dirty->value() & 1);
    fill(input, mended(*header), log);
    const fat::journal_device::place where{.in_image = {.offset = 0, .length = volume_bytes},
                                           .dirty_mark = 37};
    const auto opened = fat::journal_device::open(volume, log, where, false);
    if (not opened) {
        ENSURE(not opened.error().empty());
        return 0;
    }
    std::vector<std::byte> before(volume_bytes);
    ENSURE((*opened)->read_at(0, before).has_value());
    ENSURE((*opened)->recover().has_value());
    ENSURE((*opened)->pending_batches() == 0);
    std::vector<std::byte> after(volume_bytes);
    ENSURE((*opened)->read_at(0, after).has_value());
    ENSURE(before == after);
    return 0;
}

// Any 512 bytes as a boot sector: refused with a message, or a geometry with the invariants on
// which all of the FAT code relies.

#include <cstdint>
#include <span>

#include "sluice/fat/codec/boot_sector.hpp"

namespace {

using namespace sluice;

void check_geometry(const fat::geometry& shape) {
    ENSURE(shape.sector_bytes >= 512 and shape.sector_bytes <= 4096);
    ENSURE(shape.cluster_bytes == shape.sector_bytes * shape.sectors_per_cluster);
    ENSURE(shape.active_fat < shape.fat_count);
    ENSURE(shape.fat_copy_offset(shape.fat_count - 1) + shape.fat_bytes <= shape.root_offset);
    ENSURE(shape.root_offset + std::uint64_t{shape.root_entries} * 32 <= shape.data_offset);
    ENSURE(shape.data_offset <= shape.volume_bytes);
    if (shape.cluster_count == 0) return;
    ENSURE(shape.fat_used_bytes() <= shape.fat_bytes);
    ENSURE(shape.cluster_offset(shape.last_cluster()) + shape.cluster_bytes <= shape.volume_bytes);
    ENSURE(shape.last_cluster() < fat::bad_entry(shape.type));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto sector = bytes.take<fat::boot_sector>();
    if (not sector) return 0;
    const auto shape = fat::decode_boot_sector(*sector, std::uint64_t{1} << 40);
    if (shape) {
        check_geometry(*shape);
    } else {
        ENSURE(not shape.error().message().empty());
    }
    return 0;
}

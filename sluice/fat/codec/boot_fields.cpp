#include "sluice/fat/codec/boot_fields.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

using enum field_role;

constexpr boot_field fields[] = {
    {"jump", "the jump instruction", 0, 3, mark},
    {"oem_name", "the OEM name", 3, 8, text},
    {"bytes_per_sector", "bytes per sector", 11, 2, layout},
    {"sectors_per_cluster", "sectors per cluster", 13, 1, layout},
    {"reserved_sectors", "reserved sectors", 14, 2, layout},
    {"fat_count", "number of FATs", 16, 1, layout},
    {"root_entries", "root entries", 17, 2, layout},
    {"total_sectors_16", "total sectors (16 bits)", 19, 2, layout},
    {"media", "the media byte", 21, 1, layout},
    {"fat_sectors_16", "sectors per FAT (16 bits)", 22, 2, layout},
    {"sectors_per_track", "sectors per track", 24, 2, machine},
    {"heads", "heads", 26, 2, machine},
    {"hidden_sectors", "hidden sectors", 28, 4, machine},
    {"total_sectors_32", "total sectors", 32, 4, layout},
    {"fat_sectors_32", "sectors per FAT", 36, 4, layout},
    {"flags", "the flags of the FATs", 40, 2, layout},
    {"version", "the version", 42, 2, layout},
    {"root_cluster", "the first cluster of the root", 44, 4, layout},
    {"info_sector", "the sector of FSInfo", 48, 2, layout},
    {"backup_sector", "the sector of the backup", 50, 2, layout},
    {"drive", "the drive number", 64, 1, machine},
    {"extended_signature", "the extended signature", 66, 1, mark},
    {"serial", "the volume ID", 67, 4, text},
    {"label", "the label", 71, 11, text},
    {"type_name", "the name of the type", 82, 8, text},
    {"code", "the boot code", 90, 420, text},
    {"signature", "the signature 55 AA", 510, 2, mark},
};

std::byte* bytes_at(boot_sector& sector, const boot_field& field) noexcept {
    ENSURE(field.offset + field.bytes <= sizeof sector, "a field of the boot sector");
    return reinterpret_cast<std::byte*>(&sector) + field.offset;
}
const std::byte* bytes_at(const boot_sector& sector, const boot_field& field) noexcept {
    ENSURE(field.offset + field.bytes <= sizeof sector, "a field of the boot sector");
    return reinterpret_cast<const std::byte*>(&sector) + field.offset;
}

}  // namespace

std::span<const boot_field> boot_fields() noexcept {
    return fields;
}

const boot_field& boot_field_of(const char* key) noexcept {
    const auto* const found =
        std::ranges::find(fields, std::string_view(key), [](const boot_field& each) { return each.key; });
    ENSURE(found != std::end(fields));
    return *found;
}

std::uint64_t value_of(const boot_sector& sector, const boot_field& field) noexcept {
    le64 value;
    std::memcpy(&value, bytes_at(sector, field), std::min<std::size_t>(field.bytes, sizeof value));
    return value.value();
}

bool is_same(const boot_sector& a, const boot_sector& b, const boot_field& field) noexcept {
    return std::memcmp(bytes_at(a, field), bytes_at(b, field), field.bytes) == 0;
}

void copy_field(boot_sector& to, const boot_sector& from, const boot_field& field) noexcept {
    std::memcpy(bytes_at(to, field), bytes_at(from, field), field.bytes);
}

}  // namespace sluice::fat

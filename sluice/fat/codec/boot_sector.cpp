#include "sluice/fat/codec/boot_sector.hpp"

#include <bit>
#include <cerrno>

namespace sluice::fat {
namespace {

constexpr std::uint32_t fat12_clusters_max = 4084;
constexpr std::uint32_t fat16_clusters_max = 65524;
// The last is then 0x0ffffff6, one below "bad".
constexpr std::uint32_t fat32_clusters_max = 0x0fff'fff5;
constexpr std::uint32_t strict_fat32_clusters_min = 65525;

using checked = std::expected<void, boot_problem>;
std::unexpected<boot_problem> refuse(boot_fault fault, std::uint64_t value = 0,
                                     std::uint64_t bound = 0) noexcept {
    return std::unexpected(boot_problem{.fault = fault, .value = value, .bound = bound});
}

std::uint64_t total_sectors_of(const boot_sector& sector) noexcept {
    const std::uint16_t few = sector.total_sectors_16.value();
    return few != 0 ? few : sector.total_sectors_32.value();
}

std::uint64_t fat_sectors_of(const boot_sector& sector) noexcept {
    const std::uint16_t few = sector.fat_sectors_16.value();
    return few != 0 ? few : fat32_fields_of(sector).fat_sectors_32.value();
}

bool is_zero(const boot_sector& sector) noexcept {
    const bytes_view bytes = bytes_of(sector);
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte each) { return each == std::byte{}; });
}

bool is_named(const boot_sector& sector, std::string_view name) noexcept {
    return std::string_view(sector.oem_name.data(), sector.oem_name.size()) == name;
}

checked check_is_fat(const boot_sector& sector) noexcept {
    if (is_named(sector, "EXFAT   ")) return refuse(boot_fault::is_exfat);
    if (is_named(sector, "NTFS    ")) return refuse(boot_fault::is_ntfs);
    if (is_zero(sector)) return refuse(boot_fault::is_empty);
    return {};
}

// Checks the fields that are used as divisors, shifts or factors below.
checked check_units(const boot_sector& sector) noexcept {
    const std::uint32_t sector_bytes = sector.bytes_per_sector.value();
    if (not std::has_single_bit(sector_bytes) or sector_bytes < 512 or sector_bytes > 4096)
        return refuse(boot_fault::sector_size, sector_bytes);
    if (not std::has_single_bit(std::uint32_t{sector.sectors_per_cluster.value()}))
        return refuse(boot_fault::cluster_size, sector.sectors_per_cluster.value());
    return {};
}

checked check_counts(const boot_sector& sector) noexcept {
    if (sector.reserved_sectors.value() == 0) return refuse(boot_fault::no_reserved_sectors);
    if (sector.fat_count.value() == 0) return refuse(boot_fault::no_fats);
    const std::uint8_t media = sector.media.value();
    if (media < 0xf8 and media != 0xf0) return refuse(boot_fault::media_byte, media);
    if (fat_sectors_of(sector) == 0) return refuse(boot_fault::no_fat_sectors);
    const std::uint32_t per_sector = sector.bytes_per_sector.value() / geometry::dir_entry_bytes;
    if (sector.root_entries.value() % per_sector != 0)
        return refuse(boot_fault::root_entries, sector.root_entries.value(), per_sector);
    if (total_sectors_of(sector) == 0) return refuse(boot_fault::no_sectors);
    return {};
}

// In sectors. The factors have 32 and 8 bits, so no product overflows 64 bits.
struct layout {
    std::uint64_t fat = 0;
    std::uint64_t fat_length = 0;
    std::uint64_t root = 0;
    std::uint64_t data = 0;
    std::uint64_t end = 0;
};

std::expected<layout, boot_problem> lay_out(const boot_sector& sector) noexcept {
    layout found{.fat = sector.reserved_sectors.value(),
                 .fat_length = fat_sectors_of(sector),
                 .end = total_sectors_of(sector)};
    const std::uint64_t all_fats = found.fat_length * sector.fat_count.value();
    if (all_fats > found.end) return refuse(boot_fault::too_many_fat_sectors, all_fats, found.end);
    found.root = found.fat + all_fats;
    found.data = found.root + std::uint64_t{sector.root_entries.value()} * geometry::dir_entry_bytes /
                                  sector.bytes_per_sector.value();
    if (found.data > found.end) return refuse(boot_fault::no_data, found.data, found.end);
    return found;
}

fat_type type_of(const boot_sector& sector, std::uint64_t clusters) noexcept {
    if (sector.fat_sectors_16.value() == 0) return fat_type::fat32;
    return clusters <= fat12_clusters_max ? fat_type::fat12 : fat_type::fat16;
}

std::uint32_t clusters_max(fat_type type) noexcept {
    if (type == fat_type::fat12) return fat12_clusters_max;
    return type == fat_type::fat16 ? fat16_clusters_max : fat32_clusters_max;
}

// Determines the type and the number of clusters that both the data area and the FAT have.
checked count_clusters(geometry& shape, const boot_sector& sector, const layout& sectors) noexcept {
    const std::uint64_t in_data = (sectors.end - sectors.data) / shape.sectors_per_cluster;
    shape.type = type_of(sector, in_data);
    if (in_data > clusters_max(shape.type))
        return refuse(boot_fault::too_many_clusters, in_data, clusters_max(shape.type));
    const std::uint64_t entries = entries_in(shape.type, shape.fat_bytes);
    const std::uint64_t in_fat = entries > 2 ? entries - 2 : 0;
    if (in_fat < in_data) shape.odd = shape.odd | format_anomaly::table_is_short;
    shape.cluster_count = static_cast<std::uint32_t>(std::min(in_data, in_fat));
    if (shape.type == fat_type::fat32 and in_data < strict_fat32_clusters_min)
        shape.odd = shape.odd | format_anomaly::few_clusters;
    return {};
}

void read_extended(geometry& shape, const extended_fields& fields) noexcept {
    const std::uint8_t signature = fields.signature.value();
    shape.has_extended_fields = signature == 0x29 or signature == 0x28;
    if (not shape.has_extended_fields) return;
    shape.is_dirty = (fields.state.value() & 1) != 0;
    shape.serial = fields.serial.value();
    if (signature == 0x29) shape.label = fields.label;
}

checked read_fat32_fields(geometry& shape, const fat32_fields& fields, std::uint32_t reserved) noexcept {
    shape.root_cluster = fields.root_cluster.value();
    const std::uint16_t flags = fields.flags.value();
    shape.is_mirrored = (flags & 0x80) == 0;
    shape.active_fat = shape.is_mirrored ? 0 : flags & 0xfU;
    if (shape.active_fat >= shape.fat_count)
        return refuse(boot_fault::active_fat, shape.active_fat, shape.fat_count);
    if (fields.version.value() != 0) shape.odd = shape.odd | format_anomaly::version_unknown;

    const auto inside_reserved = [&](std::uint32_t number) -> std::optional<std::uint64_t> {
        if (number == 0 or number >= reserved) return std::nullopt;
        return std::uint64_t{number} * shape.sector_bytes;
    };
    shape.info_offset = inside_reserved(fields.info_sector.value());
    shape.backup_offset = inside_reserved(fields.backup_sector.value());
    if (not shape.info_offset) shape.odd = shape.odd | format_anomaly::info_sector_lost;
    return {};
}

format_anomaly oddities_of(const boot_sector& sector, const geometry& shape,
                           std::uint64_t device_bytes) noexcept {
    format_anomaly odd = format_anomaly::none;
    if (sector.signature.value() != 0xaa55) odd = odd | format_anomaly::no_signature;
    if (shape.volume_bytes > device_bytes) odd = odd | format_anomaly::image_is_short;
    if (shape.fat_count == 1) odd = odd | format_anomaly::one_table;
    const bool jumps = sector.jump[0] == std::byte{0xeb} or sector.jump[0] == std::byte{0xe9};
    if (not jumps) odd = odd | format_anomaly::unusual_jump;
    return odd;
}

geometry shape_of(const boot_sector& sector, const layout& sectors) noexcept {
    geometry shape;
    shape.sector_bytes = sector.bytes_per_sector.value();
    shape.sectors_per_cluster = sector.sectors_per_cluster.value();
    shape.cluster_bytes = shape.sector_bytes * shape.sectors_per_cluster;
    shape.volume_bytes = sectors.end * shape.sector_bytes;
    shape.fat_offset = sectors.fat * shape.sector_bytes;
    shape.fat_bytes = sectors.fat_length * shape.sector_bytes;
    shape.fat_count = sector.fat_count.value();
    shape.root_offset = sectors.root * shape.sector_bytes;
    shape.root_entries = sector.root_entries.value();
    shape.data_offset = sectors.data * shape.sector_bytes;
    shape.media = sector.media.value();
    return shape;
}

}  // namespace

std::expected<geometry, boot_problem> decode_boot_sector(const boot_sector& sector,
                                                         std::uint64_t device_bytes) noexcept {
    for (const auto check : {check_is_fat, check_units, check_counts})
        if (const checked passed = check(sector); not passed) return std::unexpected(passed.error());
    const auto sectors = lay_out(sector);
    if (not sectors) return std::unexpected(sectors.error());

    geometry shape = shape_of(sector, *sectors);
    shape.odd = oddities_of(sector, shape, device_bytes);
    if (const checked passed = count_clusters(shape, sector, *sectors); not passed)
        return std::unexpected(passed.error());
    read_extended(shape, extended_fields_of(sector, shape.type));
    if (shape.type != fat_type::fat32) return shape;
    if (const checked passed =
            read_fat32_fields(shape, fat32_fields_of(sector), sector.reserved_sectors.value());
        not passed)
        return std::unexpected(passed.error());
    return shape;
}

std::expected<geometry, boot_problem> read_geometry(device& image) noexcept {
    std::array<std::byte, sizeof(boot_sector)> bytes{};
    if (const auto done = image.read_at(0, std::span<std::byte>(bytes)); not done)
        return refuse(boot_fault::unreadable, image.size_bytes(),
                      static_cast<std::uint64_t>(done.error().code()));
    return decode_boot_sector(*bytes_view(bytes).take<boot_sector>(), image.size_bytes());
}

fat32_fields fat32_fields_of(const boot_sector& sector) noexcept {
    return *bytes_view(sector.extended).take<fat32_fields>();
}

void set_fat32_fields(boot_sector& sector, const fat32_fields& fields) noexcept {
    std::memcpy(sector.extended.data(), &fields, sizeof(fields));
}

extended_fields extended_fields_of(const boot_sector& sector, fat_type type) noexcept {
    if (type == fat_type::fat32) return fat32_fields_of(sector).extended;
    return *bytes_view(sector.extended).take<extended_fields>();
}

void set_extended_fields(boot_sector& sector, fat_type type, const extended_fields& fields) noexcept {
    const std::size_t position = type == fat_type::fat32 ? offsetof(fat32_fields, extended) : 0;
    std::memcpy(sector.extended.data() + position, &fields, sizeof(fields));
}

namespace {

constexpr std::uint32_t lead_signature = 0x4161'5252;
constexpr std::uint32_t info_signature = 0x6141'7272;
constexpr std::uint32_t trail_signature = 0xaa55'0000;
constexpr std::uint32_t unknown = 0xffff'ffff;

}  // namespace

std::optional<volume_info> decode_info(const info_sector& sector, const geometry& shape) noexcept {
    // Linux checks these two signatures but not the trailing one, which some implementations omit.
    if (sector.lead_signature.value() != lead_signature or sector.signature.value() != info_signature)
        return std::nullopt;
    volume_info info;
    if (sector.free_count.value() <= shape.cluster_count) info.free_count = sector.free_count.value();
    if (shape.is_cluster(sector.next_free.value())) info.next_free = sector.next_free.value();
    return info;
}

info_sector encode_info(const volume_info& info) noexcept {
    info_sector sector{};
    sector.lead_signature = le32(lead_signature);
    sector.signature = le32(info_signature);
    sector.free_count = le32(info.free_count.value_or(unknown));
    sector.next_free = le32(info.next_free.value_or(unknown));
    sector.trail_signature = le32(trail_signature);
    return sector;
}

}  // namespace sluice::fat

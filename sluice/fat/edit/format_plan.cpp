#include <algorithm>
#include <bit>
#include <span>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/edit/format.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t gib = 1024 * mib;

constexpr std::uint32_t cluster_bytes_max = 64 * 1024;  // 128 sectors of 512; > 32 KiB on request
constexpr std::uint32_t clear_of_limits = 16;           // policy 1
constexpr std::uint32_t fat32_reserved_min = 9;         // policy 4: sectors 0,
                                                        // 1, 6, 7 and 8 are used

struct cluster_range {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
};

constexpr cluster_range clusters_of(fat_type type) noexcept {
    switch (type) {
        case fat_type::fat12:
            return {1, 4084 - clear_of_limits};
        case fat_type::fat16:
            return {4085 + clear_of_limits, 65524 - clear_of_limits};
        case fat_type::fat32:
            break;
    }
    return {65525 + clear_of_limits, 0x0fff'fff5};
}

const char* name_of(fat_type type) noexcept {
    return type == fat_type::fat12 ? "FAT12" : type == fat_type::fat16 ? "FAT16" : "FAT32";
}

// Standard floppy sizes, with the numbers that drives expect.
struct floppy {
    std::uint64_t bytes;
    std::uint8_t sectors_per_cluster;
    std::uint16_t root_entries;
    std::uint8_t media;
    std::uint16_t sectors_per_track;
    std::uint16_t heads;
};
constexpr floppy floppies[] = {{160 * kib, 1, 64, 0xfe, 8, 1},    {180 * kib, 1, 64, 0xfc, 9, 1},
                               {320 * kib, 2, 112, 0xff, 8, 2},   {360 * kib, 2, 112, 0xfd, 9, 2},
                               {720 * kib, 2, 112, 0xf9, 9, 2},   {1200 * kib, 1, 224, 0xf9, 15, 2},
                               {1440 * kib, 1, 224, 0xf0, 18, 2}, {2880 * kib, 2, 240, 0xf0, 36, 2}};

// Volumes of at most `volume` bytes get clusters of `cluster` bytes.
struct size_step {
    std::uint64_t volume;
    std::uint32_t cluster;
};
constexpr size_step fat12_steps[] = {{2 * mib, 512}, {4 * mib, 1024}, {8 * mib, 2048}, {16 * mib, 4096}};
constexpr size_step fat16_steps[] = {{16 * mib, 1024},  {128 * mib, 2048}, {256 * mib, 4096},
                                     {512 * mib, 8192}, {gib, 16384},      {2 * gib, 32768}};
constexpr size_step fat32_steps[] = {{260 * mib, 512}, {8 * gib, 4096}, {16 * gib, 8192}, {32 * gib, 16384}};

std::uint32_t usual_cluster(fat_type type, std::uint64_t bytes) noexcept {
    std::span<const size_step> steps = fat32_steps;
    if (type == fat_type::fat12) steps = fat12_steps;
    if (type == fat_type::fat16) steps = fat16_steps;
    for (const size_step& step : steps)
        if (bytes <= step.volume) return step.cluster;
    return 32768;
}

fat_type usual_type(std::uint64_t bytes) noexcept {
    if (bytes <= 8400 * 512) return fat_type::fat12;
    return bytes <= 512 * mib ? fat_type::fat16 : fat_type::fat32;
}

// The decisions so far, in sectors unless the name says bytes.
struct draft {
    fat_type type = fat_type::fat12;
    const floppy* drive = nullptr;
    std::uint64_t total = 0;
    std::uint64_t reserved = 1;
    std::uint64_t root = 0;
    std::uint64_t fat = 1;  // length of one copy
    std::uint64_t per_cluster = 1;

    [[nodiscard]] std::uint64_t data_start(const format_options& options) const noexcept {
        return reserved + fat * options.fat_count + root;
    }
    [[nodiscard]] std::uint64_t clusters(const format_options& options) const noexcept {
        const std::uint64_t start = data_start(options);
        return start < total ? (total - start) / per_cluster : 0;
    }
};

// Computes the size of the FAT. A larger FAT leaves fewer clusters, which never need a larger FAT,
// so this ends after a few steps.
void size_fat(draft& one, const format_options& options) noexcept {
    one.fat = 1;
    for (;;) {
        const std::uint64_t bytes = bytes_of_entries(one.type, one.clusters(options) + 2);
        const std::uint64_t needed = (bytes + options.sector_bytes - 1) / options.sector_bytes;
        if (needed <= one.fat) return;
        one.fat = needed;
    }
}

// Aligns the data area (policy 2) with more reserved sectors. They may cost a cluster, and then the
// FAT could be one sector shorter. It is not shortened: an unused sector in the FAT is harmless.
void align_data(draft& one, const format_options& options) noexcept {
    if (one.drive != nullptr or options.reserved_sectors) return;
    const std::uint64_t unit = std::max<std::uint64_t>(one.per_cluster, 4096 / options.sector_bytes);
    const std::uint64_t rest = one.data_start(options) % unit;
    if (rest != 0) one.reserved += unit - rest;
}

void set_cluster(draft& one, std::uint32_t cluster_bytes, const format_options& options) noexcept {
    ENSURE(cluster_bytes != 0 and cluster_bytes % options.sector_bytes == 0, "a cluster has whole sectors");
    one.per_cluster = cluster_bytes / options.sector_bytes;
    one.reserved = options.reserved_sectors.value_or(one.type == fat_type::fat32 ? 32 : 1);
    size_fat(one, options);
    align_data(one, options);
}

std::string mismatch(const draft& one, const format_options& options) {
    const cluster_range range = clusters_of(one.type);
    const std::uint64_t clusters = one.clusters(options);
    std::string text = std::string(name_of(one.type)) + " in " + std::to_string(one.total) + " sectors of " +
                       std::to_string(options.sector_bytes) + " bytes, in clusters of " +
                       std::to_string(one.per_cluster * options.sector_bytes) + " bytes, would have " +
                       std::to_string(clusters) + " clusters, must be " + std::to_string(range.least) +
                       " to " + std::to_string(range.most) + "; use ";
    return text + (clusters < range.least ? "smaller clusters, a smaller FAT type or a larger image"
                                          : "larger clusters or a larger FAT type");
}

bool fits(const draft& one, const format_options& options) noexcept {
    const cluster_range range = clusters_of(one.type);
    const std::uint64_t clusters = one.clusters(options);
    return clusters >= range.least and clusters <= range.most;
}

// Returns the usual cluster size, or the nearest one for which the number of clusters is valid.
std::expected<draft, std::string> choose_cluster(draft one, std::uint64_t bytes,
                                                 const format_options& options) {
    const auto at_least_a_sector = [&](std::uint32_t wanted) {
        return std::max(wanted, options.sector_bytes);
    };
    std::uint32_t cluster = at_least_a_sector(usual_cluster(one.type, bytes));
    if (one.drive != nullptr) cluster = one.drive->sectors_per_cluster * options.sector_bytes;
    if (options.cluster_bytes) cluster = *options.cluster_bytes;
    set_cluster(one, cluster, options);
    if (not options.cluster_bytes) {
        while (one.clusters(options) > clusters_of(one.type).most and cluster < cluster_bytes_max)
            set_cluster(one, cluster *= 2, options);
        while (one.clusters(options) < clusters_of(one.type).least and cluster > options.sector_bytes)
            set_cluster(one, cluster /= 2, options);
    }
    if (not fits(one, options)) return std::unexpected(mismatch(one, options));
    return one;
}

std::optional<std::string> problem_with(const format_options& options) {
    const std::uint32_t sector = options.sector_bytes;
    if (not std::has_single_bit(sector) or sector < 512 or sector > 4096)
        return "bytes per sector is " + std::to_string(sector) + ", must be 512, 1024, 2048 or 4096";
    if (options.fat_count < 1 or options.fat_count > 2)
        return "number of FATs is " + std::to_string(options.fat_count) + ", must be 1 or 2";
    if (options.cluster_bytes) {
        const std::uint32_t cluster = *options.cluster_bytes;
        if (not std::has_single_bit(cluster) or cluster < sector or cluster / sector > 128)
            return "bytes per cluster is " + std::to_string(cluster) + ", must be a power of two from " +
                   std::to_string(sector) + " to " + std::to_string(128 * sector);
    }
    if (options.root_entries and (*options.root_entries == 0 or *options.root_entries > 65'535 - 127))
        return "root entries is " + std::to_string(*options.root_entries) + ", must be 1 to 65408";
    if (options.reserved_sectors and (*options.reserved_sectors == 0 or *options.reserved_sectors > 65'535))
        return "reserved sectors is " + std::to_string(*options.reserved_sectors) + ", must be 1 to 65535";
    return std::nullopt;
}

const floppy* drive_of(std::uint64_t bytes, const format_options& options) noexcept {
    if (options.sector_bytes != 512 or options.type.value_or(fat_type::fat12) != fat_type::fat12)
        return nullptr;
    const auto* const found = std::ranges::find(floppies, bytes, &floppy::bytes);
    return found == std::end(floppies) ? nullptr : found;
}

std::uint64_t root_sectors(const draft& one, const format_options& options) noexcept {
    if (one.type == fat_type::fat32) return 0;
    std::uint64_t entries = one.total * options.sector_bytes <= 2 * mib ? 224 : 512;
    if (one.drive != nullptr) entries = one.drive->root_entries;
    entries = options.root_entries.value_or(entries);
    const std::uint64_t per_sector = options.sector_bytes / geometry::dir_entry_bytes;
    ENSURE(entries != 0, "a fixed root has entries");
    return (entries + per_sector - 1) / per_sector;
}

std::expected<draft, std::string> decide(fat_type type, std::uint64_t device_bytes,
                                         const format_options& options) {
    draft one;
    one.type = type;
    one.total = device_bytes / options.sector_bytes;
    if (one.total > 0xffff'ffff)
        return std::unexpected("the image has " + std::to_string(one.total) + " sectors, must be at most " +
                               "4294967295; use larger sectors");
    one.drive = drive_of(device_bytes, options);
    one.root = root_sectors(one, options);
    auto chosen = choose_cluster(one, device_bytes, options);
    if (chosen and type == fat_type::fat32 and chosen->reserved < fat32_reserved_min)
        return std::unexpected("reserved sectors is " + std::to_string(chosen->reserved) +
                               ", must be at least " + std::to_string(fat32_reserved_min) +
                               " on FAT32, which keeps copies in sectors 6 to 8; use more reserved sectors "
                               "or a smaller FAT type");
    return chosen;
}

// Chooses the usual type or, if the sector or cluster size excludes it, a possible one. The error
// is that of the usual type.
std::expected<draft, std::string> decide_type(std::uint64_t device_bytes, const format_options& options) {
    auto usual = decide(usual_type(device_bytes), device_bytes, options);
    if (usual) return usual;
    for (const fat_type other : {fat_type::fat12, fat_type::fat16, fat_type::fat32})
        if (auto chosen = decide(other, device_bytes, options); chosen) return chosen;
    return usual;
}

extended_fields extended_of(const draft& one, const format_options& options) noexcept {
    extended_fields fields{};
    fields.drive = le8(one.drive != nullptr ? 0 : 0x80);
    fields.signature = le8(0x29);
    fields.serial = le32(options.serial);
    fields.label = options.label;
    fields.type_name = {'F', 'A', 'T', name_of(one.type)[3], name_of(one.type)[4], ' ', ' ', ' '};
    return fields;
}

// Boot code of a volume without a system: asks the firmware for the next device (int 18h), and
// halts if it returns.
constexpr std::array boot_code = {std::byte{0xcd}, std::byte{0x18}, std::byte{0xf4}, std::byte{0xeb},
                                  std::byte{0xfd}};

void set_extended(boot_sector& boot, const draft& one, const format_options& options) noexcept {
    const bool is_fat32 = one.type == fat_type::fat32;
    boot.jump = {std::byte{0xeb}, std::byte{static_cast<unsigned char>(is_fat32 ? 0x58 : 0x3c)},
                 std::byte{0x90}};
    if (is_fat32) {
        fat32_fields fields{};
        fields.fat_sectors_32 = le32(static_cast<std::uint32_t>(one.fat));
        fields.root_cluster = le32(geometry::first_cluster);
        fields.info_sector = le16(1);
        fields.backup_sector = le16(6);
        set_fat32_fields(boot, fields);
        std::ranges::copy(boot_code, boot.code.begin());
    } else {
        ENSURE(one.fat <= 65'535, "FAT12 and FAT16 have small tables");
        boot.fat_sectors_16 = le16(static_cast<std::uint16_t>(one.fat));
        std::ranges::copy(boot_code, boot.extended.begin() + sizeof(extended_fields));
    }
    set_extended_fields(boot, one.type, extended_of(one, options));
}

boot_sector boot_of(const draft& one, const format_options& options) noexcept {
    ENSURE(one.per_cluster <= 128 and one.reserved <= 65'535, "the fields hold the numbers");
    boot_sector boot{};
    boot.oem_name = {'S', 'L', 'U', 'I', 'C', 'E', ' ', ' '};
    boot.bytes_per_sector = le16(static_cast<std::uint16_t>(options.sector_bytes));
    boot.sectors_per_cluster = le8(static_cast<std::uint8_t>(one.per_cluster));
    boot.reserved_sectors = le16(static_cast<std::uint16_t>(one.reserved));
    boot.fat_count = le8(static_cast<std::uint8_t>(options.fat_count));
    boot.root_entries =
        le16(static_cast<std::uint16_t>(one.root * options.sector_bytes / geometry::dir_entry_bytes));
    ENSURE(one.root * options.sector_bytes / geometry::dir_entry_bytes <= 65'535,
           "the field holds the number");
    const bool is_small = one.total < 65'536 and one.type != fat_type::fat32;
    boot.total_sectors_16 = le16(static_cast<std::uint16_t>(is_small ? one.total : 0));
    boot.total_sectors_32 = le32(static_cast<std::uint32_t>(is_small ? 0 : one.total));
    boot.media = le8(one.drive != nullptr ? one.drive->media : 0xf8);
    boot.sectors_per_track = le16(one.drive != nullptr ? one.drive->sectors_per_track : 63);
    boot.heads = le16(one.drive != nullptr ? one.drive->heads : 255);
    // Only boot loaders of MBR disks read it, which are not larger.
    boot.hidden_sectors = le32(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(options.hidden_bytes / options.sector_bytes, 0xffff'ffff)));
    boot.signature = le16(0xaa55);
    set_extended(boot, one, options);
    return boot;
}

}  // namespace

std::expected<format_plan, std::string> plan_format(std::uint64_t device_bytes,
                                                    const format_options& options) {
    if (auto problem = problem_with(options)) return std::unexpected(*std::move(problem));
    const auto chosen =
        options.type ? decide(*options.type, device_bytes, options) : decide_type(device_bytes, options);
    if (not chosen) return std::unexpected(chosen.error());
    if (chosen->reserved > 65'535)
        return std::unexpected("alignment needs " + std::to_string(chosen->reserved) +
                               " reserved sectors, must be at most 65535; use smaller clusters");

    format_plan plan{.boot = boot_of(*chosen, options),
                     .shape = {},
                     .label = options.label,
                     .label_date = options.label_date,
                     .label_time = options.label_time};
    const auto shape = decode_boot_sector(plan.boot, device_bytes);
    ENSURE(shape.has_value() and shape->type == chosen->type, "what we make we can read");
    ENSURE(shape->odd == format_anomaly::none or shape->odd == format_anomaly::one_table);
    ENSURE(shape->cluster_count == chosen->clusters(options) and
           shape->data_offset == chosen->data_start(options) * options.sector_bytes);
    plan.shape = *shape;
    return plan;
}

}  // namespace sluice::fat

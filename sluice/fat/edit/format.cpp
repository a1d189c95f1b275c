#include "sluice/fat/edit/format.hpp"

#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/directory_entry.hpp"

namespace sluice::fat {
namespace {

using bytes = std::span<const std::byte>;

result<void> write_table_heads(device& image, const geometry& shape) {
    const bool is_fat32 = shape.type == fat_type::fat32;
    std::array<std::byte, 12> head{};
    const table_piece piece{.bytes = head};
    const std::uint32_t media = (entry_mask(shape.type) & ~0xffU) | shape.media;
    bool fitted =
        write_entry(shape.type, piece, 0, media) and write_entry(shape.type, piece, 1, end_entry(shape.type));
    if (is_fat32) fitted = fitted and write_entry(shape.type, piece, 2, end_entry(shape.type));
    ENSURE(fitted);
    const byte_extent last = entry_extent(shape.type, is_fat32 ? 2 : 1);
    const auto used = bytes(head).first(static_cast<std::size_t>(last.offset + last.length));
    for (std::uint32_t copy = 0; copy != shape.fat_count; ++copy)
        if (const auto done = image.write_at(shape.fat_copy_offset(copy), used); not done) return done;
    return {};
}

result<void> write_label(device& image, const format_plan& plan) {
    if (plan.label == no_label) return {};
    directory_entry entry{};
    std::memcpy(entry.name.data(), plan.label.data(), plan.label.size());
    entry.attribute_bits = le8(static_cast<std::uint8_t>(attributes::label));
    entry.modified_date = le16(plan.label_date);
    entry.modified_time = le16(plan.label_time);
    const geometry& shape = plan.shape;
    const bool is_fat32 = shape.type == fat_type::fat32;
    return image.write_at(is_fat32 ? shape.cluster_offset(shape.root_cluster) : shape.root_offset,
                          bytes_of(entry).span());
}

result<void> write_fat32_sectors(device& image, const format_plan& plan) {
    const geometry& shape = plan.shape;
    const info_sector info =
        encode_info({.free_count = shape.cluster_count - 1, .next_free = std::min(3U, shape.last_cluster())});
    ENSURE(*shape.backup_offset + 2 * shape.sector_bytes <= shape.fat_offset,
           "the copies lie before the FAT");
    for (const std::uint64_t first : {std::uint64_t{0}, *shape.backup_offset}) {
        if (const auto done = image.write_at(first + shape.sector_bytes, bytes_of(info).span()); not done)
            return done;
    }
    return image.write_at(*shape.backup_offset, bytes_of(plan.boot).span());
}

}  // namespace

result<void> format(device& image, const format_plan& plan) {
    const geometry& shape = plan.shape;
    const bool is_fat32 = shape.type == fat_type::fat32;
    ENSURE(shape.volume_bytes <= image.size_bytes(), "the plan is for this device, or a smaller one");
    const std::uint64_t cleared = shape.data_offset + (is_fat32 ? shape.cluster_bytes : 0);
    if (const auto done = image.punch_hole({.offset = 0, .length = cleared}); not done) return done;
    if (const auto done = write_table_heads(image, shape); not done) return done;
    if (const auto done = write_label(image, plan); not done) return done;
    if (is_fat32) {
        if (const auto done = write_fat32_sectors(image, plan); not done) return done;
    }
    if (const auto done = image.barrier(); not done) return done;
    if (const auto done = image.write_at(0, bytes_of(plan.boot).span()); not done) return done;
    return image.barrier();
}

}  // namespace sluice::fat

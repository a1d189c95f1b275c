#include "sluice/fat/root_slots.hpp"

namespace sluice::fat {

result<directory_entry> read_slot(device& image, std::uint64_t offset) {
    std::array<std::byte, slot_bytes> bytes{};
    if (const auto done = image.read_at(offset, std::span<std::byte>(bytes)); not done)
        return failure(done.error());
    return *bytes_view(bytes).take<directory_entry>();
}

result<void> write_slot(device& image, std::uint64_t offset, const directory_entry& entry) {
    return image.write_at(offset, bytes_of(entry).span());
}

std::vector<byte_extent> root_slots::extents() const {
    if (shape_.type != fat_type::fat32)
        return {{shape_.root_offset, std::uint64_t{shape_.root_entries} * slot_bytes}};
    std::vector<byte_extent> found;
    const std::size_t clusters_max = limits::directory_slots_max * slot_bytes / shape_.cluster_bytes;
    for (std::uint32_t cluster = shape_.root_cluster;
         shape_.is_cluster(cluster) and found.size() < clusters_max; cluster = table_.entry(cluster).next)
        found.push_back({shape_.cluster_offset(cluster), shape_.cluster_bytes});
    return found;
}

result<std::optional<std::uint64_t>> root_slots::take() {
    const std::vector<byte_extent> all = extents();
    std::optional<std::uint64_t> found;
    for (const byte_extent& extent : all)
        for (std::uint64_t at = extent.offset; at != extent.offset + extent.length; at += slot_bytes) {
            const auto entry = read_slot(image_, at);
            if (not entry) return failure(entry.error());
            if (found) {
                if (const auto done = write_slot(image_, at, {}); not done) return failure(done.error());
                return found;
            }
            if (kind_of(*entry) == slot_kind::free) return at;
            if (kind_of(*entry) == slot_kind::end) found = at;
        }
    if (found or all.empty() or shape_.type != fat_type::fat32) return found;
    return extend(all.back().offset);
}

result<std::optional<std::uint64_t>> root_slots::extend(std::uint64_t last_offset) {
    const auto fresh = table_.allocate();
    if (not fresh) return std::nullopt;
    const byte_extent room{shape_.cluster_offset(*fresh), shape_.cluster_bytes};
    if (const auto done = image_.punch_hole(room); not done) return failure(done.error());
    const auto last = static_cast<std::uint32_t>((last_offset - shape_.data_offset) / shape_.cluster_bytes) +
                      geometry::first_cluster;
    table_.set(last, *fresh);
    if (const auto done = table_.flush(); not done) return failure(done.error());
    return room.offset;
}

}  // namespace sluice::fat

#include "sluice/fat/edit/directory_slots.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

std::size_t clusters_max(const geometry& shape) noexcept {
    return std::max<std::size_t>(limits::directory_slots_max * slot_bytes / shape.cluster_bytes, 1);
}

}  // namespace

result<directory_entry> read_slot(device& image, std::uint64_t offset) {
    ENSURE(offset % slot_bytes == 0, "a slot");
    std::array<std::byte, slot_bytes> bytes{};
    if (const auto done = image.read_at(offset, std::span<std::byte>(bytes)); not done)
        return failure(done.error());
    return *bytes_view(bytes).take<directory_entry>();
}

result<void> write_slot(device& image, std::uint64_t offset, const directory_entry& entry) {
    ENSURE(offset != 0 and offset % slot_bytes == 0, "a slot is after the boot sector");
    return image.write_at(offset, bytes_of(entry).span());
}

std::vector<byte_extent> directory_slots::extents_from(std::uint32_t first) const {
    std::vector<byte_extent> found;
    if (first == 0 and shape_.root_entries != 0)
        found.push_back({shape_.root_offset, std::uint64_t{shape_.root_entries} * slot_bytes});
    for (std::uint32_t cluster = first; shape_.is_cluster(cluster) and found.size() < clusters_max(shape_);
         cluster = table_.entry(cluster).next)
        found.push_back({shape_.cluster_offset(cluster), shape_.cluster_bytes});
    return found;
}

result<std::optional<std::uint64_t>> directory_slots::take(where place) {
    for (;;) {
        if (extent_ == extents_.size()) {
            const auto done = extend();
            if (not done) return failure(done.error());
            if (not*done) return std::nullopt;
        }
        const byte_extent extent = extents_[extent_];
        ENSURE(next_ < extent.length and next_ % slot_bytes == 0, "invariant 2");
        const std::uint64_t at = extent.offset + next_;
        next_ += slot_bytes;
        if (next_ >= extent.length) {
            ++extent_;
            next_ = 0;
        }
        if (not is_after_end_) {
            const auto entry = read_slot(image_, at);
            if (not entry) return failure(entry.error());
            if (kind_of(*entry) == slot_kind::free and place == where::anywhere) return at;
            if (kind_of(*entry) != slot_kind::end) continue;
            is_after_end_ = true;
        }
        if (extent_ == extents_.size()) return at;
        const auto done = write_slot(image_, extents_[extent_].offset + next_, {});
        if (not done) return failure(done.error());
        return at;
    }
}

std::optional<std::uint64_t> directory_slots::offset_of(std::uint64_t number) const noexcept {
    std::uint64_t at = number * slot_bytes;
    for (const byte_extent& extent : extents_) {
        if (at < extent.length) return extent.offset + at;
        at -= extent.length;
    }
    return std::nullopt;
}

// Returns the cluster after which the directory can grow, or std::nullopt. A chain without an end
// mark is damaged, and a repair must decide where it ends.
std::optional<std::uint32_t> directory_slots::growing_end() const noexcept {
    if (extents_.empty() or extents_.size() >= clusters_max(shape_)) return std::nullopt;
    if (extents_.back().offset < shape_.data_offset) return std::nullopt;  // the fixed root
    const auto last =
        static_cast<std::uint32_t>((extents_.back().offset - shape_.data_offset) / shape_.cluster_bytes) +
        geometry::first_cluster;
    if (table_.entry(last).kind != entry_kind::end) return std::nullopt;
    return last;
}

result<bool> directory_slots::extend() {
    const auto last = growing_end();
    const auto fresh = last ? table_.allocate() : std::nullopt;
    if (not fresh) return false;
    const byte_extent room{shape_.cluster_offset(*fresh), shape_.cluster_bytes};
    if (const auto done = image_.punch_hole(room); not done) return failure(done.error());
    table_.set(*last, *fresh);
    if (const auto done = table_.flush(); not done) return failure(done.error());
    extents_.push_back(room);
    ENSURE(growing_end() == *fresh or extents_.size() == clusters_max(shape_),
           "a chain ends where it has grown");
    return true;
}

}  // namespace sluice::fat

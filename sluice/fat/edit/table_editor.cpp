#include "sluice/fat/edit/table_editor.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

result<table_editor> table_editor::load(device& image, const geometry& shape) {
    const std::uint64_t offset = shape.fat_copy_offset(shape.active_fat);
    const std::uint64_t length = shape.fat_used_bytes();
    if (offset > image.size_bytes() or length > image.size_bytes() - offset)
        return failure({EIO, "the image ends within the FAT"});
    std::vector<std::byte> table(length);
    if (const auto done = image.read_at(offset, std::span(table)); not done) return failure(done.error());
    return table_editor(image, shape, std::move(table));
}

std::uint32_t table_editor::value(std::uint32_t cluster) const noexcept {
    const auto found = read_entry(shape_.type, table_, cluster);
    ENSURE(found.has_value());
    return *found;
}

void table_editor::set(std::uint32_t cluster, std::uint32_t value) {
    ENSURE(cluster <= shape_.last_cluster(), "the table has the entry");
    const byte_extent extent = entry_extent(shape_.type, cluster);
    ENSURE(write_entry(shape_.type, {.bytes = table_}, cluster, value));
    changed_.insert(extent.offset / piece_bytes);
    changed_.insert((extent.offset + extent.length - 1) / piece_bytes);
}

void table_editor::find_referenced() {
    is_referenced_.resize(std::size_t{shape_.last_cluster()} + 1);
    for (std::uint32_t each = geometry::first_cluster; each <= shape_.last_cluster(); ++each)
        if (const table_entry after = entry(each); after.kind == entry_kind::next)
            is_referenced_[after.next] = true;
}

std::optional<std::uint32_t> table_editor::allocate() {
    if (is_referenced_.empty()) find_referenced();
    for (; next_free_ <= shape_.last_cluster(); ++next_free_) {
        if (entry(next_free_).kind != entry_kind::free or is_referenced_[next_free_]) continue;
        end_chain(next_free_);
        return next_free_++;
    }
    return std::nullopt;
}

result<void> table_editor::flush() {
    for (std::uint32_t copy = 0; copy != shape_.fat_count; ++copy) {
        if (not shape_.is_mirrored and copy != shape_.active_fat) continue;
        for (auto piece = changed_.begin(); piece != changed_.end();) {
            const std::uint64_t start = *piece * piece_bytes;
            ENSURE(start < table_.size(), "changed pieces are inside the table");
            std::uint64_t end = start;
            for (; piece != changed_.end() and *piece * piece_bytes == end and end - start != write_bytes_max;
                 ++piece)
                end += piece_bytes;
            const std::uint64_t length = std::min<std::uint64_t>(end, table_.size()) - start;
            const auto bytes = std::span<const std::byte>(table_).subspan(start, length);
            if (const auto done = image_.write_at(shape_.fat_copy_offset(copy) + start, bytes); not done)
                return done;
        }
    }
    changed_.clear();
    return {};
}

}  // namespace sluice::fat

#include "sluice/fat/edit/chain_map.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

result<chain_map> chain_map::load(device& image, const geometry& shape, std::uint32_t copy) {
    const std::uint64_t offset = shape.fat_copy_offset(copy);
    const std::uint64_t length = shape.fat_used_bytes();
    // Checked before memory of that size is allocated.
    if (offset > image.size_bytes() or length > image.size_bytes() - offset)
        return failure({EIO, "the image ends within the FAT"});
    ENSURE(length <= shape.fat_bytes, "the entries of all clusters are inside the FAT");
    std::vector<std::byte> table(length);
    if (const auto done = image.read_at(offset, std::span(table)); not done) return failure(done.error());
    return chain_map(shape, std::move(table));
}

std::uint32_t chain_map::value(std::uint32_t cluster) const noexcept {
    const auto found = read_entry(shape_.type, table_, cluster);
    ENSURE(found.has_value());
    return *found;
}

bool chain_map::is_in_use(std::uint32_t cluster) const noexcept {
    if (not shape_.is_cluster(cluster)) return false;
    const entry_kind kind = entry(cluster).kind;
    return kind != entry_kind::free and kind != entry_kind::bad;
}

chain_map::outcome chain_map::take(std::uint32_t first, object owner, std::uint64_t mark_at) noexcept {
    outcome found;
    std::uint32_t next = first;
    for (;;) {
        found.leads_to = next;
        if (not is_in_use(next)) {
            found.how = ending::broken;
            return found;
        }
        if (owners_[next] != nobody) {
            found.how = owners_[next] == owner ? ending::loop : ending::crossed;
            return found;
        }
        owners_[next] = owner;
        ++owned_;
        ENSURE(owned_ <= shape_.cluster_count, "invariant 2");
        found.last = next;
        if (++found.length == mark_at) found.at_length = next;
        const std::uint32_t link = value(next);
        if (shape_.classify(link).kind == entry_kind::end) return found;
        next = link;
    }
}

}  // namespace sluice::fat

#include "sluice/fat/codec/directory_entry.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint32_t cluster_bits = 0x0fff'ffff;

bool is_dots(const short_name_bytes& name) noexcept {
    if (name[0] != '.') return false;
    for (std::size_t i = name[1] == '.' ? 2 : 1; i < name.size(); ++i)
        if (name[i] != ' ') return false;
    return true;
}

}  // namespace

slot_kind kind_of(const directory_entry& slot) noexcept {
    if (slot.name[0] == end_mark) return slot_kind::end;
    if (slot.name[0] == free_mark) return slot_kind::free;
    const auto bits = static_cast<attributes>(slot.attribute_bits.value());
    if ((bits & attributes::long_name) == attributes::long_name) return slot_kind::long_name;
    if (has(bits, attributes::label)) return slot_kind::label;
    if (not has(bits, attributes::directory)) return slot_kind::file;
    return is_dots(slot.name) ? slot_kind::dots : slot_kind::directory;
}

std::uint32_t first_cluster(const directory_entry& slot, cluster_width width) noexcept {
    const std::uint32_t low = slot.first_cluster_low.value();
    if (width == cluster_width::two_bytes) return low;
    return (low | static_cast<std::uint32_t>(slot.first_cluster_high.value()) << 16) & cluster_bits;
}

void set_first_cluster(directory_entry& slot, std::uint32_t cluster, cluster_width width) noexcept {
    ENSURE(cluster <= (width == cluster_width::two_bytes ? 0xffffU : cluster_bits));
    slot.first_cluster_low = le16(static_cast<std::uint16_t>(cluster));
    if (width == cluster_width::four_bytes)
        slot.first_cluster_high = le16(static_cast<std::uint16_t>(cluster >> 16));
}

}  // namespace sluice::fat

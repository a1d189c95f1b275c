#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/check/repair_stages.hpp"
#include "sluice/fat/codec/long_name.hpp"

// Remedies for directory entries.

namespace sluice::fat {
namespace {

constexpr std::size_t checksum_offset = 13;  // in a piece of a long name

// Rule 3: the number of the slot, which is unique.
short_name_bytes name_of_slot(std::uint64_t offset) noexcept {
    short_name_bytes name = {'0', '0', '0', '0', '0', '0', '0', '0', 'R', 'E', 'N'};
    std::uint64_t number = offset / slot_bytes;
    for (std::size_t i = 8; i != 0; --i, number >>= 4)
        name[i - 1] = static_cast<unsigned char>("0123456789ABCDEF"[number & 0xf]);
    return name;
}

}  // namespace

result<bool> repair_round::free_slot(const problem& one) {
    ENSURE(one.slot_offset != 0, "the problem has an entry");
    auto entry = read_slot(image_, one.slot_offset);
    if (not entry) return failure(entry.error());
    entry->name[0] = free_mark;
    if (const auto done = write_slot(image_, one.slot_offset, *entry); not done) return failure(done.error());
    return true;  // pieces of a long name before it are orphans in the next round
}

// Moves the entry in the first or second slot of a directory, with its long name, after the last
// one. Returns false if there is no room. The copy is durable before the original is removed, so
// that a crash leaves two entries rather than none.
result<bool> repair_round::move_set_at(std::uint64_t offset) {
    ENSURE(offset >= shape_.data_offset, "the entry is in a cluster");
    const std::uint64_t cluster =
        (offset - shape_.data_offset) / shape_.cluster_bytes + geometry::first_cluster;
    directory_slots slots(image_, shape_, *table_, static_cast<std::uint32_t>(cluster));
    const std::uint64_t first = (offset - shape_.data_offset) % shape_.cluster_bytes / slot_bytes;
    std::vector<std::uint64_t> from;
    std::vector<directory_entry> set;
    for (std::uint64_t number = first; set.size() <= long_name_slots_max; ++number) {
        const auto at = slots.offset_of(number);
        if (not at) break;
        const auto entry = read_slot(image_, *at);
        if (not entry) return failure(entry.error());
        const slot_kind kind = kind_of(*entry);
        if (kind == slot_kind::end or kind == slot_kind::free) break;
        from.push_back(*at);
        set.push_back(*entry);
        if (kind != slot_kind::long_name) break;
    }
    for (const directory_entry& each : set) {
        const auto to = slots.take(directory_slots::where::after_end);
        if (not to) return failure(to.error());
        if (not*to) return false;
        if (const auto done = write_slot(image_, **to, each); not done) return failure(done.error());
    }
    if (const auto done = image_.barrier(); not done) return failure(done.error());
    for (std::size_t i = set.size(); i != 0; --i) {
        set[i - 1].name[0] = free_mark;
        if (const auto done = write_slot(image_, from[i - 1], set[i - 1]); not done)
            return failure(done.error());
    }
    return true;
}

result<bool> repair_round::repair_dot_entries(const problem& one) {
    ENSURE(one.slot_offset >= shape_.data_offset and one.other.size() <= 2, "`.` and `..` are in a cluster");
    auto entry = read_slot(image_, one.slot_offset);
    if (not entry) return failure(entry.error());
    if (one.kind == problem_kind::dot_missing) {
        const bool is_unused = entry->name[0] == free_mark or entry->name[0] == end_mark;
        if (not is_unused) {
            const auto moved = move_set_at(one.slot_offset);
            if (not moved or not*moved) return moved;
        }
        *entry = {};
        entry->name.fill(' ');
        std::ranges::copy(one.other, entry->name.begin());
        entry->modified_date = entry->created_date = le16(options_.date);
    }
    entry->attribute_bits = le8(static_cast<std::uint8_t>(attributes::directory));
    entry->size_bytes = le32(0);
    set_first_cluster(*entry, static_cast<std::uint32_t>(one.expected), width());
    say(one, one.kind == problem_kind::dot_malformed
                 ? "made its entry " + one.other + " a directory"
                 : "made its entry " + one.other + " lead to cluster " + std::to_string(one.expected));
    if (const auto done = write_slot(image_, one.slot_offset, *entry); not done) return failure(done.error());
    return true;
}

// Changes the short name. A long name is kept by giving its pieces the new checksum. If that is not
// sufficient, the long name is the duplicate, and the next round removes it.
result<bool> repair_round::repair_name(const problem& one, std::set<std::uint64_t>& renamed) {
    ENSURE(one.slot_offset != 0, "the problem has an entry");
    auto entry = read_slot(image_, one.slot_offset);
    if (not entry) return failure(entry.error());
    const bool keeps_long_name = renamed.insert(one.slot_offset).second;
    entry->name = name_of_slot(one.slot_offset);
    const std::uint8_t sum = keeps_long_name ? checksum_of(entry->name) : 0;
    const bool is_contiguous = one.first_slot != 0 and one.first_slot < one.slot_offset and
                               one.slot_offset - one.first_slot <= long_name_slots_max * slot_bytes;
    for (std::uint64_t at = one.first_slot; is_contiguous and at != one.slot_offset; at += slot_bytes) {
        auto piece = read_slot(image_, at);
        if (not piece) return failure(piece.error());
        if (kind_of(*piece) != slot_kind::long_name) break;  // in another cluster, after all
        if (keeps_long_name) {
            std::array<std::byte, slot_bytes> bytes{};
            std::memcpy(bytes.data(), &*piece, slot_bytes);
            bytes[checksum_offset] = static_cast<std::byte>(sum);
            std::memcpy(&*piece, bytes.data(), slot_bytes);
        } else {
            piece->name[0] = free_mark;
        }
        if (const auto done = write_slot(image_, at, *piece); not done) return failure(done.error());
    }
    const std::string text(entry->name.begin(), entry->name.begin() + 8);
    say(one, (keeps_long_name ? "changed its short name to " : "changed its name to ") + text + ".REN");
    if (const auto done = write_slot(image_, one.slot_offset, *entry); not done) return failure(done.error());
    return true;
}

// Removes the pieces up to the first slot that is not a piece: that may be the end of a cluster.
// The next round removes the others.
result<bool> repair_round::drop_pieces(const problem& one) {
    ENSURE(one.first_slot != 0 and one.value != 0, "the problem has a slot");
    for (std::uint64_t i = 0; i != one.value; ++i) {
        const std::uint64_t at = one.first_slot + i * slot_bytes;
        auto piece = read_slot(image_, at);
        if (not piece) return failure(piece.error());
        if (kind_of(*piece) != slot_kind::long_name) break;
        piece->name[0] = free_mark;
        if (const auto done = write_slot(image_, at, *piece); not done) return failure(done.error());
        const bool is_last_of_cluster =
            at >= shape_.data_offset and (at + slot_bytes - shape_.data_offset) % shape_.cluster_bytes == 0;
        if (is_last_of_cluster) break;
    }
    say(one, "removed pieces of a long name that belong to no entry");
    return true;
}

}  // namespace sluice::fat

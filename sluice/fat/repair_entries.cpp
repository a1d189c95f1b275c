#include <algorithm>
#include <charconv>

#include "sluice/fat/long_name.hpp"
#include "sluice/fat/repair_stages.hpp"

// Remedies for directory entries.

namespace sluice::fat {
namespace {

constexpr std::size_t checksum_offset = 13;  // in a piece of a long name

// Rule 3: the number of the slot, which no other has.
short_name_bytes name_of_slot(std::uint64_t offset) noexcept {
    short_name_bytes name = {'0', '0', '0', '0', '0', '0', '0', '0', 'R', 'E', 'N'};
    std::uint64_t number = offset / slot_bytes;
    for (std::size_t i = 8; i != 0; --i, number >>= 4)
        name[i - 1] = static_cast<unsigned char>("0123456789ABCDEF"[number & 0xf]);
    return name;
}

}  // namespace

result<bool> repair_round::free_slot(const problem& one) {
    auto entry = read_slot(image_, one.slot_offset);
    if (not entry) return failure(entry.error());
    entry->name[0] = free_mark;
    if (const auto done = write_slot(image_, one.slot_offset, *entry); not done) return failure(done.error());
    return true;  // pieces of a long name before it are orphans in the next round
}

result<bool> repair_round::mend_dots(const problem& one) {
    auto entry = read_slot(image_, one.slot_offset);
    if (not entry) return failure(entry.error());
    if (one.kind == problem_kind::dot_missing) {
        const bool is_unused = entry->name[0] == free_mark or entry->name[0] == end_mark;
        if (not is_unused) return false;  // what stands there is worth more
        *entry = {};
        entry->name.fill(' ');
        std::ranges::copy(one.other, entry->name.begin());
        entry->attribute_bits = le8(static_cast<std::uint8_t>(attributes::directory));
        entry->modified_date = entry->created_date = le16(options_.date);
    }
    set_first_cluster(*entry, static_cast<std::uint32_t>(one.expected), width());
    say(one, "made its entry " + one.other + " lead to cluster " + std::to_string(one.expected));
    if (const auto done = write_slot(image_, one.slot_offset, *entry); not done) return failure(done.error());
    return true;
}

// The short name changes; a long one is kept by giving its pieces the new checksum. If that was not enough,
// it is the long one that is double, and in the next round it goes.
result<bool> repair_round::mend_name(const problem& one, std::set<std::uint64_t>& renamed) {
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

// The pieces up to the first slot that is none: that may be the end of a cluster. The others' turn is next.
result<bool> repair_round::drop_pieces(const problem& one) {
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

// The first number no FSCKnnnn.REC of the root has; one more than the highest, to be plain.
result<std::uint32_t> repair_round::next_saved_number() {
    std::uint32_t next = 0;
    const auto done =
        root_slots(image_, shape_, *table_).find([&](std::uint64_t, const directory_entry& entry) {
            const std::string name(entry.name.begin(), entry.name.end());
            std::uint32_t number = 0;
            const auto parsed = std::from_chars(name.data() + 4, name.data() + 8, number);
            if (name.starts_with("FSCK") and name.ends_with("REC") and parsed.ptr == name.data() + 8)
                next = std::max(next, number + 1);
            return false;
        });
    if (not done) return failure(done.error());
    return next;
}

}  // namespace sluice::fat

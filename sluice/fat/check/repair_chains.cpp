#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/check/repair_stages.hpp"
#include "sluice/fat/check/tree_check.hpp"
#include "sluice/fat/edit/recovered_file_names.hpp"

// Remedies for chains: truncation, copies, sizes, and lost clusters.

namespace sluice::fat {
namespace {

bool is_directory(const directory_entry& entry) noexcept {
    return has(static_cast<attributes>(entry.attribute_bits.value()), attributes::directory);
}

constexpr std::uint64_t size_max = 0xffff'ffff;

}  // namespace

result<bool> repair_round::repair_chain(const problem& one) {
    if (one.kind == problem_kind::root_start_bad) {
        const auto root = static_cast<std::uint32_t>(one.value);
        if (not shape_.is_cluster(root)) return false;
        table_->end_chain(root);
        say(one, "took the root's first cluster into use again");
        return true;
    }
    if (one.cluster != 0) {
        ENSURE(shape_.is_cluster(one.cluster), "a chain ends in a cluster");
        table_->end_chain(one.cluster);
        say(one, "ended the chain after cluster " + std::to_string(one.cluster));
        return true;
    }
    ENSURE(one.slot_offset != 0, "a chain without a cluster is that of an entry");
    auto entry = read_slot(image_, one.slot_offset);
    if (not entry) return failure(entry.error());
    if (is_directory(*entry)) {
        say(one, "removed the entry of a directory that has no clusters");
        return free_slot(one);
    }
    set_first_cluster(*entry, 0, width());
    entry->size_bytes = le32(0);
    say(one, "made it empty: it has no clusters");
    if (const auto done = write_slot(image_, one.slot_offset, *entry); not done) return failure(done.error());
    return true;
}

result<bool> repair_round::repair_cross_link(const problem& one) {
    if (one.slot_offset == 0) return repair_chain(one);  // the root
    const auto entry = read_slot(image_, one.slot_offset);
    if (not entry) return failure(entry.error());
    if (not is_directory(*entry)) return copy_shared(one, *entry);
    if (one.cluster != 0) return repair_chain(one);
    say(one, "removed the entry: the directory is also " + one.other);
    return free_slot(one);
}

// Returns the number of clusters of a file up to `last`, where its chain crosses another one, or
// std::nullopt if the chain does not contain it.
std::optional<std::uint64_t> repair_round::clusters_up_to(std::uint32_t last, std::uint32_t first) const {
    if (last == 0) return 0;
    if (not shape_.is_cluster(first)) return std::nullopt;
    std::uint64_t have = 1;
    for (std::uint32_t at = first; at != last; ++have) {
        const table_entry after = as_found_->entry(at);
        if (after.kind != entry_kind::next or have > shape_.cluster_count) return std::nullopt;
        at = after.next;
    }
    return have;
}

// Returns the shared part of a chain, at most `most` clusters, as far as it can be read: it may be
// cyclic, or lead to free clusters. It is followed in the state that the check found, because a
// remedy of this round may have cut it for the other file.
std::vector<std::uint32_t> repair_round::shared_from(std::uint32_t first, std::uint64_t most) {
    ENSURE(shape_.is_cluster(first), "chains cross in a cluster");
    is_seen_.resize(std::size_t{shape_.last_cluster()} + 1);
    std::vector<std::uint32_t> found;
    for (std::uint32_t at = first; found.size() < most and not is_seen_[at];) {
        const table_entry after = as_found_->entry(at);
        if (after.kind == entry_kind::free or after.kind == entry_kind::bad) break;
        found.push_back(at);
        is_seen_[at] = true;
        if (after.kind != entry_kind::next) break;
        at = after.next;
    }
    for (const std::uint32_t each : found)
        is_seen_[each] = false;
    return found;
}

// Rule 1. The copy is written and linked before the file refers to it: the FAT by a flush, then, if
// the first cluster is affected, the entry.
result<bool> repair_round::copy_shared(const problem& one, const directory_entry& entry) {
    const std::uint64_t needed =
        (std::uint64_t{entry.size_bytes.value()} + shape_.cluster_bytes - 1) / shape_.cluster_bytes;
    const auto have = clusters_up_to(one.cluster, first_cluster(entry, width()));
    if (not have) return false;
    std::vector<std::byte> room(shape_.cluster_bytes);
    std::uint32_t last = one.cluster;
    std::uint32_t first = 0;
    for (const std::uint32_t from :
         shared_from(static_cast<std::uint32_t>(one.value), needed - std::min(needed, *have))) {
        const auto fresh = table_->allocate();
        if (not fresh) break;  // the rest stays with the other file
        if (const auto done = image_.read_at(shape_.cluster_offset(from), std::span(room)); not done)
            return failure(done.error());
        if (const auto done =
                image_.write_at(shape_.cluster_offset(*fresh), std::span<const std::byte>(room));
            not done)
            return failure(done.error());
        if (first == 0) first = *fresh;
        if (last != 0) table_->set(last, *fresh);
        last = *fresh;
    }
    if (first == 0 and one.cluster != 0) table_->end_chain(one.cluster);
    if (const auto done = table_->flush(); not done) return failure(done.error());
    if (one.cluster == 0) {
        directory_entry changed = entry;
        set_first_cluster(changed, first, width());
        if (const auto done = write_slot(image_, one.slot_offset, changed); not done)
            return failure(done.error());
    }
    say(one, first != 0 ? "gave it a copy of the clusters it shared with " + one.other
                        : "ended it before the clusters it shared with " + one.other);
    return true;
}

// Rule 3. A chain that is too long is cut at the size; a later stage saves the removed clusters.
result<bool> repair_round::repair_length(const problem& one) {
    if (one.kind == problem_kind::chain_too_long and one.cluster != 0) {
        ENSURE(shape_.is_cluster(one.cluster), "a chain ends in a cluster");
        table_->end_chain(one.cluster);
        say(one, "removed the clusters its size does not need");
        return true;
    }
    auto entry = read_slot(image_, one.slot_offset);
    if (not entry) return failure(entry.error());
    ENSURE(one.slot_offset != 0, "a length is that of an entry");
    std::uint64_t size = 0;
    if (one.kind == problem_kind::chain_too_short) size = one.value * shape_.cluster_bytes;
    entry->size_bytes = le32(static_cast<std::uint32_t>(std::min(size, size_max)));
    const bool keeps_chain = size != 0 or is_directory(*entry);
    if (not keeps_chain) set_first_cluster(*entry, 0, width());
    say(one, "set its size to " + std::to_string(size));
    if (const auto done = write_slot(image_, one.slot_offset, *entry); not done) return failure(done.error());
    return true;
}

// Rule 2.
result<bool> repair_round::save_lost() {
    auto map = chain_map::load(image_, shape_, shape_.active_fat);
    if (not map) return failure(map.error());
    check_report ignored;
    tree_check tree(image_, *map, ignored, {.page = options_.page, .problems_max = 0});
    tree.run();
    const auto is_lost = [&](std::uint32_t cluster) {
        return map->is_in_use(cluster) and map->owner(cluster) == chain_map::nobody;
    };
    std::vector<bool> is_referenced(std::size_t{shape_.last_cluster()} + 1);
    for (std::uint32_t each = geometry::first_cluster; each <= shape_.last_cluster(); ++each)
        if (is_lost(each) and map->entry(each).kind == entry_kind::next)
            is_referenced[map->entry(each).next] = true;
    directory_slots root(image_, shape_, *table_);
    auto names = recovered_file_names::in(root);
    if (not names) return failure(names.error());
    constexpr chain_map::object saved = ~chain_map::object{0};
    bool did_something = false;
    // First from the heads of chains. The remaining clusters form cycles, each entered at any
    // cluster.
    for (const bool only_heads : {true, false})
        for (std::uint32_t each = geometry::first_cluster; each <= shape_.last_cluster(); ++each) {
            if (not is_lost(each) or (only_heads and is_referenced[each])) continue;
            const chain_map::outcome chain = map->take(each, saved);
            ENSURE(chain.length != 0 and shape_.is_cluster(chain.last), "a lost cluster begins a chain");
            if (chain.how != chain_map::ending::whole) table_->end_chain(chain.last);
            const auto done =
                save_chain(root, {.name = names->next(), .first = each, .clusters = chain.length});
            if (not done) return done;
            if (not*done) return did_something;  // no room in the root
            did_something = true;
        }
    return did_something;
}

result<bool> repair_round::save_chain(directory_slots& root, const lost_chain& lost) {
    ENSURE(lost.clusters != 0 and shape_.is_cluster(lost.first));
    if (const auto done = table_->flush(); not done) return failure(done.error());
    const auto offset = root.take();
    if (not offset) return failure(offset.error());
    if (not*offset) return false;
    directory_entry entry{};
    entry.name = lost.name;
    entry.attribute_bits = le8(static_cast<std::uint8_t>(attributes::archive));
    entry.modified_date = entry.created_date = entry.accessed_date = le16(options_.date);
    entry.modified_time = entry.created_time = le16(options_.time);
    set_first_cluster(entry, lost.first, width());
    const std::uint64_t bytes = std::uint64_t{lost.clusters} * shape_.cluster_bytes;
    entry.size_bytes = le32(static_cast<std::uint32_t>(std::min(bytes, size_max)));
    if (const auto done = write_slot(image_, **offset, entry); not done) return failure(done.error());
    actions_.push_back("saved " + std::to_string(lost.clusters) + " lost clusters as /" +
                       std::string(lost.name.begin(), lost.name.begin() + 8) + ".REC");
    return true;
}

}  // namespace sluice::fat

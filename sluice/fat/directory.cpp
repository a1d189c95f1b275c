#include "sluice/fat/directory.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/vfs/host_name.hpp"
#include "sluice/vfs/path.hpp"

// Reading a directory, and its index.

namespace sluice::fat {
namespace {

std::string key_of(const short_name_bytes& name) {
    return {name.begin(), name.end()};
}

// What can stand in a path; empty if nothing of it can.
std::string shown_text(const std::string& text) {
    std::string storage;
    std::string shown(vfs::shown_name(text, storage));
    std::ranges::replace(shown, '/', '_');
    if (not vfs::check_name(shown)) return {};
    return shown;
}

}  // namespace

result<std::unique_ptr<directory>> directory::load(const source& from, cluster_chain* chain) {
    std::unique_ptr<directory> made(new directory(from));
    if (chain == nullptr) {
        made->is_fixed_ = true;
        made->offsets_.push_back(from.shape.root_offset);
        made->image_.resize(std::size_t{from.shape.root_entries} * slot_bytes);
        const auto done = from.on.read_at(from.shape.root_offset, std::span(made->image_));
        if (not done) return failure(done.error());
    } else if (const auto done = made->read_clusters(*chain); not done) {
        return failure(done.error());
    }
    made->build_index();
    return made;
}

result<void> directory::read_clusters(cluster_chain& chain) {
    const std::size_t clusters_max = std::max<std::size_t>(1, bytes_max / shape_.cluster_bytes);
    std::unordered_set<std::uint32_t> seen;
    run_list::hint hint;
    while (offsets_.size() < clusters_max) {
        const auto at = static_cast<std::uint32_t>(offsets_.size());
        if (chain.is_counted() and at == *chain.count()) break;
        const auto run = chain.locate(at, hint);
        if (not run) {
            // The end is told from damage by asking how many there are.
            is_damaged_ = not chain.count().has_value();
            if (at == 0) return failure({EIO, "read directory"});
            break;
        }
        std::uint32_t length = 0;
        while (length < run->length and offsets_.size() < clusters_max and
               seen.insert(run->disk_cluster + length).second) {
            offsets_.push_back(shape_.cluster_offset(run->disk_cluster + length));
            ++length;
        }
        const std::size_t before = image_.size();
        image_.resize(before + std::size_t{length} * shape_.cluster_bytes);
        const auto part = std::span(image_).subspan(before);
        if (const auto done = device_.read_at(shape_.cluster_offset(run->disk_cluster), part); not done)
            return done;
        if (length < run->length and offsets_.size() < clusters_max) {
            is_damaged_ = true;  // back at a cluster it has been to
            break;
        }
    }
    return {};
}

void directory::build_index() {
    used_.assign(slot_count(), false);
    free_in_.assign(slot_count() / slots_per_sector() + 1, static_cast<std::uint16_t>(slots_per_sector()));
    if (slot_count() % slots_per_sector() != 0 or slot_count() == 0)
        free_in_.back() = static_cast<std::uint16_t>(slot_count() % slots_per_sector());
    long_name_collector pieces;
    std::uint32_t pieces_from = 0;
    end_ = slot_count();
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot) {
        const directory_entry raw = read(slot);
        const slot_kind kind = kind_of(raw);
        if (kind == slot_kind::end) {
            end_ = slot;
            break;
        }
        if (kind == slot_kind::free) {
            pieces.drop();
            continue;
        }
        occupy({.first = slot, .count = 1});
        if (kind == slot_kind::long_name) {
            const std::size_t before = pieces.slots();
            pieces.add(raw);
            if (before == 0 or (raw.name[0] & 0x40) != 0) pieces_from = slot;
            continue;
        }
        if (kind == slot_kind::label and not label_slot_) label_slot_ = slot;
        if (kind == slot_kind::file or kind == slot_kind::directory) {
            const bool is_long = pieces.name_of(raw.name).has_value();
            name_entry entry{
                .first_slot = is_long ? pieces_from : slot, .slot = slot, .name = shown(raw, pieces)};
            if (not entry.name.empty()) index(std::move(entry), raw);
        }
        pieces.drop();
    }
    is_wiped_ = std::all_of(image_.begin() + static_cast<std::ptrdiff_t>(std::size_t{end_} * slot_bytes),
                            image_.end(), [](std::byte each) { return each == std::byte{}; });
}

std::string directory::shown(const directory_entry& raw, const long_name_collector& pieces) const {
    if (const auto units = pieces.name_of(raw.name)) {
        std::string name = shown_text(to_utf8(*units));
        if (not name.empty()) return name;
    }
    return shown_text(text_of(raw.name, raw.case_bits.value(), page_));
}

void directory::index(name_entry entry, const directory_entry& raw) {
    std::string folded = fold(entry.name);
    entry.alias = fold(shown_text(text_of(raw.name, 0, page_)));
    if (entry.alias == folded) entry.alias.clear();
    shorts_.insert(key_of(raw.name));
    if (not names_.try_emplace(std::move(folded), entry.slot).second) has_doubles_ = true;
    if (not entry.alias.empty() and not aliases_.try_emplace(entry.alias, entry.slot).second)
        has_doubles_ = true;
    const std::uint32_t slot = entry.slot;
    entries_.insert_or_assign(slot, std::move(entry));
}

void directory::unindex(const name_entry& entry) {
    const std::uint32_t slot = entry.slot;
    const auto drop = [&](std::unordered_map<std::string, std::uint32_t>& from, const std::string& key) {
        if (const auto found = from.find(key); found != from.end() and found->second == slot)
            from.erase(found);
    };
    drop(names_, fold(entry.name));
    if (not entry.alias.empty()) drop(aliases_, entry.alias);
    entries_.erase(slot);
    if (not has_doubles_) return;
    // Only on damaged volumes do two entries share a name: now another one may be the first.
    for (const auto& [other, each] : entries_) {
        names_.try_emplace(fold(each.name), other);
        if (not each.alias.empty()) aliases_.try_emplace(each.alias, other);
    }
}

const name_entry* directory::find(const std::string& folded) const {
    auto found = names_.find(folded);
    if (found == names_.end()) {
        found = aliases_.find(folded);
        if (found == aliases_.end()) return nullptr;
    }
    return at(found->second);
}

const name_entry* directory::at(std::uint32_t slot) const {
    const auto found = entries_.find(slot);
    return found == entries_.end() ? nullptr : &found->second;
}

const name_entry* directory::next(std::uint32_t from) const {
    const auto found = entries_.lower_bound(from);
    return found == entries_.end() ? nullptr : &found->second;
}

directory_entry directory::read(std::uint32_t slot) const noexcept {
    ENSURE(slot < slot_count());
    directory_entry raw;
    std::memcpy(&raw, image_.data() + std::size_t{slot} * slot_bytes, slot_bytes);
    return raw;
}

void directory::put(std::uint32_t slot, const directory_entry& raw) noexcept {
    ENSURE(slot < slot_count());
    std::memcpy(image_.data() + std::size_t{slot} * slot_bytes, &raw, slot_bytes);
    dirty_.insert(slot / slots_per_sector());
}

void directory::update(std::uint32_t slot, const directory_entry& entry) noexcept {
    directory_entry raw = entry;
    raw.name = read(slot).name;
    put(slot, raw);
}

void directory::set_parent(std::uint32_t cluster, cluster_width width) noexcept {
    if (slot_count() < 2) return;
    directory_entry raw = read(1);
    if (kind_of(raw) != slot_kind::dots) return;
    set_first_cluster(raw, cluster, width);
    put(1, raw);
}

}  // namespace sluice::fat

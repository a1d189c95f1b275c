#include "sluice/fat/engine/directory.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/path.hpp"

// Loading a directory and building its index.

namespace sluice::fat {
namespace {

// Returns a text if it can be a component of a path; otherwise an empty string.
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
    ENSURE(chain != nullptr or from.shape.type != fat_type::fat32, "FAT32 has no fixed root");
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
            // The number of clusters distinguishes the end from damage.
            const auto count = chain.count();
            if (at == 0) return failure({EIO, "read directory"});
            is_damaged_ = not count and cluster_chain::is_damage(count.error());
            const bool is_end = count and * count == at;
            // The device failed, so this is only a part of the names.
            if (not is_damaged_ and not is_end) return failure(run.error());
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
            is_damaged_ = true;  // the chain is cyclic
            break;
        }
    }
    ENSURE(image_.size() == offsets_.size() * shape_.cluster_bytes,
           "each cluster has its bytes and its place");
    return {};
}

void directory::build_index() {
    used_.assign(slot_count(), false);
    free_in_.assign(slot_count() / slots_per_sector() + 1, static_cast<std::uint16_t>(slots_per_sector()));
    if (slot_count() % slots_per_sector() != 0 or slot_count() == 0)
        free_in_.back() = static_cast<std::uint16_t>(slot_count() % slots_per_sector());
    dirty_.resize(free_in_.size());
    after_another_.resize(free_in_.size());
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
            const std::uint32_t first = pieces.name_of(raw.name) ? pieces_from : slot;
            index({.first = first, .count = slot - first + 1}, raw, pieces);
        }
        pieces.drop();
    }
    ENSURE(std::find(used_.begin() + end_, used_.end(), true) == used_.end(),
           "no slot after the end is used");
    is_wiped_ = std::all_of(image_.begin() + static_cast<std::ptrdiff_t>(std::size_t{end_} * slot_bytes),
                            image_.end(), [](std::byte each) { return each == std::byte{}; });
}

void directory::index(slots which, const directory_entry& raw, const long_name_collector& pieces) {
    name_entry entry{.first_slot = which.first, .slot = which.first + which.count - 1};
    if (const auto units = pieces.name_of(raw.name)) entry.name = shown_text(to_utf8(*units));
    if (entry.name.empty()) entry.name = shown_text(text_of(raw.name, raw.case_bits.value(), page_));
    if (entry.name.empty()) return;
    entry.alias = shown_text(text_of(raw.name, 0, page_));
    if (equal_ignoring_case(entry.alias, entry.name)) entry.alias.clear();
    if (not skip_leftover_entry(entry)) names_.add(std::move(entry));
}

// Handles two entries with the same name. One of them may be the result of a change of case that a
// crash interrupted: if the new name had no room in its sector, it is in another sector and takes
// more slots. Marks that one for removal. Returns whether it is `fresh`.
bool directory::skip_leftover_entry(const name_entry& fresh) {
    const name_entry* const twin = names_.find(fresh.name);
    if (twin == nullptr or not equal_ignoring_case(twin->name, fresh.name)) return false;
    ENSURE(twin->slot != fresh.slot, "an entry is not its own twin");
    const auto width = shape_.type == fat_type::fat32 ? cluster_width::four_bytes : cluster_width::two_bytes;
    const directory_entry fresh_raw = read(fresh.slot);
    const directory_entry twin_raw = read(twin->slot);
    const std::uint32_t fresh_cluster = first_cluster(fresh_raw, width);
    const std::uint32_t twin_cluster = first_cluster(twin_raw, width);
    if (kind_of(fresh_raw) != kind_of(twin_raw)) return false;
    // The entry may have been written while the file was empty.
    const bool is_one_file = fresh_cluster == twin_cluster or fresh_cluster == 0 or twin_cluster == 0;
    if (not is_one_file) return false;
    const bool is_fresh =
        fresh_cluster == twin_cluster ? set_of(fresh).count <= set_of(*twin).count : fresh_cluster == 0;
    leftovers_.push_back(set_of(is_fresh ? fresh : *twin));
    if (not is_fresh) names_.erase(twin->slot);
    return is_fresh;
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
    mark_dirty(slot / slots_per_sector());
}

void directory::mark_dirty(std::uint32_t sector) noexcept {
    ENSURE(sector < dirty_.size(), "a sector of the directory");
    if (dirty_[sector]) return;
    dirty_[sector] = true;
    ++dirty_count_;
}

void directory::update(std::uint32_t slot, const directory_entry& entry) noexcept {
    directory_entry raw = entry;
    raw.name = read(slot).name;
    put(slot, raw);
}

void directory::set_parent(std::uint32_t cluster, cluster_width width) noexcept {
    ENSURE(cluster == 0 or shape_.is_cluster(cluster), "a parent is the root or begins at a cluster");
    if (slot_count() < 2) return;
    directory_entry raw = read(1);
    if (kind_of(raw) != slot_kind::dots) return;
    set_first_cluster(raw, cluster, width);
    put(1, raw);
}

}  // namespace sluice::fat

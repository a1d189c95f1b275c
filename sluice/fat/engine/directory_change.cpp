#include <algorithm>
#include <cstring>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/fat/engine/directory.hpp"

// Changing a directory.

namespace sluice::fat {

void directory::occupy(slots which) noexcept {
    ENSURE(which.count <= slot_count() and which.first <= slot_count() - which.count);
    for (std::uint32_t slot = which.first; slot < which.first + which.count; ++slot) {
        ENSURE(not used_[slot]);
        ENSURE(free_in_[slot / slots_per_sector()] != 0, "a sector's free slots are counted");
        used_[slot] = true;
        --free_in_[slot / slots_per_sector()];
    }
}

void directory::release_slots(slots which) noexcept {
    ENSURE(which.count <= slot_count() and which.first <= slot_count() - which.count);
    for (std::uint32_t slot = which.first; slot < which.first + which.count; ++slot) {
        ENSURE(used_[slot]);
        ENSURE(free_in_[slot / slots_per_sector()] < slots_per_sector(), "a sector's free slots are counted");
        used_[slot] = false;
        ++free_in_[slot / slots_per_sector()];
    }
    released_from_ = std::min(released_from_, which.first / slots_per_sector());
}

// Returns the first run of `where.count` unused slots that begins at or after `from` and is within
// [where.first, ...).
std::optional<std::uint32_t> directory::room_in(std::uint32_t from, slots where) const noexcept {
    ENSURE(where.count != 0 and where.first <= used_.size(), "the search is inside the directory");
    std::uint32_t row = 0;
    for (std::uint32_t slot = from; slot < where.first; ++slot) {
        row = used_[slot] ? 0 : row + 1;
        if (row == where.count) return slot + 1 - where.count;
    }
    return std::nullopt;
}

std::optional<std::uint32_t> directory::room_for(std::uint32_t count) noexcept {
    ENSURE(count != 0 and count < room_from_.size(), "an entry has at most so many slots");
    const std::uint32_t each = slots_per_sector();
    for (std::uint32_t& known : room_from_)
        known = std::min(known, released_from_);
    released_from_ = UINT32_MAX;
    std::uint32_t& from = room_from_[count];
    // A set that does not fit into one sector can be at any run that is long enough.
    if (count > each) return room_in(from * each, {.first = slot_count(), .count = count});
    for (; from * each < slot_count(); ++from) {
        if (free_in_[from] < count) continue;
        const auto found =
            room_in(from * each, {.first = std::min((from + 1) * each, slot_count()), .count = count});
        if (found) return found;
    }
    return std::nullopt;
}

bool directory::is_full() const noexcept {
    return is_fixed_ or
           image_.size() + shape_.cluster_bytes > std::max<std::size_t>(bytes_max, shape_.cluster_bytes);
}

void directory::grow(std::uint64_t offset) {
    ENSURE(not is_fixed_ and not is_damaged_ and not is_full());
    ENSURE(offset >= shape_.data_offset and (offset - shape_.data_offset) % shape_.cluster_bytes == 0,
           "a directory grows by a cluster");
    offsets_.push_back(offset);
    image_.resize(image_.size() + shape_.cluster_bytes);
    used_.resize(slot_count());
    free_in_.resize(slot_count() / slots_per_sector() + 1, static_cast<std::uint16_t>(slots_per_sector()));
    free_in_.back() = static_cast<std::uint16_t>(slot_count() % slots_per_sector());
    ENSURE(image_.size() == offsets_.size() * shape_.cluster_bytes,
           "each cluster has its bytes and its place");
    const std::size_t sectors = slot_count() / slots_per_sector();
    for (std::size_t i = sectors - shape_.sectors_per_cluster; i < sectors; ++i)
        free_in_[i] = static_cast<std::uint16_t>(slots_per_sector());
    dirty_.resize(free_in_.size());
    after_another_.resize(free_in_.size());
}

// The slots after the end may have any content. They must be zeros before the end moves there.
result<void> directory::zero_after_end() noexcept {
    if (is_wiped_) return {};
    ENSURE(end_ <= slot_count());
    const std::uint32_t per_sector = slots_per_sector();
    std::fill(image_.begin() + static_cast<std::ptrdiff_t>(std::size_t{end_} * slot_bytes), image_.end(),
              std::byte{});
    for (std::uint32_t sector = (end_ + per_sector - 1) / per_sector; sector < slot_count() / per_sector;
         ++sector) {
        const auto part =
            std::span(image_).subspan(std::size_t{sector} * shape_.sector_bytes, shape_.sector_bytes);
        if (const auto done = device_.write_at(offset_of(sector), part); not done) return done;
    }
    if (end_ % per_sector != 0) mark_dirty(end_ / per_sector);
    is_wiped_ = true;
    return {};
}

directory::own_short_name directory::unused_short_name(std::string_view name) {
    if (const auto exact = exactly(name, page_); exact and not names_.has(name))
        return {.raw = *exact, .alias = {}};
    const short_name_basis basis = basis_of(name, page_);
    // The key of the counter. Names that differ only in the part that a number replaces share it.
    const short_name_bytes first = numbered(basis, 1);
    std::uint32_t& number =
        next_number_.try_emplace(std::string(first.begin(), first.end()), 1).first->second;
    for (;;) {
        const short_name made{.bytes = numbered(basis, number), .case_bits = 0};
        std::string text = text_of(made.bytes, made.case_bits, page_);
        if (not names_.has(text)) return {.raw = made, .alias = std::move(text)};
        // Wraps around: a directory has fewer names than there are numbers.
        number = number == short_name_number_max ? 1 : number + 1;
    }
}

// Writes the pieces of a long name, if `name` is not empty, and the entry.
void directory::write_set(slots where, std::u16string_view name, const directory_entry& raw) noexcept {
    ENSURE(where.count == 1 + long_name_slots(name.size()), "each piece of the name has its slot");
    ENSURE(where.first + where.count <= end_, "an entry lies before the end");
    const std::uint32_t pieces = where.count - 1;
    for (std::uint32_t i = 0; i < pieces; ++i)
        put(where.first + i, long_name_slot(name, pieces - i, checksum_of(raw.name)));
    put(where.first + pieces, raw);
    const std::uint32_t first = where.first / slots_per_sector();
    const std::uint32_t last = (where.first + pieces) / slots_per_sector();
    for (std::uint32_t sector = first + 1; sector <= last; ++sector)
        after_another_[sector] = true;
}

// Moves the end, because a slot that was never used would be taken for it.
void directory::extend_to(slots which) noexcept {
    ENSURE(which.count != 0 and which.first + which.count <= slot_count());
    for (; end_ < which.first; ++end_) {
        directory_entry skipped;
        skipped.name[0] = free_mark;
        put(end_, skipped);
    }
    end_ = std::max(end_, which.first + which.count);
}

result<const name_entry*> directory::add(std::string_view name, const directory_entry& entry) {
    if (is_damaged_) return failure({EIO, "add to a damaged directory"});
    if (const auto wiped = zero_after_end(); not wiped) return failure(wiped.error());
    own_short_name own = unused_short_name(name);
    const std::u16string units = own.alias.empty() ? std::u16string() : to_utf16(name);
    ENSURE(units.size() <= long_name_units_max);
    const auto count = static_cast<std::uint32_t>(1 + long_name_slots(units.size()));
    const auto first = room_for(count);
    if (not first) return failure({ENOSPC, "add to directory"});
    directory_entry raw = entry;
    raw.name = own.raw.bytes;
    raw.case_bits = le8(own.raw.case_bits);
    extend_to({.first = *first, .count = count});
    occupy({.first = *first, .count = count});
    write_set({.first = *first, .count = count}, units, raw);
    const std::uint32_t slot = *first + count - 1;
    ENSURE(count > slots_per_sector() or *first / slots_per_sector() == slot / slots_per_sector(),
           "a set of slots that fits into a sector is in one");
    return names_.add({.first_slot = *first, .slot = slot, .name = name, .alias = std::move(own.alias)});
}

bool directory::has_room_for(std::string_view name) noexcept {
    return room_for(static_cast<std::uint32_t>(1 + long_name_slots(to_utf16(name).size()))).has_value();
}

void directory::remove(std::uint32_t slot) {
    removals_.push_back(set_of(*at(slot)));
    ENSURE(used_[removals_.back().first] and slot < end_, "the slots of an entry are used");
    names_.leave(slot);
}

void directory::mark_free(slots which) noexcept {
    ENSURE(which.first + which.count <= end_, "freed slots are before the end");
    for (std::uint32_t slot = which.first; slot < which.first + which.count; ++slot) {
        image_[std::size_t{slot} * slot_bytes] = std::byte{free_mark};
        mark_dirty(slot / slots_per_sector());
    }
}

void directory::apply(slots gone) noexcept {
    ENSURE(used_[gone.first] and used_[gone.first + gone.count - 1],
           "a removed entry has its slots until then");
    mark_free(gone);
    release_slots(gone);
    names_.erase(gone.first + gone.count - 1);
}

void directory::apply_removals() noexcept {
    for (const slots each : removals_)
        apply(each);
    removals_.clear();
    for (const slots each : leftovers_) {
        mark_free(each);
        release_slots(each);
    }
    leftovers_.clear();
}

void directory::join(std::uint32_t slot, const name_entry& other) noexcept {
    ENSURE(not removals_.empty());
    const slots gone = removals_.back();
    ENSURE(gone.first + gone.count - 1 == slot);
    const std::uint32_t sector = slot / slots_per_sector();
    if (gone.first / slots_per_sector() != sector or other.first_slot / slots_per_sector() != sector or
        other.slot / slots_per_sector() != sector)
        return;
    apply(gone);
    removals_.pop_back();
}

// Allocates slots for a set that replaces `old` in the same sector, so that one write of that
// sector does both. Returns the first slot; the slots of `old` are free then, except for the new
// set.
std::optional<std::uint32_t> directory::room_instead_of(slots old, std::uint32_t count) noexcept {
    ENSURE(count != 0 and old.count != 0 and used_[old.first], "a name takes the place of another");
    if (count == old.count) return old.first;
    const std::uint32_t sector = old.first / slots_per_sector();
    if (not is_wiped_ or (old.first + old.count - 1) / slots_per_sector() != sector) return std::nullopt;
    release_slots(old);
    const std::uint32_t end = std::min((sector + 1) * slots_per_sector(), slot_count());
    const auto found = room_in(sector * slots_per_sector(), {.first = end, .count = count});
    occupy(found ? slots{.first = *found, .count = count} : old);
    return found;
}

std::optional<std::uint32_t> directory::change_case(std::uint32_t slot, std::string_view name) {
    name_entry entry = *at(slot);
    directory_entry raw = read(slot);
    const slots old = set_of(entry);
    if (const auto exact = exactly(name, page_); exact and exact->bytes == raw.name and old.count == 1) {
        raw.case_bits = le8(exact->case_bits);
        put(slot, raw);
    } else {
        const std::u16string units = to_utf16(name);
        const auto count = static_cast<std::uint32_t>(1 + long_name_slots(units.size()));
        const auto first = room_instead_of(old, count);
        if (not first) return std::nullopt;
        mark_free(old);
        raw.case_bits = le8(0);
        extend_to({.first = *first, .count = count});
        write_set({.first = *first, .count = count}, units, raw);
        entry.first_slot = *first;
        entry.slot = *first + count - 1;
    }
    names_.erase(slot);
    entry.name = name;
    const std::uint32_t at = entry.slot;
    ENSURE(at < end_ and used_[at], "an entry lies before the end, in slots of its own");
    names_.add(std::move(entry));
    return at;
}

std::uint64_t directory::offset_of(std::uint32_t sector) const noexcept {
    const std::uint64_t offset = std::uint64_t{sector} * shape_.sector_bytes;
    ENSURE(offset < image_.size(), "a sector of the directory");
    if (is_fixed_) return offsets_.front() + offset;
    const auto cluster = static_cast<std::size_t>(offset / shape_.cluster_bytes);
    ENSURE(cluster < offsets_.size());
    return offsets_[cluster] + offset % shape_.cluster_bytes;
}

result<void> directory::write(const std::function<result<void>()>& order) noexcept {
    const std::uint32_t sectors = slot_count() / slots_per_sector();
    ENSURE(static_cast<std::size_t>(std::ranges::count(dirty_, true)) == dirty_count_,
           "each dirty sector is counted once");
    for (std::uint32_t each = 0; each < dirty_.size();) {
        if (not dirty_[each]) {
            ++each;
            continue;
        }
        if (after_another_[each])
            if (const auto done = order(); not done) return done;
        // As long as the sectors are contiguous on the device.
        const std::uint32_t first = each++;
        while (each < sectors and dirty_[each] and not after_another_[each] and
               offset_of(each) == offset_of(first) + std::uint64_t{each - first} * shape_.sector_bytes)
            ++each;
        const std::size_t start = std::size_t{first} * shape_.sector_bytes;
        const std::size_t length =
            std::min(std::size_t{each - first} * shape_.sector_bytes, image_.size() - start);
        const auto done = device_.write_at(offset_of(first), std::span(image_).subspan(start, length));
        if (not done) return done;
    }
    dirty_.assign(dirty_.size(), false);
    after_another_.assign(after_another_.size(), false);
    dirty_count_ = 0;
    return {};
}

}  // namespace sluice::fat

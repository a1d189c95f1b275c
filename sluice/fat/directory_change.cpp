#include <algorithm>
#include <cstring>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/fat/directory.hpp"

// Changing a directory.

namespace sluice::fat {
namespace {

std::string key_of(const short_name_bytes& name) {
    return {name.begin(), name.end()};
}

}  // namespace

void directory::occupy(slots which) noexcept {
    for (std::uint32_t slot = which.first; slot < which.first + which.count; ++slot) {
        ENSURE(not used_[slot]);
        used_[slot] = true;
        --free_in_[slot / slots_per_sector()];
    }
}

void directory::vacate(slots which) noexcept {
    for (std::uint32_t slot = which.first; slot < which.first + which.count; ++slot) {
        ENSURE(used_[slot]);
        used_[slot] = false;
        ++free_in_[slot / slots_per_sector()];
    }
    for (std::uint32_t& each : room_from_)
        each = std::min(each, which.first / slots_per_sector());
}

// The first row of `where.count` unused slots that begins at `from` or behind, within [where.first, ...).
std::optional<std::uint32_t> directory::room_in(std::uint32_t from, slots where) const noexcept {
    std::uint32_t row = 0;
    for (std::uint32_t slot = from; slot < where.first; ++slot) {
        row = used_[slot] ? 0 : row + 1;
        if (row == where.count) return slot + 1 - where.count;
    }
    return std::nullopt;
}

std::optional<std::uint32_t> directory::room_for(std::uint32_t count) noexcept {
    const std::uint32_t each = slots_per_sector();
    std::uint32_t& from = room_from_[count];
    // What does not fit into one sector lies wherever there are so many in a row.
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
    ENSURE(not is_fixed_);
    offsets_.push_back(offset);
    image_.resize(image_.size() + shape_.cluster_bytes);
    used_.resize(slot_count());
    free_in_.resize(slot_count() / slots_per_sector() + 1, static_cast<std::uint16_t>(slots_per_sector()));
    free_in_.back() = static_cast<std::uint16_t>(slot_count() % slots_per_sector());
    const std::size_t sectors = slot_count() / slots_per_sector();
    for (std::size_t i = sectors - shape_.sectors_per_cluster; i < sectors; ++i)
        free_in_[i] = static_cast<std::uint16_t>(slots_per_sector());
}

// Behind the end anything may stand: before the end moves there, it must not.
result<void> directory::wipe_behind_end() noexcept {
    if (is_wiped_) return {};
    const std::uint32_t per_sector = slots_per_sector();
    std::fill(image_.begin() + static_cast<std::ptrdiff_t>(std::size_t{end_} * slot_bytes), image_.end(),
              std::byte{});
    for (std::uint32_t sector = (end_ + per_sector - 1) / per_sector; sector < slot_count() / per_sector;
         ++sector) {
        const auto part =
            std::span(image_).subspan(std::size_t{sector} * shape_.sector_bytes, shape_.sector_bytes);
        if (const auto done = device_.write_at(offset_of(sector), part); not done) return done;
    }
    if (end_ % per_sector != 0) dirty_.insert(end_ / per_sector);
    is_wiped_ = true;
    return {};
}

short_name directory::unused_short_name(std::string_view name) {
    if (const auto exact = exactly(name, page_); exact and not shorts_.contains(key_of(exact->bytes)))
        return *exact;
    const short_name_basis basis = basis_of(name, page_);
    // What the numbers are counted by: names that differ only in what a number would cut off share them.
    const std::string key = key_of(numbered(basis, 1));
    std::uint32_t& number = next_number_.try_emplace(key, 1).first->second;
    for (;;) {
        const short_name made{.bytes = numbered(basis, number), .case_bits = 0};
        if (not shorts_.contains(key_of(made.bytes))) return made;
        // Round and round: a directory has fewer names than there are numbers.
        number = number == short_name_number_max ? 1 : number + 1;
    }
}

// The pieces of a long name, if `name` is not empty, and the entry.
void directory::write_set(slots where, std::u16string_view name, const directory_entry& raw) noexcept {
    const std::uint32_t pieces = where.count - 1;
    for (std::uint32_t i = 0; i < pieces; ++i)
        put(where.first + i, long_name_slot(name, pieces - i, checksum_of(raw.name)));
    put(where.first + pieces, raw);
    const std::uint32_t first = where.first / slots_per_sector();
    const std::uint32_t last = (where.first + pieces) / slots_per_sector();
    for (std::uint32_t sector = first + 1; sector <= last; ++sector)
        after_another_.insert(sector);
}

result<const name_entry*> directory::add(std::string_view name, const directory_entry& entry) {
    if (is_damaged_) return failure({EIO, "add to a damaged directory"});
    if (const auto wiped = wipe_behind_end(); not wiped) return failure(wiped.error());
    const short_name own = unused_short_name(name);
    const bool is_long = text_of(own.bytes, own.case_bits, page_) != name;
    const std::u16string units = is_long ? to_utf16(name) : std::u16string();
    ENSURE(units.size() <= long_name_units_max);
    const auto count = static_cast<std::uint32_t>(1 + long_name_slots(units.size()));
    const auto first = room_for(count);
    if (not first) return failure({ENOSPC, "add to directory"});
    directory_entry raw = entry;
    raw.name = own.bytes;
    raw.case_bits = le8(own.case_bits);
    // A slot that was never used would be taken for the end.
    for (; end_ < *first; ++end_) {
        directory_entry skipped;
        skipped.name[0] = free_mark;
        put(end_, skipped);
    }
    end_ = std::max(end_, *first + count);
    occupy({.first = *first, .count = count});
    write_set({.first = *first, .count = count}, units, raw);
    const std::uint32_t slot = *first + count - 1;
    index({.first_slot = *first, .slot = slot, .name = std::string(name)}, raw);
    return at(slot);
}

bool directory::has_room_for(std::string_view name) noexcept {
    return room_for(static_cast<std::uint32_t>(1 + long_name_slots(to_utf16(name).size()))).has_value();
}

void directory::remove(std::uint32_t slot) {
    const name_entry gone = *at(slot);
    removal one{.which = {.first = gone.first_slot, .count = slot - gone.first_slot + 1},
                .short_key = key_of(read(slot).name),
                .folded = fold(gone.name),
                .alias = gone.alias};
    unindex(gone);
    leaving_.insert(one.folded);
    if (not one.alias.empty()) leaving_.insert(one.alias);
    removals_.push_back(std::move(one));
}

void directory::apply(const removal& one) noexcept {
    for (std::uint32_t i = 0; i < one.which.count; ++i) {
        directory_entry raw = read(one.which.first + i);
        raw.name[0] = free_mark;
        put(one.which.first + i, raw);
    }
    vacate(one.which);
    const auto drop = [](std::unordered_multiset<std::string>& from, const std::string& key) {
        if (const auto found = from.find(key); found != from.end()) from.erase(found);
    };
    drop(shorts_, one.short_key);
    drop(leaving_, one.folded);
    if (not one.alias.empty()) drop(leaving_, one.alias);
}

void directory::apply_removals() noexcept {
    for (const removal& each : removals_)
        apply(each);
    removals_.clear();
}

void directory::join(std::uint32_t slot, const name_entry& other) noexcept {
    const std::uint32_t sector = slot / slots_per_sector();
    for (auto each = removals_.begin(); each != removals_.end(); ++each) {
        if (each->which.first + each->which.count - 1 != slot) continue;
        const bool is_near = each->which.first / slots_per_sector() == sector and
                             other.first_slot / slots_per_sector() == sector and
                             other.slot / slots_per_sector() == sector;
        if (not is_near) return;
        apply(*each);
        removals_.erase(each);
        return;
    }
}

bool directory::respell(std::uint32_t slot, std::string_view name) {
    name_entry entry = *at(slot);
    directory_entry raw = read(slot);
    const std::u16string units = to_utf16(name);
    const std::uint32_t pieces = slot - entry.first_slot;
    if (const auto exact = exactly(name, page_); exact and exact->bytes == raw.name and pieces == 0) {
        raw.case_bits = le8(exact->case_bits);
    } else {
        const auto wanted = static_cast<std::uint32_t>(long_name_slots(units.size()));
        const std::uint32_t first = slot - std::min(slot, wanted);
        // Unused slots before the entry, in its sector, do as well.
        const bool has_room =
            pieces == wanted or
            (pieces == 0 and slot >= wanted and first / slots_per_sector() == slot / slots_per_sector() and
             std::none_of(used_.begin() + first, used_.begin() + slot, [](bool is_used) { return is_used; }));
        if (not has_room) return false;
        if (pieces == 0) occupy({.first = first, .count = wanted});
        raw.case_bits = le8(0);
        entry.first_slot = first;
        write_set({.first = first, .count = wanted + 1}, units, raw);
    }
    put(slot, raw);
    unindex(*at(slot));
    shorts_.erase(shorts_.find(key_of(raw.name)));
    entry.name = name;
    index(std::move(entry), raw);
    return true;
}

std::uint64_t directory::offset_of(std::uint32_t sector) const noexcept {
    const std::uint64_t offset = std::uint64_t{sector} * shape_.sector_bytes;
    if (is_fixed_) return offsets_.front() + offset;
    const auto cluster = static_cast<std::size_t>(offset / shape_.cluster_bytes);
    ENSURE(cluster < offsets_.size());
    return offsets_[cluster] + offset % shape_.cluster_bytes;
}

result<void> directory::write(bool is_ordered) noexcept {
    for (auto each = dirty_.begin(); each != dirty_.end();) {
        if (is_ordered and after_another_.contains(*each))
            if (const auto done = device_.barrier(); not done) return done;
        // As far as it goes on, on the device, too.
        const std::uint32_t first = *each;
        std::uint32_t count = 1;
        const auto goes_on = [&] {
            return each != dirty_.end() and * each == first + count and not after_another_.contains(*each) and
                   offset_of(*each) == offset_of(first) + std::uint64_t{count} * shape_.sector_bytes;
        };
        for (++each; goes_on(); ++each)
            ++count;
        const std::size_t start = std::size_t{first} * shape_.sector_bytes;
        const std::size_t length = std::min(std::size_t{count} * shape_.sector_bytes, image_.size() - start);
        const auto done = device_.write_at(offset_of(first), std::span(image_).subspan(start, length));
        if (not done) return done;
    }
    dirty_.clear();
    after_another_.clear();
    return {};
}

}  // namespace sluice::fat

#include "sluice/fat/engine/allocation_table.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

allocation_table::allocation_table(device& on, const geometry& shape, std::size_t windows_max)
    : device_(on), shape_(shape), windows_max_(std::max<std::size_t>(windows_max, 2)) {
    // If the table claims to be larger than any table can be, only the part with the volume's
    // clusters is used.
    ENSURE(window_bytes % shape.sector_bytes == 0 and window_bytes / shape.sector_bytes <= sectors_max,
           "a window has whole sectors, each with its bit");
    ENSURE(shape.active_fat < shape.fat_count, "the active FAT is one of the copies");
    const std::uint64_t used = std::min(shape.fat_bytes, shape.fat_used_bytes());
    windows_.resize(static_cast<std::size_t>((used + window_bytes - 1) / window_bytes));
}

allocation_table::window* allocation_table::loaded(std::uint32_t cluster) noexcept {
    const std::uint64_t index = entry_extent(shape_.type, cluster).offset / window_bytes;
    ENSURE(index < windows_.size(), "a cluster of the volume");
    window* const found = windows_[static_cast<std::size_t>(index)].get();
    if (found != nullptr) found->used_at.store(++ticks_, std::memory_order_relaxed);
    return found;
}

// Requires mutex_, exclusive.
void allocation_table::make_room() noexcept {
    if (loaded_count_ < windows_max_) return;
    std::unique_ptr<window>* oldest = nullptr;
    for (auto& each : windows_) {
        if (each == nullptr or each->dirty.any() or each->is_being_written) continue;
        if (oldest == nullptr or each->used_at.load(std::memory_order_relaxed) <
                                     (*oldest)->used_at.load(std::memory_order_relaxed))
            oldest = &each;
    }
    if (oldest == nullptr) return;
    oldest->reset();
    --loaded_count_;
}

// Requires mutex_, exclusive.
result<allocation_table::window*> allocation_table::load(std::uint32_t cluster) noexcept {
    if (window* const found = loaded(cluster)) return found;
    make_room();
    auto made = std::make_unique<window>();
    const auto index = static_cast<std::size_t>(entry_extent(shape_.type, cluster).offset / window_bytes);
    made->first_byte = std::uint64_t{index} * window_bytes;
    ENSURE(made->first_byte < shape_.fat_bytes, "a window begins inside the table");
    made->bytes.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(window_bytes, shape_.fat_bytes - made->first_byte)));
    const std::uint64_t offset = shape_.fat_copy_offset(shape_.active_fat) + made->first_byte;
    if (const auto read = device_.read_at(offset, std::span(made->bytes)); not read)
        return failure(read.error());
    counters_.loads.fetch_add(1, std::memory_order_relaxed);
    ++loaded_count_;
    windows_[index] = std::move(made);
    ENSURE(loaded_count_ <= windows_.size(), "each window is in memory once");
    return loaded(cluster);
}

std::uint32_t allocation_table::value_in(const window& in, std::uint32_t cluster) const noexcept {
    const auto value =
        read_entry(shape_.type, bytes_view(in.bytes.data(), in.bytes.size()), cluster, in.first_byte);
    ENSURE(value.has_value(), "every entry is inside its window");
    return *value;
}

result<std::uint32_t> allocation_table::value_of(std::uint32_t cluster, may_wait waits) noexcept {
    {
        std::shared_lock guard(mutex_, std::defer_lock);
        if (not lock_if(guard, waits)) return failure(would_wait);
        if (const window* const found = loaded(cluster)) return value_in(*found, cluster);
    }
    if (waits == may_wait::no) return failure(would_wait);
    const std::unique_lock guard(mutex_);
    const auto found = load(cluster);
    if (not found) return failure(found.error());
    return value_in(**found, cluster);
}

result<table_entry> allocation_table::next(std::uint32_t cluster, may_wait waits) noexcept {
    ENSURE(shape_.is_cluster(cluster));
    const auto value = value_of(cluster, waits);
    if (not value) return failure(value.error());
    counters_.steps.fetch_add(1, std::memory_order_relaxed);
    return shape_.classify(*value);
}

result<bool> allocation_table::is_free(std::uint32_t cluster) noexcept {
    ENSURE(shape_.is_cluster(cluster));
    const auto value = value_of(cluster, may_wait::yes);
    if (not value) return failure(value.error());
    return shape_.classify(*value).kind == entry_kind::free;
}

result<allocation_table::segment> allocation_table::follow(std::uint32_t cluster, std::uint32_t most,
                                                           may_wait waits) noexcept {
    ENSURE(shape_.is_cluster(cluster) and most != 0);
    segment found{.length = 0, .after = {}};
    std::uint32_t next = cluster;  // whose entry is read next
    const auto goes_on = [&] {
        return found.length == 0 or
               (found.length < most and found.after.kind == entry_kind::next and found.after.next == next);
    };
    while (goes_on()) {
        {
            std::shared_lock guard(mutex_, std::defer_lock);
            if (not lock_if(guard, waits)) return failure(would_wait);
            if (const window* const in = loaded(next)) {
                for (const std::uint32_t end = end_of(*in); next != end and goes_on(); ++next, ++found.length)
                    found.after = shape_.classify(value_in(*in, next));
                continue;
            }
        }
        if (waits == may_wait::no) break;  // with the part found so far, if any
        const std::unique_lock guard(mutex_);
        if (const auto there = load(next); not there) return failure(there.error());
    }
    if (found.length == 0) return failure(would_wait);
    counters_.steps.fetch_add(found.length, std::memory_order_relaxed);
    return found;
}

// Returns the first cluster whose entry is after the window.
std::uint32_t allocation_table::end_of(const window& in) const noexcept {
    return static_cast<std::uint32_t>(entries_in(shape_.type, in.first_byte + in.bytes.size()));
}

// Requires mutex_, exclusive. Sets the entry of each cluster to value_of(cluster).
template <class ValueOf>
result<void> allocation_table::put(cluster_extent what, ValueOf value_of) noexcept {
    ENSURE(what.length != 0 and what.first <= shape_.last_cluster() and
               what.length <= shape_.last_cluster() + 1 - what.first,
           "the table has these entries");
    const std::uint32_t end = what.first + what.length;
    for (std::uint32_t cluster = what.first; cluster != end;) {
        const auto in = load(cluster);
        if (not in) return failure(in.error());
        window& into = **in;
        const table_piece piece{.bytes = mutable_bytes(into.bytes.data(), into.bytes.size()),
                                .first_byte = into.first_byte};
        const auto sector_of = [&](std::uint64_t byte) {
            return static_cast<std::size_t>((byte - into.first_byte) / shape_.sector_bytes);
        };
        ENSURE(end_of(into) > cluster, "a window has the entry that it was loaded for");
        const std::size_t first_sector = sector_of(entry_extent(shape_.type, cluster).offset);
        for (const std::uint32_t stop = std::min(end, end_of(into)); cluster != stop; ++cluster) {
            const bool is_inside = write_entry(shape_.type, piece, cluster, value_of(cluster));
            ENSURE(is_inside, "every entry is inside its window");
        }
        const byte_extent last = entry_extent(shape_.type, cluster - 1);
        for (std::size_t i = first_sector; i <= sector_of(last.offset + last.length - 1); ++i) {
            if (not into.dirty[i]) ++dirty_sectors_;
            into.dirty.set(i);
        }
    }
    return {};
}

result<allocation_table::moment> allocation_table::chain_up(cluster_extent what,
                                                            std::uint32_t last) noexcept {
    ENSURE(has_clusters(shape_, what));
    ENSURE(last == end_entry(shape_.type) or shape_.is_cluster(last), "a chain ends, or leads to a cluster");
    const std::unique_lock guard(mutex_);
    const std::uint32_t end = what.first + what.length;
    const auto done =
        put(what, [&](std::uint32_t cluster) { return cluster + 1 == end ? last : cluster + 1; });
    if (not done) return failure(done.error());
    return flushes_;
}

result<void> allocation_table::set(cluster_extent what, std::uint32_t value) noexcept {
    ENSURE(has_clusters(shape_, what));
    const std::unique_lock guard(mutex_);
    return put(what, [&](std::uint32_t) { return value; });
}

result<std::vector<cluster_extent>> allocation_table::free_up(cluster_extent what) noexcept {
    ENSURE(has_clusters(shape_, what));
    const std::unique_lock guard(mutex_);
    std::vector<cluster_extent> freed;
    const std::uint32_t end = what.first + what.length;
    for (std::uint32_t cluster = what.first; cluster != end;) {
        const auto in = load(cluster);
        if (not in) return failure(in.error());
        for (const std::uint32_t stop = std::min(end, end_of(**in)); cluster != stop; ++cluster) {
            if (value_in(**in, cluster) == free_entry) continue;
            if (freed.empty() or freed.back().first + freed.back().length != cluster)
                freed.push_back({.first = cluster, .length = 0});
            ++freed.back().length;
        }
    }
    if (const auto done = put(what, [](std::uint32_t) { return free_entry; }); not done)
        return failure(done.error());
    return freed;
}

result<void> allocation_table::link(std::uint32_t cluster, std::uint32_t next,
                                    std::optional<moment> made) noexcept {
    ENSURE(shape_.is_cluster(cluster) and shape_.is_cluster(next), "a link joins two clusters");
    const std::unique_lock guard(mutex_);
    ENSURE(not made or *made <= flushes_, "a cluster was chained up before");
    const auto in = load(cluster);
    if (not in) return failure(in.error());
    const std::uint32_t before = value_in(**in, cluster);
    if (before == free_entry) return failure({EIO, "link to a free cluster"});
    // Before the first change, the entry has the value that is on the device.
    if (made != flushes_) links_.try_emplace(cluster, before);
    return put({.first = cluster, .length = 1}, [&](std::uint32_t) { return next; });
}

bool allocation_table::is_dirty() const noexcept {
    return dirty_sectors_ != 0;
}

std::vector<allocation_table::chunk> allocation_table::take_dirty(bool& has_links) {
    const std::unique_lock guard(mutex_);
    std::vector<chunk> chunks;
    ENSURE(links_in_flush_.empty(), "one flush at a time");
    std::uint64_t sectors_taken = 0;
    for (std::size_t index = 0; index < windows_.size(); ++index) {
        window* const each = windows_[index].get();
        if (each == nullptr or each->dirty.none()) continue;
        const std::size_t sectors = each->bytes.size() / shape_.sector_bytes;
        for (std::size_t sector = 0; sector < sectors; ++sector) {
            if (not each->dirty[sector]) continue;
            ++sectors_taken;
            const bool goes_on =
                not chunks.empty() and chunks.back().window == index and
                chunks.back().first_sector + chunks.back().bytes.size() / shape_.sector_bytes == sector;
            if (not goes_on)
                chunks.push_back({.window = index,
                                  .first_sector = sector,
                                  .first_byte = each->first_byte + sector * shape_.sector_bytes,
                                  .bytes = {}});
            const auto from = each->bytes.begin() + static_cast<std::ptrdiff_t>(sector * shape_.sector_bytes);
            chunks.back().bytes.insert(chunks.back().bytes.end(), from, from + shape_.sector_bytes);
        }
        ENSURE(not each->is_being_written, "one flush at a time");
        each->is_being_written = true;
        each->dirty.reset();
    }
    const std::uint64_t taken = dirty_sectors_.exchange(0);
    ENSURE(taken == sectors_taken, "each dirty sector is counted once");
    ++flushes_;
    links_in_flush_ = std::exchange(links_, {});
    ENSURE(links_in_flush_.empty() or taken != 0, "the sector of a link is dirty");
    // A single sector reaches the disk atomically.
    has_links = not links_in_flush_.empty() and taken > 1;
    return chunks;
}

result<void> allocation_table::write_copies(std::uint64_t first_byte,
                                            std::span<const std::byte> bytes) noexcept {
    ENSURE(first_byte <= shape_.fat_bytes and bytes.size() <= shape_.fat_bytes - first_byte,
           "a copy of the table ends before the next");
    const auto write = [&](std::uint32_t copy) {
        return device_.write_at(shape_.fat_copy_offset(copy) + first_byte, bytes);
    };
    if (const auto done = write(shape_.active_fat); not done or not shape_.is_mirrored) return done;
    for (std::uint32_t copy = 0; copy < shape_.fat_count; ++copy)
        if (copy != shape_.active_fat)
            if (const auto done = write(copy); not done) return done;
    return {};
}

// Calls visit(cluster, before, where) for the links that have bytes in a chunk, in ascending order.
template <class Visit>
result<void> allocation_table::for_each_link(const chunk& in, Visit visit) noexcept {
    // FAT12's entries may cross the boundary of a chunk.
    const auto end = static_cast<std::uint32_t>(entries_in(shape_.type, in.first_byte));
    for (auto each = links_in_flush_.lower_bound(end - std::min(end, 1U)); each != links_in_flush_.end();
         ++each) {
        const byte_extent where = entry_extent(shape_.type, each->first);
        if (where.offset >= in.first_byte + in.bytes.size()) break;
        if (where.offset + where.length <= in.first_byte) continue;
        if (const auto done = visit(each->first, each->second, where); not done) return done;
    }
    return {};
}

// Writes the chunks. In a masked pass, links have their old values.
result<void> allocation_table::write_pass(const std::vector<chunk>& chunks, bool is_masked) noexcept {
    for (const chunk& each : chunks) {
        std::vector<std::byte> masked;
        if (is_masked) {
            masked = each.bytes;
            const table_piece piece{.bytes = mutable_bytes(masked.data(), masked.size()),
                                    .first_byte = each.first_byte};
            // An entry that crosses the boundary is not changed: either the sectors of both its
            // bytes are in one chunk, or the neighbour was not changed.
            (void)for_each_link(each, [&](std::uint32_t cluster, std::uint32_t before, byte_extent) {
                (void)write_entry(shape_.type, piece, cluster, before);
                return result<void>();
            });
        }
        const auto done = write_copies(each.first_byte, is_masked ? masked : each.bytes);
        if (not done) return done;
    }
    return {};
}

result<void> allocation_table::write_links(const std::vector<chunk>& chunks) noexcept {
    std::size_t visited = 0;
    for (const chunk& each : chunks) {
        const std::uint64_t sector = shape_.sector_bytes;
        ENSURE(each.bytes.size() % sector == 0 and each.first_byte % sector == 0,
               "whole sectors are written");
        std::size_t written_to = 0;
        const auto done =
            for_each_link(each, [&](std::uint32_t, std::uint32_t, byte_extent where) -> result<void> {
                ++visited;
                // The sectors from the first to the last byte of the entry, each once.
                const std::uint64_t within =
                    where.offset < each.first_byte ? 0 : where.offset - each.first_byte;
                const std::uint64_t last = where.offset + where.length - each.first_byte - 1;
                const auto from = std::max(written_to, static_cast<std::size_t>(within / sector * sector));
                const auto to =
                    std::min(each.bytes.size(), static_cast<std::size_t>((last / sector + 1) * sector));
                if (from >= to) return {};
                written_to = to;
                return write_copies(each.first_byte + from, std::span(each.bytes).subspan(from, to - from));
            });
        if (not done) return done;
    }
    // Greater if an entry of FAT12 is in two chunks.
    ENSURE(visited >= links_in_flush_.size(), "each link is in a sector that is written");
    return {};
}

void allocation_table::finish(const std::vector<chunk>& chunks, bool is_written) noexcept {
    const std::unique_lock guard(mutex_);
    for (const chunk& each : chunks) {
        window& of = *windows_[each.window];
        ENSURE(of.first_byte + each.first_sector * shape_.sector_bytes == each.first_byte,
               "a window that is being written is not replaced");
        of.is_being_written = false;
        if (is_written) continue;
        for (std::size_t i = 0; i < each.bytes.size() / shape_.sector_bytes; ++i) {
            if (not of.dirty[each.first_sector + i]) ++dirty_sectors_;
            of.dirty.set(each.first_sector + i);
        }
    }
    if (not is_written) links_.insert(links_in_flush_.begin(), links_in_flush_.end());
    links_in_flush_.clear();
}

result<void> allocation_table::flush(bool is_ordered) noexcept {
    bool has_links = false;
    const std::vector<chunk> chunks = take_dirty(has_links);
    result<void> done = write_pass(chunks, has_links);
    if (done and has_links) {
        if (is_ordered) done = device_.barrier();
        if (done) done = write_links(chunks);
    }
    finish(chunks, done.has_value());
    return done;
}

// Scans the entries of a window from a cluster on.
void allocation_table::scan_window(const window& in, std::uint32_t from, free_map& free,
                                   std::vector<bool>& is_followed) {
    ENSURE(shape_.is_cluster(from) and is_followed.size() == shape_.cluster_count);
    const std::uint32_t end = std::min(end_of(in), shape_.last_cluster() + 1);
    cluster_extent row{.first = from, .length = 0};  // a run of free clusters
    for (std::uint32_t cluster = from; cluster != end; ++cluster) {
        const table_entry entry = shape_.classify(value_in(in, cluster));
        if (entry.kind == entry_kind::next) is_followed[entry.next - geometry::first_cluster] = true;
        if (entry.kind == entry_kind::free) {
            ++row.length;
            continue;
        }
        free.give(row);
        row = {.first = cluster + 1, .length = 0};
    }
    free.give(row);
}

result<free_map> allocation_table::scan() noexcept {
    free_map found(geometry::first_cluster, shape_.cluster_count);
    std::vector<bool> is_followed(shape_.cluster_count);
    for (std::uint32_t cluster = geometry::first_cluster; shape_.is_cluster(cluster);) {
        const std::unique_lock guard(mutex_);  // held for one window at a time
        const auto in = load(cluster);
        if (not in) return failure(in.error());
        scan_window(**in, cluster, found, is_followed);
        const std::uint32_t end = end_of(**in);
        ENSURE(end > cluster, "a window has the entry that it was loaded for");
        cluster = end;
    }
    for (std::uint32_t i = 0; i < shape_.cluster_count; ++i)
        if (is_followed[i] and found.is_free(i + geometry::first_cluster))
            found.take({.first = i + geometry::first_cluster, .length = 1});
    return found;
}

result<std::uint32_t> allocation_table::reserved_entry(std::uint32_t index) noexcept {
    ENSURE(index < geometry::first_cluster);
    if (windows_.empty()) return failure({EIO, "read FAT"});
    return value_of(index, may_wait::yes);
}

result<void> allocation_table::set_reserved_entry(std::uint32_t index, std::uint32_t value) noexcept {
    ENSURE(index < geometry::first_cluster);
    if (windows_.empty()) return failure({EIO, "write FAT"});
    const std::unique_lock guard(mutex_);
    return put({.first = index, .length = 1}, [&](std::uint32_t) { return value; });
}

}  // namespace sluice::fat

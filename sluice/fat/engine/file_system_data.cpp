#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/engine/file_system.hpp"

// The data of files.

namespace sluice::fat {
namespace {

constexpr std::uint64_t file_bytes_max = UINT32_MAX;
// A growing file reserves up to twice its size, so that each of many files that grow concurrently
// has few runs: at most 16 for each GiB.
constexpr std::uint64_t ahead_min = 1U << 20;
constexpr std::uint64_t ahead_max = 256U << 20;

sync::byte_range range_of(byte_extent where) noexcept {
    ENSURE(where.length != 0);
    return sync::byte_range::between({.first = where.offset, .last = where.offset + (where.length - 1)});
}

// Returns the clusters that contain a range of the device, which is not empty.
cluster_extent clusters_at(const geometry& shape, byte_extent where) noexcept {
    ENSURE(where.length != 0 and where.offset >= shape.data_offset, "clusters lie in the data area");
    const auto first = static_cast<std::uint32_t>((where.offset - shape.data_offset) / shape.cluster_bytes);
    const auto last = static_cast<std::uint32_t>((where.offset + where.length - 1 - shape.data_offset) /
                                                 shape.cluster_bytes);
    return {.first = geometry::first_cluster + first, .length = last - first + 1};
}

}  // namespace

// Returns the allocator. The first call creates it, which requires a scan of the whole table.
result<allocator*> file_system::clusters() noexcept {
    if (allocator* const made = clusters_.load(std::memory_order_acquire)) return made;
    const std::scoped_lock guard(allocator_made_);
    if (own_clusters_ != nullptr) return own_clusters_.get();
    auto map = table_.scan();
    if (not map) return failure(map.error());
    std::uint32_t start = geometry::first_cluster;
    info_sector raw;
    if (shape_.info_offset and
        device_.read_at(*shape_.info_offset, std::as_writable_bytes(std::span(&raw, 1))))
        if (const auto info = decode_info(raw, shape_); info and info->next_free) start = *info->next_free;
    own_clusters_ = std::make_unique<allocator>(std::move(*map), start);
    clusters_.store(own_clusters_.get(), std::memory_order_release);  // pairs with the load above
    return own_clusters_.get();
}

void file_system::mark_changed(inode& of, bool is_content) noexcept {
    ENSURE(not options_.is_read_only, "a read-only volume does not change");
    const auto now = std::chrono::time_point_cast<std::chrono::system_clock::duration>(clock_.utc_now());
    of.changed = now;
    if (is_content) of.written = now;
    if (of.is_queued) return;
    of.is_queued = true;
    const std::scoped_lock guard(queue_);
    dirty_inodes_.push_back(of.shared_from_this());
}

result<cluster_run> file_system::run_at(inode& of, std::uint32_t file_cluster, run_list::hint& hint,
                                        may_wait waits) noexcept {
    {
        // A thread that follows the chain further holds the mutex while it reads the disk.
        std::shared_lock guard(of.mutex, std::defer_lock);
        if (not lock_if(guard, waits)) return failure(would_wait);
        if (const auto run = of.chain.known(file_cluster, hint)) return *run;
    }
    std::unique_lock guard(of.mutex, std::defer_lock);
    if (not lock_if(guard, waits)) return failure(would_wait);
    return of.chain.locate(file_cluster, hint, waits);
}

// Calls transfer(done, device_offset, bytes) for each contiguous piece, until one fails.
template <class Transfer>
result<void> file_system::for_each_piece(inode& of, run_list::hint& hint, byte_extent where,
                                         Transfer transfer, may_wait waits) noexcept {
    for (std::uint64_t done = 0; done < where.length;) {
        const std::uint64_t at = where.offset + done;
        const auto run = run_at(of, static_cast<std::uint32_t>(at / shape_.cluster_bytes), hint, waits);
        if (not run) return failure(run.error());
        const std::uint64_t within = at % shape_.cluster_bytes;
        std::uint64_t room = std::uint64_t{run->length} * shape_.cluster_bytes - within;
        const std::uint64_t bytes = std::min(room, where.length - done);
        ENSURE(has_clusters(shape_, {.first = run->disk_cluster, .length = run->length}),
               "a run is inside the volume");
        const auto moved = transfer(done, shape_.cluster_offset(run->disk_cluster) + within, bytes);
        if (not moved) return moved;
        done += bytes;
    }
    return {};
}

// Locks a range for reading: the bytes are neither changed nor truncated.
sync::range_guard file_system::lock_to_read(inode& of, byte_extent where, may_wait waits) noexcept {
    return of.ranges.try_lock({.where = range_of(where), .mode = sync::lock_mode::shared}, limit_of(waits));
}

result<std::size_t> file_system::read(inode& of, run_list::hint& hint, std::span<std::byte> into,
                                      std::uint64_t offset, may_wait waits) noexcept {
    if (of.is_directory) return failure({EISDIR, "read"});
    if (into.empty() or offset > file_bytes_max) return 0U;
    const auto held = lock_to_read(of, {.offset = offset, .length = into.size()}, waits);
    if (not held) return failure(would_wait);
    const std::uint64_t size = of.size();
    const std::uint64_t valid = of.valid();
    if (offset >= size) return 0U;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size - offset));
    const auto there =
        static_cast<std::size_t>(std::min<std::uint64_t>(count, valid > offset ? valid - offset : 0));
    const auto done = for_each_piece(
        of, hint, {.offset = offset, .length = there},
        [&](std::uint64_t at, std::uint64_t place, std::uint64_t bytes) -> result<void> {
            const auto part = into.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes));
            if (waits == may_wait::yes) return device_.read_at(place, part);
            const auto got = device_.try_read_at(place, part);
            if (not got) return failure(got.error());
            return *got ? result<void>() : failure(would_wait);
        },
        waits);
    if (not done) return failure(done.error());
    ENSURE(there <= count and offset + count <= of.size(), "the range lock keeps the size");
    std::ranges::fill(into.subspan(there, count - there), std::byte{});
    return count;
}

// Locks a range for writing. Within the valid length it locks only the range; past it, it locks
// everything up to the end, so that no other thread changes the lengths.
sync::range_guard file_system::lock_to_write(inode& of, byte_extent where, bool& lengthens,
                                             may_wait waits) noexcept {
    for (;;) {
        const std::uint64_t valid = of.valid();
        lengthens = where.offset + where.length > valid;
        const auto wanted =
            lengthens ? sync::byte_range::from(std::min(where.offset, valid)) : range_of(where);
        auto held = of.ranges.try_lock({.where = wanted}, limit_of(waits));
        if (not held) return held;
        const bool is_right = lengthens ? std::min(where.offset, of.valid()) >= held.where().first()
                                        : where.offset + where.length <= of.valid();
        if (is_right) return held;
    }
}

// Requires a lock on the ranges from the valid length on. Allocates clusters for `size_bytes`
// bytes; the caller marks the inode as changed.
result<void> file_system::try_make_clusters(inode& of, std::uint64_t size_bytes) noexcept {
    const auto from = clusters();
    if (not from) return failure(from.error());
    ENSURE(size_bytes != 0 and size_bytes <= file_bytes_max, "a FAT file has at most 2^32 - 1 bytes");
    const std::unique_lock guard(of.mutex);
    const auto wanted =
        static_cast<std::uint32_t>((size_bytes + shape_.cluster_bytes - 1) / shape_.cluster_bytes);
    const auto count = of.chain.count();
    if (not count) return failure(count.error());
    if (wanted <= *count) return {};
    // The truncated part must be gone from the disk before the chain continues elsewhere.
    if (of.cuts != 0) return failure({EAGAIN, "lengthen file"});
    if (not of.reserved) of.reserved.emplace(**from);
    allocation_request request{.goal = 0, .wanted = wanted - *count};
    if (*count != 0) {
        run_list::hint hint;
        const auto last = of.chain.locate(*count - 1, hint);
        if (not last) return failure(last.error());
        request.goal = last->disk_cluster + 1;
    }
    const std::uint64_t more =
        std::max(of.expected_bytes, size_bytes + std::clamp(size_bytes * 2, ahead_min, ahead_max));
    request.ahead = static_cast<std::uint32_t>(
        std::min(more - size_bytes, std::max(ahead_max, of.expected_bytes)) / shape_.cluster_bytes);
    std::vector<cluster_extent> taken;
    if (const auto done = (*from)->allocate(request, *of.reserved, taken); not done) return done;
    ENSURE(not taken.empty() and (request.goal == 0 or shape_.is_cluster(request.goal - 1)));
    if (const auto done = of.chain.append(taken); not done) {
        put_back(taken);
        return done;
    }
    ENSURE(of.chain.is_counted() and *of.chain.count() == wanted,
           "a file has got as many clusters as it wanted");
    return {};
}

// Frees clusters that were allocated for a file but did not become part of it. They are freed in
// the table first, because they may be chained up there, and a damaged file that leads to one of
// them could free it again. If that fails, they stay taken, as lost clusters.
void file_system::put_back(const std::vector<cluster_extent>& taken) noexcept {
    for (const cluster_extent& each : taken)
        if (table_.free_up(each)) clusters_.load()->undo({each});
}

result<void> file_system::make_clusters(inode& of, std::uint64_t size_bytes) noexcept {
    if (size_bytes > file_bytes_max) return failure({EFBIG, "lengthen file"});
    auto done = try_make_clusters(of, size_bytes);
    if (done or done.error().code() != EAGAIN) return done;
    if (const auto committed = commit(); not committed) return committed;
    done = try_make_clusters(of, size_bytes);
    // Other files may have taken the clusters that the commit freed.
    if (not done and done.error().code() == EAGAIN) return failure({ENOSPC, "lengthen file"});
    return done;
}

// Requires a lock on the bytes, which are within the chain.
result<void> file_system::zero_on_device(inode& of, byte_extent where) noexcept {
    ENSURE(where.offset >= of.valid() or where.offset + where.length <= of.valid(),
           "the range does not cross the valid length");
    run_list::hint hint;
    return for_each_piece(
        of, hint, where,
        [&](std::uint64_t, std::uint64_t place, std::uint64_t bytes) {
            return device_.punch_hole({.offset = place, .length = bytes});
        },
        may_wait::yes);
}

// Requires a lock on the bytes, which are within the chain.
result<void> file_system::write_pieces(inode& of, run_list::hint& hint, std::span<const std::byte> from,
                                       std::uint64_t offset, may_wait waits) noexcept {
    return for_each_piece(
        of, hint, {.offset = offset, .length = from.size()},
        [&](std::uint64_t at, std::uint64_t place, std::uint64_t bytes) {
            return device_.write_at(
                place, from.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes)));
        },
        waits);
}

result<void> file_system::write_longer(inode& of, run_list::hint& hint, std::span<const std::byte> from,
                                       std::uint64_t offset, may_wait waits) noexcept {
    const std::uint64_t end = offset + from.size();
    // Returns EAGAIN if there are enough clusters only after a commit.
    const auto made = waits == may_wait::yes ? make_clusters(of, end) : try_make_clusters(of, end);
    if (not made) return made;
    const std::uint64_t valid = of.valid();
    result<void> done;
    if (valid < offset) done = zero_on_device(of, {.offset = valid, .length = offset - valid});
    if (done) done = write_pieces(of, hint, from, offset, may_wait::yes);
    if (not done) {
        // Frees the clusters that were added for this write.
        (void)shrink(of, of.size());
        return done;
    }
    const std::unique_lock guard(of.mutex);
    of.set({.size = std::max(of.size(), end), .valid = std::max(valid, end)});
    mark_changed(of, true);
    return {};
}

// Requires a lock on the ranges from the valid length on. Returns whether a write at `offset` can
// extend the file without waiting: neither the end of the chain nor the free clusters have to be
// searched for, no zeros are needed before the write, and no commit has to carry out an earlier
// truncation.
bool file_system::lengthens_at_once(inode& of, std::uint64_t offset) noexcept {
    if (clusters_.load() == nullptr or of.valid() < offset) return false;
    const std::shared_lock guard(of.mutex, std::try_to_lock);
    return guard and of.chain.is_counted() and of.cuts == 0;
}

result<void> file_system::write(inode& of, run_list::hint& hint, std::span<const std::byte> from,
                                std::uint64_t offset, may_wait waits) noexcept {
    if (const auto may = may_change(); not may) return may;
    if (of.is_directory) return failure({EISDIR, "write"});
    if (from.empty()) return {};
    if (offset > file_bytes_max or from.size() > file_bytes_max - offset) return failure({EFBIG, "write"});
    const bool is_quick = waits == may_wait::no;
    if (is_quick and (not writes_at_once_ or options_.mode == write_mode::sync)) return failure(would_wait);
    {
        bool lengthens = false;
        const auto held = lock_to_write(of, {.offset = offset, .length = from.size()}, lengthens, waits);
        if (not held or (is_quick and lengthens and not lengthens_at_once(of, offset)))
            return failure(would_wait);
        if (lengthens) {
            if (const auto done = write_longer(of, hint, from, offset, waits); not done) return done;
        } else {
            if (const auto done = write_pieces(of, hint, from, offset, waits); not done) return done;
            const std::unique_lock guard(of.mutex);
            mark_changed(of, true);
        }
    }
    if (is_quick) return {};
    return options_.mode == write_mode::sync or is_commit_due() ? commit() : result<void>();
}

// Requires a lock on the ranges from the lesser size on.
result<void> file_system::shrink(inode& of, std::uint64_t size_bytes) noexcept {
    if (const auto from = clusters(); not from) return failure(from.error());
    const std::unique_lock guard(of.mutex);
    ENSURE(size_bytes <= of.size(), "shrinking does not increase the size");
    const auto wanted =
        static_cast<std::uint32_t>((size_bytes + shape_.cluster_bytes - 1) / shape_.cluster_bytes);
    if (of.reserved) of.reserved->release();
    const auto gone = of.chain.cut(wanted);
    // Clusters that cannot be followed to the end of the chain are not freed, because their owner
    // is unknown.
    of.set({.size = size_bytes, .valid = std::min(of.valid(), size_bytes)});
    mark_changed(of, true);
    if (not gone) return failure(gone.error());
    if (gone->rest.empty()) return {};
    // If a file shrinks to nothing and then grows in another chain, the two changes need no order.
    const std::scoped_lock queue(queue_);
    if (gone->last != 0) {
        ++of.cuts;
        cuts_.push_back({.of = of.shared_from_this(), .last = gone->last});
    }
    for (const cluster_extent& each : gone->rest)
        clusters_.load()->release(each);
    return {};
}

result<void> file_system::truncate(inode& of, std::uint64_t size_bytes) noexcept {
    if (const auto may = may_change(); not may) return may;
    if (of.is_directory) return failure({EISDIR, "truncate"});
    if (size_bytes > file_bytes_max) return failure({EFBIG, "truncate"});
    {
        // This locks everything after the lesser of the two lengths.
        bool ignored = false;
        const auto held =
            lock_to_write(of, {.offset = size_bytes, .length = file_bytes_max + 1}, ignored, may_wait::yes);
        const std::uint64_t before = of.size();
        if (size_bytes < before) {
            if (const auto done = shrink(of, size_bytes); not done) return done;
        } else if (size_bytes > before) {
            if (const auto made = make_clusters(of, size_bytes); not made) return made;
            const std::unique_lock guard(of.mutex);
            of.set({.size = size_bytes, .valid = of.valid()});
            mark_changed(of, true);
        }
    }
    return options_.mode == write_mode::sync or is_commit_due() ? commit() : result<void>();
}

result<void> file_system::preallocate(inode& of, std::uint64_t size_bytes) noexcept {
    if (const auto may = may_change(); not may) return may;
    if (of.is_directory) return failure({EISDIR, "reserve"});
    if (size_bytes > file_bytes_max) return failure({EFBIG, "reserve"});
    const auto from = clusters();
    if (not from) return failure(from.error());
    const std::unique_lock guard(of.mutex);
    const std::uint64_t held = of.size();
    if (size_bytes > held and (size_bytes - held) / shape_.cluster_bytes > (*from)->free_count())
        return failure({ENOSPC, "reserve"});
    of.expected_bytes = size_bytes;
    return {};
}

result<void> file_system::zero(inode& of, byte_extent where) noexcept {
    if (const auto may = may_change(); not may) return may;
    if (of.is_directory) return failure({EISDIR, "zero"});
    if (where.length == 0 or where.offset > file_bytes_max) return {};
    where.length = std::min(where.length, file_bytes_max - where.offset + 1);
    const auto held = of.ranges.lock({.where = range_of(where)});
    const std::uint64_t valid = of.valid();
    if (where.offset >= valid) return {};
    where.length = std::min(where.length, valid - where.offset);
    if (const auto done = zero_on_device(of, where); not done) return done;
    const std::unique_lock guard(of.mutex);
    mark_changed(of, true);
    return {};
}

// Returns whether the file has zeros that are not on the device.
bool file_system::has_unwritten_zeros(const inode& of) const noexcept {
    return not of.is_directory and not options_.is_read_only and of.valid() != of.size();
}

result<void> file_system::write_zeros(inode& of) noexcept {
    if (not has_unwritten_zeros(of)) return {};
    bool ignored = false;
    const auto held = lock_to_write(of, {.offset = file_bytes_max, .length = 2}, ignored, may_wait::yes);
    const std::uint64_t valid = of.valid();
    const std::uint64_t size = of.size();
    if (valid == size) return {};
    ENSURE(valid < size, "invariant 3 of inode");
    if (const auto done = zero_on_device(of, {.offset = valid, .length = size - valid}); not done)
        return done;
    const std::unique_lock guard(of.mutex);
    of.set({.size = size, .valid = size});
    mark_changed(of, false);
    return {};
}

result<void> file_system::flush(inode& of) noexcept {
    if (options_.is_read_only) return {};
    if (not of.is_directory)
        if (const auto done = write_zeros(of); not done) return done;
    return commit();
}

result<void> file_system::for_each_extent(inode& of, byte_extent where,
                                          const std::function<bool(const piece&)>& visit,
                                          may_wait waits) noexcept {
    if (of.is_directory) return failure({EISDIR, "list extents"});
    if (where.length == 0 or where.offset > file_bytes_max) return {};
    where.length = std::min(where.length, file_bytes_max - where.offset + 1);
    const auto held = lock_to_read(of, where, waits);
    if (not held) return failure(would_wait);
    const std::uint64_t size = of.size();
    const std::uint64_t valid = of.valid();
    if (where.offset >= size) return {};
    const std::uint64_t end = where.offset + std::min(where.length, size - where.offset);
    const std::uint64_t there = std::min(end, std::max(valid, where.offset));
    run_list::hint hint;
    bool goes_on = true;
    const auto done = for_each_piece(
        of, hint, {.offset = where.offset, .length = there - where.offset},
        [&](std::uint64_t at, std::uint64_t place, std::uint64_t bytes) -> result<void> {
            goes_on = visit({.offset = where.offset + at, .length = bytes, .place = place});
            return goes_on ? result<void>() : failure({ECANCELED, "list extents"});
        },
        waits);
    if (not goes_on) return {};
    if (not done) return done;
    if (there < end) (void)visit({.offset = there, .length = end - there});
    return {};
}

std::shared_ptr<extent_pin_table> file_system::pin_table() {
    const std::scoped_lock guard(pin_table_made_);
    if (pin_table_ == nullptr) pin_table_ = std::make_shared<extent_pin_table>(shape_.last_cluster());
    return pin_table_;
}

std::shared_ptr<extent_pin_table> file_system::pin_table_so_far() noexcept {
    const std::scoped_lock guard(pin_table_made_);
    return pin_table_;
}

// Adds the pins while the ranges are locked. A truncation comes later, and frees the clusters even
// later.
result<vfs::host_runs> file_system::pin_extents(inode& of, byte_extent where, std::size_t runs_max,
                                                may_wait waits) noexcept {
    if (not pins_extents_) return failure({EOPNOTSUPP, "pin extents"});
    vfs::host_runs made;
    const auto recorded = options_.is_read_only ? nullptr : std::make_shared<extent_pin>(pin_table());
    bool fits = true;
    const auto done = for_each_extent(
        of, where,
        [&](const piece& each) {
            fits = made.runs.size() < runs_max;
            if (not fits) return false;
            made.runs.push_back({.place = std::nullopt, .length = each.length});
            if (not each.place) return true;
            const file_location there = *device_.location_of(*each.place);
            made.file = there.file;
            made.runs.back().place = there.offset;
            if (recorded != nullptr)
                recorded->add(clusters_at(shape_, {.offset = *each.place, .length = each.length}));
            return true;
        },
        waits);
    if (not done) return failure(done.error());
    if (not fits) return failure({E2BIG, "pin extents"});
    made.kept = recorded;
    return made;
}

// Requires names_. The inode has no handles and cannot be found any more.
void file_system::drop(inode& of) noexcept {
    if (of.content != nullptr) {
        drop_content(of);
        recent_.remove_if([&](const inode_ptr& each) { return each.get() == &of; });
    }
    ENSURE(of.is_removed and of.handles == 0, "only removed files without handles free their clusters");
    const std::unique_lock guard(of.mutex);
    of.reserved.reset();
    const auto gone = of.chain.cut(0);
    if (not gone or gone->rest.empty()) return;
    const auto from = clusters();
    if (not from) return;
    for (const cluster_extent& each : gone->rest)
        (*from)->release(each);
}

}  // namespace sluice::fat

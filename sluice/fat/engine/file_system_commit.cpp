#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/engine/file_system.hpp"

// Writing the changes in an order that leaves the volume usable at every moment.

namespace sluice::fat {
namespace {

// Above these limits a commit is due.
constexpr std::uint64_t table_bytes_max = 16U << 20;
constexpr std::size_t queued_inodes_max = 4096;
// Number of extents that a commit discards, the largest first: a deleted file in very many
// fragments does not delay it.
constexpr std::size_t discards_max = 1024;

// Returns the same clusters in as few extents as possible.
std::vector<cluster_extent> merged(std::vector<cluster_extent> pieces) {
    std::ranges::sort(pieces, {}, &cluster_extent::first);
    std::vector<cluster_extent> whole;
    for (const cluster_extent& each : pieces) {
        ENSURE(whole.empty() or whole.back().first + whole.back().length <= each.first, "invariant 5");
        if (not whole.empty() and whole.back().first + whole.back().length == each.first) {
            whole.back().length += each.length;
        } else {
            whole.push_back(each);
        }
    }
    return whole;
}

}  // namespace

bool file_system::is_commit_due() noexcept {
    if (table_.dirty_bytes() > table_bytes_max or device_.wants_batch_end()) return true;
    const std::scoped_lock guard(queue_);
    return dirty_inodes_.size() > queued_inodes_max;
}

bool file_system::has_changes() noexcept {
    if (table_.is_dirty() or not dirty_directories_.empty() or not unfinished_.empty()) return true;
    const std::scoped_lock guard(queue_);
    return not dirty_inodes_.empty() or not cuts_.empty();
}

template <class Wait>
result<void> file_system::while_others_look(Wait wait) noexcept {
    names_.unlock();
    const result<void> done = wait();
    names_.lock();
    return done;
}

result<void> file_system::wait_for_disk() noexcept {
    return while_others_look([&] { return device_.barrier(); });
}

// Orders earlier writes before later ones.
result<void> file_system::order() noexcept {
    return options_.mode == write_mode::fast ? result<void>() : wait_for_disk();
}

result<void> file_system::flush_table() noexcept {
    ENSURE(is_marked_ and not options_.is_read_only, "a volume is marked dirty before it is changed");
    return while_others_look([&] { return table_.flush(options_.mode != write_mode::fast); });
}

// Requires the inode's mutex. A write only records its time, because there are many writes for each
// read of the time.
void file_system::stamp(directory_entry& raw, const inode& of) const noexcept {
    if (not of.written) return;
    const packed_time packed = pack(*of.written, options_.zone);
    raw.modified_date = le16(packed.date);
    raw.modified_time = le16(packed.time);
}

directory_entry file_system::entry_of(inode& of) noexcept {
    const std::unique_lock guard(of.mutex);
    stamp(of.entry, of);
    of.written.reset();
    directory_entry raw = of.entry;
    set_first_cluster(raw, of.chain.first(), width());
    ENSURE(of.size() <= UINT32_MAX, "a size has 32 bits on the disk");
    // Zeros that were not written are not part of the file on the disk.
    if (not of.is_directory)
        raw.size_bytes = le32(static_cast<std::uint32_t>(std::min(of.valid(), of.size())));
    return raw;
}

void file_system::write_entries() {
    std::vector<inode_ptr> changed;
    {
        const std::scoped_lock guard(queue_);
        changed.swap(dirty_inodes_);
    }
    for (const inode_ptr& each : changed) {
        {
            const std::unique_lock guard(each->mutex);
            ENSURE(each->is_queued, "queued inodes are marked as queued");
            each->is_queued = false;
        }
        if (each->is_removed or each->parent == nullptr) continue;
        const auto in = content_of(each->parent);
        if (not in) continue;  // it was readable before; on a damaged volume that may change
        directory_entry raw = entry_of(*each);
        raw.case_bits = (*in)->read(each->slot).case_bits;
        (*in)->update(each->slot, raw);
        touch(each->parent);
        forget_use(each);
    }
}

result<void> file_system::write_directories(bool is_removing) noexcept {
    ENSURE(is_marked_, "a volume is marked dirty before it is changed");
    for (const inode_ptr& each : dirty_directories_) {
        if (each->content == nullptr) continue;
        if (is_removing) each->content->apply_removals();
        if (not each->content->is_dirty()) continue;
        const auto done = each->content->write([this] { return order(); });
        if (not done) return done;
    }
    return {};
}

// Keeps a directory that was loaded while the disk was busy and that has removals.
void file_system::forget_written_directories() {
    std::erase_if(dirty_directories_, [](const inode_ptr& each) {
        return each->content == nullptr or not(each->content->is_dirty() or each->content->has_removals());
    });
}

file_system::given_up file_system::take_given_up() {
    const std::scoped_lock guard(queue_);
    given_up taken;
    taken.cuts = std::exchange(cuts_, {});
    if (allocator* const from = clusters_.load()) taken.rest = from->take_released();
    return taken;
}

byte_extent file_system::on_device(cluster_extent what) const noexcept {
    ENSURE(has_clusters(shape_, what));
    return {.offset = shape_.cluster_offset(what.first),
            .length = std::uint64_t{what.length} * shape_.cluster_bytes};
}

// Discards the largest extents.
void file_system::discard(std::vector<cluster_extent>& freed) noexcept {
    if (not options_.discards) return;
    const std::size_t count = std::min(freed.size(), discards_max);
    ENSURE(not options_.is_read_only, "a read-only volume frees no clusters");
    std::ranges::partial_sort(freed, freed.begin() + static_cast<std::ptrdiff_t>(count),
                              std::ranges::greater(), &cluster_extent::length);
    for (std::size_t i = 0; i != count; ++i)
        (void)device_.discard(on_device(freed[i]));
}

// Makes clusters available that are durably free on the disk, except pinned or cached ones
// (invariant 6), which a later commit checks again. `asked` is the number of clusters that were
// released with them.
void file_system::make_available(std::vector<cluster_extent> freed, std::uint64_t asked) noexcept {
    const std::shared_ptr<extent_pin_table> pins = pin_table_so_far();
    std::vector<cluster_extent> available;
    std::vector<cluster_extent> forgotten;
    for (const cluster_extent& each : merged(std::move(freed))) {
        if (pins == nullptr or not pins->was_pinned(each)) {
            available.push_back(each);
        } else if (not pins->is_pinned(each) and device_.discard(on_device(each))) {
            forgotten.push_back(each);
        } else {
            ENSURE(asked >= each.length, "freed clusters are part of the released ones");
            pinned_.push_back(each);
            asked -= each.length;
        }
    }
    discard(available);
    available.insert(available.end(), forgotten.begin(), forgotten.end());
    ENSURE(clusters_in(available) <= asked, "freed clusters are part of the released ones");
    if (asked != 0) clusters_.load()->reuse(available, asked);
}

void file_system::recheck_pinned() noexcept {
    if (pinned_.empty()) return;
    auto asked = std::exchange(pinned_, {});
    const std::uint64_t count = clusters_in(asked);
    make_available(std::move(asked), count);
    ENSURE(clusters_in(pinned_) <= count, "extents that stay pinned were pinned before");
}

result<void> file_system::free_given_up(given_up& what) noexcept {
    for (const cut& each : what.cuts) {
        ENSURE(shape_.is_cluster(each.last), "a chain that was cut has a last cluster");
        // Free clusters in the table may belong to other files: on a damaged volume, another file
        // has freed this one.
        const auto free = table_.is_free(each.last);
        if (not free) return failure(free.error());
        if (*free) continue;
        const auto done = table_.set({.first = each.last, .length = 1}, end_entry(shape_.type));
        if (not done) return done;
    }
    // Clusters that are free in the table, if not yet on the disk, are not freed again when a
    // commit is retried.
    while (not what.rest.empty()) {
        const auto freed = table_.free_up(what.rest.back());
        if (not freed) return failure(freed.error());
        what.freed.insert(what.freed.end(), freed->begin(), freed->end());
        what.asked += what.rest.back().length;
        what.rest.pop_back();
    }
    ENSURE(clusters_in(what.freed) <= what.asked, "freed clusters are part of the released ones");
    auto done = flush_table();
    if (done) done = order();
    if (not done) return done;
    if (what.asked != 0) make_available(std::move(what.freed), what.asked);
    for (const cut& each : what.cuts) {
        const std::unique_lock guard(each.of->mutex);
        ENSURE(each.of->cuts != 0, "a cut is carried out once");
        --each.of->cuts;
    }
    return {};
}

result<void> file_system::commit() noexcept {
    if (options_.is_read_only) return {};
    const std::scoped_lock change_guard(changes_);
    const std::scoped_lock guard(names_);
    return commit_locked();
}

result<void> file_system::unmount() noexcept {
    if (options_.is_read_only) return {};
    const std::scoped_lock change_guard(changes_);
    const std::scoped_lock guard(names_);
    if (const auto done = commit_locked(); not done) return done;
    if (const auto done = mark_clean(); not done) return done;
    return while_others_look([&] { return device_.end_batch(); });
}

result<void> file_system::commit_locked() noexcept {
    const auto done = write_changes();
    return done ? while_others_look([&] { return device_.end_batch(); }) : done;
}

result<void> file_system::write_changes() noexcept {
    ENSURE(not options_.is_read_only, "a read-only volume has no changes");
    recheck_pinned();
    if (not has_changes()) {
        given_up left = take_given_up();
        if (left.rest.empty()) return wait_for_disk();
        unfinished_.push_back(std::move(left));
    }
    // Before the entries: see the invariants.
    unfinished_.push_back(take_given_up());
    write_entries();
    if (const auto done = mark_dirty(); not done) return done;
    if (const auto done = order(); not done) return done;
    const bool has_table = table_.is_dirty();
    if (const auto done = flush_table(); not done) return done;
    if (has_table)
        if (const auto done = order(); not done) return done;
    if (const auto done = write_directories(false); not done) return done;
    if (const auto done = order(); not done) return done;
    const bool has_removals = std::ranges::any_of(dirty_directories_, [](const inode_ptr& each) {
        return each->content != nullptr and each->content->has_removals();
    });
    if (has_removals) {
        if (const auto done = write_directories(true); not done) return done;
        if (const auto done = order(); not done) return done;
    }
    forget_written_directories();
    while (not unfinished_.empty()) {
        given_up& each = unfinished_.front();  // in the order of the releases
        if (not each.is_empty())
            if (const auto done = free_given_up(each); not done) return done;
        unfinished_.pop_front();
    }
    return options_.mode == write_mode::fast ? wait_for_disk() : result<void>();
}

result<void> file_system::write_mark(bool is_dirty) noexcept {
    ENSURE(not options_.is_read_only, "a read-only volume is not marked");
    ENSURE(not is_marked_, "a mark is set and taken away once");
    if (not shape_.has_extended_fields) return {};
    std::array<std::byte, 1> state{};
    if (const auto done = device_.read_at(shape_.dirty_byte_offset(), state); not done) return done;
    state[0] = is_dirty ? state[0] | std::byte{1} : state[0] & ~std::byte{1};
    return device_.write_at(shape_.dirty_byte_offset(), state);
}

// The first write after the volume was clean.
result<void> file_system::mark_dirty() noexcept {
    if (is_marked_) return {};
    if (const auto done = write_mark(true); not done) return done;
    if (const std::uint32_t bit = clean_bit(shape_.type); bit != 0) {
        const auto flags = table_.reserved_entry(1);
        if (not flags) return failure(flags.error());
        if (const auto done = table_.set_reserved_entry(1, *flags & ~bit); not done) return done;
    }
    is_marked_ = true;
    return {};
}

// The last write: everything else is durable.
result<void> file_system::mark_clean() noexcept {
    if (not is_marked_) return {};
    ENSURE(unfinished_.empty(), "a clean volume has no pending releases");
    if (shape_.info_offset and clusters_.load() != nullptr) {
        info_sector raw;
        const auto bytes = std::as_writable_bytes(std::span(&raw, 1));
        if (device_.read_at(*shape_.info_offset, bytes) and decode_info(raw, shape_)) {
            const std::uint32_t next = clusters_.load()->next();
            raw.free_count = le32(clusters_.load()->free_count());
            if (shape_.is_cluster(next)) raw.next_free = le32(next);
            if (const auto done = device_.write_at(*shape_.info_offset, bytes); not done) return done;
        }
    }
    if (const auto done = wait_for_disk(); not done) return done;
    is_marked_ = false;
    // The volume was not cleanly unmounted, and nothing has checked it since.
    if (was_dirty_ and not options_.is_known_consistent) return {};
    if (const std::uint32_t bit = clean_bit(shape_.type); bit != 0) {
        const auto flags = table_.reserved_entry(1);
        if (not flags) return failure(flags.error());
        if (const auto done = table_.set_reserved_entry(1, *flags | bit); not done) return done;
        const auto written = while_others_look([&] { return table_.flush(false); });
        if (not written) return written;
        if (const auto done = wait_for_disk(); not done) return done;
    }
    if (const auto done = write_mark(false); not done) return done;
    return wait_for_disk();
}

}  // namespace sluice::fat

#include <algorithm>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/engine/file_system.hpp"

// Moving the data of a file to fewer runs.

namespace sluice::fat {
namespace {

constexpr std::size_t copied_bytes = 1U << 20;  // per transfer

// The location of a byte of a file whose clusters are `room`, and the number of contiguous bytes
// from there.
struct room_place {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};
room_place place_in(const geometry& shape, std::span<const cluster_extent> room, std::uint64_t at) noexcept {
    for (const cluster_extent& each : room) {
        const std::uint64_t bytes = std::uint64_t{each.length} * shape.cluster_bytes;
        if (at < bytes) return {.offset = shape.cluster_offset(each.first) + at, .length = bytes - at};
        at -= bytes;
    }
    ENSURE(false, "the room is as large as the file");
    return {};
}

}  // namespace

result<std::uint32_t> file_system::runs_in(inode& of) noexcept {
    const std::unique_lock guard(of.mutex);
    const auto count = of.chain.count();
    if (not count) return failure(count.error());
    std::uint32_t runs = 0;
    std::uint32_t end = 0;  // the cluster after the previous run
    run_list::hint hint;
    for (std::uint32_t at = 0; at < *count;) {
        const auto run = of.chain.locate(at, hint);
        if (not run) return failure(run.error());
        ENSURE(run->length != 0, "a run has a cluster");
        runs += run->disk_cluster != end or at == 0 ? 1 : 0;
        end = run->disk_cluster + run->length;
        at += run->length;
    }
    ENSURE(runs <= *count, "each run has a cluster");
    return runs;
}

// Allocates clusters for the whole file in fewer than `runs` runs; returns an empty list if that is
// not possible. Allocates in memory only.
result<std::vector<cluster_extent>> file_system::take_better_room(inode& of, std::uint32_t runs) noexcept {
    const auto from = clusters();
    if (not from) return failure(from.error());
    const auto count = [&] {
        const std::unique_lock guard(of.mutex);
        return of.chain.count();
    }();
    if (not count) return failure(count.error());
    ENSURE(runs > 1 and *count >= runs, "only a fragmented file is moved");
    reservation none(**from);
    std::vector<cluster_extent> taken;
    if (const auto done = (*from)->allocate({.wanted = *count}, none, taken); not done) {
        const bool is_full = done.error().code() == ENOSPC or done.error().code() == EAGAIN;
        return is_full ? result<std::vector<cluster_extent>>(taken) : failure(done.error());
    }
    if (taken.size() < runs) return taken;
    (*from)->undo(taken);
    return std::vector<cluster_extent>();
}

// No entry leads to these clusters yet, so a batch of the journal may end in the middle.
result<void> file_system::copy_to(inode& of, std::span<const cluster_extent> room) noexcept {
    std::vector<std::byte> block(copied_bytes);
    run_list::hint hint;
    const std::uint64_t size = of.valid();
    for (std::uint64_t at = 0; at < size;) {
        const auto run =
            run_at(of, static_cast<std::uint32_t>(at / shape_.cluster_bytes), hint, may_wait::yes);
        if (not run) return failure(run.error());
        const std::uint64_t within = at % shape_.cluster_bytes;
        const std::uint64_t contiguous = std::uint64_t{run->length} * shape_.cluster_bytes - within;
        const room_place place = place_in(shape_, room, at);
        const std::uint64_t bytes =
            std::min({std::uint64_t{block.size()}, size - at, place.length, contiguous});
        const auto part = std::span(block).first(static_cast<std::size_t>(bytes));
        const auto read = device_.read_at(shape_.cluster_offset(run->disk_cluster) + within, part);
        if (not read) return read;
        if (const auto written = device_.write_at(place.offset, std::span<const std::byte>(part));
            not written)
            return written;
        if (is_commit_due())
            if (const auto done = commit(); not done) return done;
        at += bytes;
    }
    // Then the journal has room for the move as a whole.
    return commit();
}

result<void> file_system::move_to_clusters(inode& of, std::span<const cluster_extent> room) noexcept {
    const std::unique_lock guard(of.mutex);
    if (of.reserved) of.reserved->release();
    const auto gone = of.chain.replace(room);
    if (not gone) return failure(gone.error());
    ENSURE(of.chain.is_counted() and clusters_in(*gone) == *of.chain.count(),
           "a moved file has as many clusters");
    mark_changed(of, false);
    // After the entry: file_system, invariant 4.
    const std::scoped_lock queue(queue_);
    for (const cluster_extent& each : *gone)
        clusters_.load()->release(each);
    return {};
}

result<file_system::run_counts> file_system::defragment(inode& of) noexcept {
    if (const auto may = may_change(); not may) return failure(may.error());
    if (of.is_directory) return failure({EISDIR, "defragment"});
    if (const auto done = write_zeros(of); not done) return failure(done.error());
    const auto held = of.ranges.lock({.where = sync::byte_range::from(0)});
    const auto runs = runs_in(of);
    if (not runs) return failure(runs.error());
    if (*runs < 2) return run_counts{.before = *runs, .after = *runs};
    // This frees the clusters of truncated and removed files.
    if (const auto done = commit(); not done) return failure(done.error());
    const auto room = take_better_room(of, *runs);
    if (not room) return failure(room.error());
    if (room->empty()) return run_counts{.before = *runs, .after = *runs};
    auto done = copy_to(of, *room);
    if (done) done = move_to_clusters(of, *room);
    if (not done) {
        put_back(*room);
        return failure(done.error());
    }
    if (done = commit(); not done) return failure(done.error());
    return run_counts{.before = *runs, .after = room->size()};
}

}  // namespace sluice::fat

#include "sluice/fat/engine/cluster_chain.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

// Number of clusters followed per lock of the table, so that no other thread waits long for it.
constexpr std::uint32_t follow_max = 64U << 10;

// Identifies the errors of is_damage(), by its address.
constexpr char follow_chain[] = "follow cluster chain";

std::unexpected<error> broken() noexcept {
    return failure({EIO, follow_chain});
}

}  // namespace

bool cluster_chain::is_damage(const error& why) noexcept {
    return why.operation() == follow_chain;
}

cluster_chain::cluster_chain(allocation_table& table, const geometry& shape, lookup_strategy strategy,
                             std::uint32_t first)
    : table_(table), shape_(shape), strategy_(strategy), first_(first) {
    if (first == 0) count_ = 0;
}

std::optional<cluster_run> cluster_chain::known(std::uint32_t file_cluster,
                                                run_list::hint& hint) const noexcept {
    if (strategy_ != lookup_strategy::runs or file_cluster >= runs_.exact()) return std::nullopt;
    return runs_.nearest(file_cluster, hint);
}

// Follows the chain until `file_cluster` is mapped, or until the end is reached and counted.
result<void> cluster_chain::map_to(std::uint32_t file_cluster, may_wait waits) noexcept {
    ENSURE(not count_ or runs_.mapped() <= *count_, "mapped clusters are before the end");
    std::optional<table_entry> after;  // entry of the last mapped cluster
    while (runs_.mapped() <= file_cluster and not(count_ and runs_.mapped() == *count_)) {
        std::uint32_t next = first_;
        if (const auto tail = runs_.tail()) {
            if (not after) {
                const auto looked_at = table_.next(tail->disk_cluster, waits);
                if (not looked_at) return failure(looked_at.error());
                after = *looked_at;
            }
            if (after->kind == entry_kind::end) {
                count_ = runs_.mapped();
                return {};
            }
            if (after->kind != entry_kind::next) return broken();
            next = after->next;
        }
        if (not shape_.is_cluster(next)) return broken();
        const std::uint32_t most =
            std::min(follow_max, (count_ ? *count_ : shape_.cluster_count) - runs_.mapped());
        if (most == 0) return broken();  // longer than the volume: the chain is cyclic
        const auto segment = table_.follow(next, most, waits);
        if (not segment) return failure(segment.error());
        ENSURE(segment->length != 0 and segment->length <= most, "no walk is longer than the volume");
        runs_.append(next, segment->length);
        after = segment->after;
    }
    return {};
}

result<cluster_chain::place> cluster_chain::walk(place from, std::uint32_t file_cluster,
                                                 may_wait waits) noexcept {
    ENSURE(from.file_cluster <= file_cluster, "a chain is walked forwards");
    if (not shape_.is_cluster(from.disk_cluster) or file_cluster >= shape_.cluster_count) return broken();
    while (from.file_cluster < file_cluster) {
        const auto after = table_.next(from.disk_cluster, waits);
        if (not after) return failure(after.error());
        if (after->kind != entry_kind::next) return broken();
        from = {.file_cluster = from.file_cluster + 1, .disk_cluster = after->next};
    }
    return from;
}

result<cluster_run> cluster_chain::locate_by_walking(std::uint32_t file_cluster, may_wait waits) noexcept {
    place from{.file_cluster = 0, .disk_cluster = first_};
    if (strategy_ == lookup_strategy::cursor) {
        if (cursor_ and cursor_->file_cluster <= file_cluster) from = *cursor_;
        if (last_ and last_->file_cluster == file_cluster) from = *last_;
    }
    const auto found = walk(from, file_cluster, waits);
    if (not found) return failure(found.error());
    if (strategy_ == lookup_strategy::cursor) cursor_ = *found;
    return cluster_run{.file_cluster = file_cluster, .disk_cluster = found->disk_cluster, .length = 1};
}

result<cluster_run> cluster_chain::locate(std::uint32_t file_cluster, run_list::hint& hint,
                                          may_wait waits) noexcept {
    if (count_ and file_cluster >= *count_) return broken();
    if (strategy_ != lookup_strategy::runs) return locate_by_walking(file_cluster, waits);
    if (const auto mapped = map_to(file_cluster, waits); not mapped) return failure(mapped.error());
    if (file_cluster >= runs_.mapped()) return broken();
    const cluster_run near = runs_.nearest(file_cluster, hint);
    if (near.file_cluster == file_cluster and file_cluster < runs_.exact()) return near;
    // After the stored runs.
    const auto found =
        walk({.file_cluster = near.file_cluster, .disk_cluster = near.disk_cluster}, file_cluster, waits);
    if (not found) return failure(found.error());
    const std::uint32_t most = std::min(run_list::anchor_spacing, runs_.mapped() - file_cluster);
    const auto segment = table_.follow(found->disk_cluster, most, waits);
    if (not segment) return failure(segment.error());
    return cluster_run{
        .file_cluster = file_cluster, .disk_cluster = found->disk_cluster, .length = segment->length};
}

result<std::uint32_t> cluster_chain::count_by_walking() noexcept {
    if (not shape_.is_cluster(first_)) return broken();
    place at{.file_cluster = 0, .disk_cluster = first_};
    for (;;) {
        const auto after = table_.next(at.disk_cluster);
        if (not after) return failure(after.error());
        if (after->kind == entry_kind::end) break;
        if (after->kind != entry_kind::next or at.file_cluster + 1 == shape_.cluster_count) return broken();
        at = {.file_cluster = at.file_cluster + 1, .disk_cluster = after->next};
    }
    if (strategy_ == lookup_strategy::cursor) last_ = at;
    return at.file_cluster + 1;
}

result<std::uint32_t> cluster_chain::count() noexcept {
    if (count_) return *count_;
    if (strategy_ != lookup_strategy::runs) {
        const auto walked = count_by_walking();
        if (not walked) return failure(walked.error());
        count_ = *walked;
        return *count_;
    }
    if (const auto mapped = map_to(UINT32_MAX, may_wait::yes); not mapped) return failure(mapped.error());
    ENSURE(count_.has_value());
    return *count_;
}

// Returns the last cluster of a counted chain that is not empty.
result<std::uint32_t> cluster_chain::last() noexcept {
    ENSURE(count_ and *count_ != 0);
    if (strategy_ == lookup_strategy::runs) {
        // After the stored runs, a cut may have removed some clusters from the list.
        if (const auto mapped = map_to(*count_ - 1, may_wait::yes); not mapped)
            return failure(mapped.error());
        return runs_.tail()->disk_cluster;
    }
    if (last_ and last_->file_cluster == *count_ - 1) return last_->disk_cluster;
    const auto found = walk({.file_cluster = 0, .disk_cluster = first_}, *count_ - 1, may_wait::yes);
    if (not found) return failure(found.error());
    if (strategy_ == lookup_strategy::cursor) last_ = *found;
    return found->disk_cluster;
}

result<void> cluster_chain::append(std::span<const cluster_extent> more) noexcept {
    ENSURE(not more.empty());
    if (const auto counted = count(); not counted) return failure(counted.error());
    std::uint32_t tail = 0;
    if (*count_ != 0) {
        const auto found = last();
        if (not found) return failure(found.error());
        tail = *found;
    }
    // On a damaged volume, another file with the same last cluster may have freed it. Then that
    // cluster can even be one of `more`.
    if (tail != 0) {
        const auto free = table_.is_free(tail);
        if (not free) return failure(free.error());
        if (*free) return broken();
    }
    const auto made = chain_up(more);
    auto done = made ? result<void>() : failure(made.error());
    if (done and tail != 0) done = table_.link(tail, more.front().first, tail_made_);
    if (not done) return done;
    if (tail == 0) first_ = more.front().first;
    map(more, *made);
    return {};
}

// Chains the clusters up and ends the chain with the last one. Returns the moment of the change.
result<allocation_table::moment> cluster_chain::chain_up(std::span<const cluster_extent> more) noexcept {
    allocation_table::moment made = 0;
    for (std::size_t i = 0; i < more.size(); ++i) {
        const std::uint32_t after = i + 1 < more.size() ? more[i + 1].first : end_entry(shape_.type);
        ENSURE(after != more[i].first, "a chain does not lead back to itself");
        const auto done = table_.chain_up(more[i], after);
        if (not done) return failure(done.error());
        made = *done;
    }
    return made;
}

// Records clusters that the table has at the end of the chain.
void cluster_chain::map(std::span<const cluster_extent> more, allocation_table::moment made) noexcept {
    ENSURE(count_ and (strategy_ != lookup_strategy::runs or runs_.mapped() == *count_),
           "all that comes before is mapped");
    for (const cluster_extent& each : more) {
        if (strategy_ == lookup_strategy::runs) runs_.append(each.first, each.length);
        *count_ += each.length;
    }
    tail_made_ = made;
    last_ = {.file_cluster = *count_ - 1, .disk_cluster = more.back().first + more.back().length - 1};
    ENSURE(strategy_ != lookup_strategy::runs or runs_.tail()->disk_cluster == last_->disk_cluster,
           "the chain ends where its last run does");
}

result<std::vector<cluster_extent>> cluster_chain::replace(std::span<const cluster_extent> with) noexcept {
    ENSURE(not with.empty());
    if (const auto counted = count(); not counted) return failure(counted.error());
    const auto made = chain_up(with);
    auto gone = made ? cut(0) : result<cut_off>(failure(made.error()));
    if (not gone) return failure(gone.error());
    first_ = with.front().first;
    ENSURE(*count_ == 0 and gone->last == 0, "the chain is empty");
    map(with, *made);
    return std::move(gone->rest);
}

result<cluster_chain::cut_off> cluster_chain::cut(std::uint32_t clusters) noexcept {
    const auto before = count();
    if (not before) return failure(before.error());
    cut_off gone;
    if (clusters >= *before) return gone;
    run_list::hint hint;
    for (std::uint32_t at = clusters; at < *before;) {
        const auto run = locate(at, hint);
        if (not run) return failure(run.error());
        const std::uint32_t length = std::min(run->length, *before - at);
        if (not gone.rest.empty() and gone.rest.back().first + gone.rest.back().length == run->disk_cluster) {
            gone.rest.back().length += length;
        } else {
            gone.rest.push_back({.first = run->disk_cluster, .length = length});
        }
        at += length;
    }
    if (clusters != 0) {
        const auto kept = locate(clusters - 1, hint);
        if (not kept) return failure(kept.error());
        gone.last = kept->disk_cluster;
    } else {
        first_ = 0;
    }
    runs_.cut(clusters);
    ENSURE(runs_.mapped() <= clusters and (clusters == 0) == (gone.last == 0));
    count_ = clusters;
    cursor_.reset();
    last_.reset();
    tail_made_.reset();
    return gone;
}

}  // namespace sluice::fat

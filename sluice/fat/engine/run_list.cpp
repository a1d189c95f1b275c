#include "sluice/fat/engine/run_list.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

bool run_list::is_in(std::size_t run, std::uint32_t file_cluster) const noexcept {
    return run < runs_.size() and file_cluster >= runs_[run].file_cluster and
           file_cluster - runs_[run].file_cluster < runs_[run].length;
}

cluster_run run_list::nearest(std::uint32_t file_cluster, hint& from) const noexcept {
    ENSURE(file_cluster < mapped_);
    if (file_cluster >= exact_) {
        const std::uint32_t index = (file_cluster - first_anchor_) / anchor_spacing;
        ENSURE(index < anchors_.size(), "an anchor covers each mapped cluster after the runs");
        return {.file_cluster = first_anchor_ + index * anchor_spacing,
                .disk_cluster = anchors_[index],
                .length = 1};
    }
    // A sequential stream stays in its run or continues in the next one.
    if (not is_in(from.run, file_cluster)) {
        if (is_in(from.run + 1, file_cluster)) {
            ++from.run;
        } else {
            const auto after = std::ranges::upper_bound(runs_, file_cluster, {}, &cluster_run::file_cluster);
            from.run = static_cast<std::size_t>(after - runs_.begin()) - 1;
            ENSURE(is_in(from.run, file_cluster), "the runs follow each other without a gap");
        }
    }
    const cluster_run& found = runs_[from.run];
    const std::uint32_t skipped = file_cluster - found.file_cluster;
    return {.file_cluster = file_cluster,
            .disk_cluster = found.disk_cluster + skipped,
            .length = found.length - skipped};
}

std::optional<cluster_run> run_list::tail() const noexcept {
    if (mapped_ == 0) return std::nullopt;
    return cluster_run{.file_cluster = mapped_ - 1, .disk_cluster = tail_, .length = 1};
}

void run_list::append(std::uint32_t disk_cluster, std::uint32_t length) {
    ENSURE(length != 0 and length <= UINT32_MAX - mapped_);
    ENSURE(length - 1 <= UINT32_MAX - disk_cluster);
    const bool is_exact = exact_ == mapped_;
    if (is_exact and not runs_.empty() and runs_.back().disk_cluster + runs_.back().length == disk_cluster) {
        runs_.back().length += length;
        exact_ += length;
    } else if (is_exact and runs_.size() < runs_max_) {
        runs_.push_back({.file_cluster = mapped_, .disk_cluster = disk_cluster, .length = length});
        exact_ += length;
    } else {
        append_anchors(disk_cluster, length);
    }
    mapped_ += length;
    tail_ = disk_cluster + (length - 1);
    ENSURE(exact_ <= mapped_ and runs_.size() <= runs_max_);
}

void run_list::append_anchors(std::uint32_t disk_cluster, std::uint32_t length) {
    if (anchors_.empty()) first_anchor_ = mapped_;
    ENSURE(mapped_ >= first_anchor_, "anchors follow the first anchor");
    const std::uint32_t past = (mapped_ - first_anchor_) % anchor_spacing;
    for (std::uint64_t skip = past == 0 ? 0 : anchor_spacing - past; skip < length; skip += anchor_spacing)
        anchors_.push_back(disk_cluster + static_cast<std::uint32_t>(skip));
}

void run_list::cut(std::uint32_t clusters) noexcept {
    if (clusters >= mapped_) return;
    if (clusters > exact_) {
        // The tail is known only at anchors.
        const std::uint32_t kept = (clusters - first_anchor_ - 1) / anchor_spacing + 1;
        ENSURE(kept != 0 and kept <= anchors_.size(), "the kept part begins with an anchor");
        anchors_.resize(kept);
        mapped_ = first_anchor_ + (kept - 1) * anchor_spacing + 1;
        tail_ = anchors_.back();
        return;
    }
    anchors_.clear();
    while (not runs_.empty() and runs_.back().file_cluster >= clusters)
        runs_.pop_back();
    if (not runs_.empty()) {
        runs_.back().length = std::min(runs_.back().length, clusters - runs_.back().file_cluster);
        tail_ = runs_.back().disk_cluster + (runs_.back().length - 1);
    }
    exact_ = mapped_ = clusters;
    ENSURE(runs_.empty() == (clusters == 0), "the runs are all clusters");
}

std::size_t run_list::bytes_allocated() const noexcept {
    return runs_.capacity() * sizeof(cluster_run) + anchors_.capacity() * sizeof(std::uint32_t);
}

}  // namespace sluice::fat

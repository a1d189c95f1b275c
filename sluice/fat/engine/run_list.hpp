#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::fat {

/// A run of clusters that are consecutive both in a file and on the disk.
struct cluster_run {
    std::uint32_t file_cluster = 0;  // counted from the start of the file
    std::uint32_t disk_cluster = 0;
    std::uint32_t length = 0;

    [[nodiscard]] friend constexpr bool operator==(const cluster_run&, const cluster_run&) noexcept = default;
};

/// The locations of the clusters of a file, as far as its chain has been followed: the first
/// mapped() of them.
///
/// They are stored as runs, found by binary search; a contiguous file is one run. The list stores
/// at most `runs_max` runs, so that a file in millions of fragments cannot exhaust the memory.
/// After these it stores only anchors, one every `anchor_spacing` clusters, from which the chain
/// has to be followed again for at most anchor_spacing steps.
///
/// Invariants:
///   1. Runs are sorted, not empty, and contiguous in the file from file cluster 0 on; two
///      neighbours would not make one run; together they are the first exact() clusters.
///   2. exact() == mapped() until there are runs_max runs. After that no run is added, and only the
///      end of the last run may change exact().
///   3. anchors_[i] is the disk cluster of file cluster first_anchor_ + i * anchor_spacing, all of
///      them below mapped(); first_anchor_ is exact() at the time of the first anchor.
///   4. tail_ is the disk cluster of file cluster mapped() - 1, if mapped() is not 0.
///
/// Complexity: append O(1) amortised; find O(1) if the hint is right, otherwise O(log runs); memory
/// O(runs_max + mapped / anchor_spacing). Allocates: append only. Thread safety: const members may
/// run concurrently.
class run_list {
public:
    static constexpr std::size_t runs_max_default = 64U << 10;
    static constexpr std::uint32_t anchor_spacing = 1024;

    /// The last position of one stream of requests. Each stream has its own, so that streams do not
    /// invalidate each other's hints. Any value is safe with any list.
    struct hint {
        std::size_t run = 0;
    };

    explicit run_list(std::size_t runs_max = runs_max_default) noexcept : runs_max_(runs_max) {}

    /// Returns the number of clusters with a known location.
    [[nodiscard]] std::uint32_t mapped() const noexcept { return mapped_; }
    [[nodiscard]] std::uint32_t exact() const noexcept { return exact_; }
    [[nodiscard]] std::size_t run_count() const noexcept { return runs_.size(); }
    [[nodiscard]] const std::vector<cluster_run>& runs() const noexcept { return runs_; }

    /// Returns the known location nearest to `file_cluster`, which is below mapped(): a run that
    /// begins with that cluster or, after the stored runs, an anchor before it (of length 1).
    [[nodiscard]] cluster_run nearest(std::uint32_t file_cluster, hint& from) const noexcept;
    /// Returns the last known cluster, or std::nullopt if the list is empty.
    [[nodiscard]] std::optional<cluster_run> tail() const noexcept;

    /// Appends the next `length` clusters of the file, which are on the disk from `disk_cluster`
    /// on. `length` is not zero.
    void append(std::uint32_t disk_cluster, std::uint32_t length);
    /// Removes all but the first `clusters`. After the stored runs it may remove some more, down to
    /// an anchor.
    void cut(std::uint32_t clusters) noexcept;

    /// Returns the size of the memory allocated in addition to this object.
    [[nodiscard]] std::size_t bytes_allocated() const noexcept;

private:
    [[nodiscard]] bool is_in(std::size_t run, std::uint32_t file_cluster) const noexcept;
    void append_anchors(std::uint32_t disk_cluster, std::uint32_t length);

    std::size_t runs_max_;
    std::vector<cluster_run> runs_;
    std::vector<std::uint32_t> anchors_;
    std::uint32_t first_anchor_ = 0;
    std::uint32_t exact_ = 0;
    std::uint32_t mapped_ = 0;
    std::uint32_t tail_ = 0;
};

}  // namespace sluice::fat

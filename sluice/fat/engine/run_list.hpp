#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::fat {

/// Clusters that follow each other both in a file and on the disk.
struct cluster_run {
    std::uint32_t file_cluster = 0;  // counted from the start of the file
    std::uint32_t disk_cluster = 0;
    std::uint32_t length = 0;

    [[nodiscard]] friend constexpr bool operator==(const cluster_run&, const cluster_run&) noexcept = default;
};

/// Where the clusters of a file lie, as far as its chain has been followed: the first mapped() of them.
///
/// Kept as runs, found by binary search; a file in one piece is one run. So that a file in millions of pieces
/// cannot take the memory of all others, the list keeps at most `runs_max` of them; of what follows it keeps
/// anchors only, every `anchor_spacing` clusters, from which the chain has to be followed again: at most
/// anchor_spacing steps.
///
/// Invariants:
///   1. Runs are sorted, not empty, follow each other without gap from file cluster 0 on, and two neighbours
///      would not make one run; together they are the first exact() clusters.
///   2. exact() == mapped() until there are runs_max runs; then runs are not added any more, and only the
///      last one's end may be what exact() says.
///   3. anchors_[i] is the disk cluster of file cluster first_anchor_ + i * anchor_spacing, all of them below
///      mapped(); first_anchor_ is exact() at the time of the first anchor.
///   4. tail_ is the disk cluster of file cluster mapped() - 1, if mapped() is not 0.
///
/// Complexity: append O(1) amortised; find O(1) where the hint is right, else O(log runs); memory
/// O(runs_max + mapped / anchor_spacing). Allocates: append only. Thread safety: const members at once.
class run_list {
public:
    static constexpr std::size_t runs_max_default = 64U << 10;
    static constexpr std::uint32_t anchor_spacing = 1024;

    /// Where one stream of requests looked last; one per stream, so that two streams do not mislead each
    /// other. Any value is safe with any list.
    struct hint {
        std::size_t run = 0;
    };

    explicit run_list(std::size_t runs_max = runs_max_default) noexcept : runs_max_(runs_max) {}

    /// Clusters whose place is known.
    [[nodiscard]] std::uint32_t mapped() const noexcept { return mapped_; }
    [[nodiscard]] std::uint32_t exact() const noexcept { return exact_; }
    [[nodiscard]] std::size_t run_count() const noexcept { return runs_.size(); }
    [[nodiscard]] const std::vector<cluster_run>& runs() const noexcept { return runs_; }

    /// The known place nearest to `file_cluster`, which is below mapped(): a run that begins with that very
    /// cluster, or, behind the runs that are kept, an anchor before it (of length 1).
    [[nodiscard]] cluster_run nearest(std::uint32_t file_cluster, hint& from) const noexcept;
    /// The last cluster that is known; nothing of an empty list.
    [[nodiscard]] std::optional<cluster_run> tail() const noexcept;

    /// The next `length` clusters of the file lie at `disk_cluster` and on. `length` is not zero.
    void append(std::uint32_t disk_cluster, std::uint32_t length);
    /// Forgets all but the first `clusters`; behind the runs that are kept possibly some more, down to an
    /// anchor.
    void cut(std::uint32_t clusters) noexcept;

    /// What it takes beside this object.
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

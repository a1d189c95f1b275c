#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::fat {

/// Clusters that follow each other on the disk.
struct cluster_extent {
    std::uint32_t first = 0;
    std::uint32_t length = 0;

    [[nodiscard]] friend constexpr bool operator==(const cluster_extent&,
                                                   const cluster_extent&) noexcept = default;
};

/// How many clusters they have together, each as often as it occurs. Complexity: linear.
[[nodiscard]] std::uint64_t clusters_in(std::span<const cluster_extent> extents) noexcept;

/// One bit per thing that may be taken, numbered from `first()`: clusters.
///
/// Invariants: free_count() is the number of free bits; free_in_[w] that of those in window w, of
/// `window_bits` each; bits behind the last are taken.
/// Complexity: O(length) / 64 to take and give; find_run as said there. Allocates: the constructor.
/// Thread safety: none of its own.
class free_map {
public:
    /// `count` things from `first` on, all taken.
    free_map(std::uint32_t first, std::uint32_t count);

    [[nodiscard]] std::uint32_t first() const noexcept { return first_; }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint32_t free_count() const noexcept { return free_; }
    [[nodiscard]] bool is_free(std::uint32_t which) const noexcept;

    /// All of `what` is taken now: it was free before.
    void take(cluster_extent what) noexcept;
    /// All of `what` is free now: it was taken before.
    void give(cluster_extent what) noexcept;
    /// All of `what` is free now, whatever it was before.
    void give_if_taken(cluster_extent what) noexcept;

    /// How many from `first` on are free, up to `most`. Nothing outside is.
    [[nodiscard]] std::uint32_t free_from(std::uint32_t first, std::uint32_t most) const noexcept;

    /// `wanted` free ones in a row, the nearest behind `goal`, going on from the start; if there are none,
    /// the longest row there is. Nothing if nothing is free. `wanted` is not zero.
    /// Complexity: O(count / 64) at worst, full windows skipped.
    [[nodiscard]] std::optional<cluster_extent> find_run(std::uint32_t goal,
                                                         std::uint32_t wanted) const noexcept;

private:
    static constexpr std::uint32_t word_bits = 64;
    static constexpr std::uint32_t window_bits = 32U << 10;

    template <class PerWord>
    void for_each_word(cluster_extent what, PerWord per_word) noexcept;
    [[nodiscard]] std::uint32_t next_free(std::uint32_t index) const noexcept;
    [[nodiscard]] std::uint32_t free_bits_from(std::uint32_t index, std::uint32_t most) const noexcept;
    bool find_between(std::uint32_t from, std::uint32_t to, std::uint32_t wanted,
                      cluster_extent& best) const noexcept;

    std::uint32_t first_;
    std::uint32_t count_;
    std::uint32_t free_ = 0;
    std::vector<std::uint64_t> words_;  // a one is free
    std::vector<std::uint32_t> free_in_;
};

}  // namespace sluice::fat

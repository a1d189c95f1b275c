#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::fat {

/// A run of consecutive clusters on the disk.
struct cluster_extent {
    std::uint32_t first = 0;
    std::uint32_t length = 0;

    [[nodiscard]] friend constexpr bool operator==(const cluster_extent&,
                                                   const cluster_extent&) noexcept = default;
};

/// Returns the total number of clusters of the extents, with multiplicity. Complexity: linear.
[[nodiscard]] std::uint64_t clusters_in(std::span<const cluster_extent> extents) noexcept;

/// A bitmap of free clusters, numbered from `first()`.
///
/// Invariants: free_count() is the number of free bits; free_in_[w] is the number of free bits in
/// window w, which has `window_bits` bits; bits after the last one are taken.
/// Complexity: O(length) / 64 to take and give; find_run as documented there. Allocates: the
/// constructor.
/// Thread safety: none of its own.
class free_map {
public:
    /// Creates a map of `count` clusters from `first` on, all taken.
    free_map(std::uint32_t first, std::uint32_t count);

    [[nodiscard]] std::uint32_t first() const noexcept { return first_; }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint32_t free_count() const noexcept { return free_; }
    [[nodiscard]] bool is_free(std::uint32_t which) const noexcept;

    /// Marks all of `what` as taken; all of it was free before.
    void take(cluster_extent what) noexcept;
    /// Marks all of `what` as free; all of it was taken before.
    void give(cluster_extent what) noexcept;
    /// Marks all of `what` as free; a part of it may already be free.
    void free_if_allocated(cluster_extent what) noexcept;

    /// Returns the number of consecutive free clusters from `first` on, up to `most`. Clusters
    /// outside the map are not free.
    [[nodiscard]] std::uint32_t free_from(std::uint32_t first, std::uint32_t most) const noexcept;

    /// Returns `wanted` consecutive free clusters: the nearest at or after `goal`, or else the
    /// nearest from the start. If there is no such run, returns the longest one. Returns
    /// std::nullopt if no cluster is free. `wanted` is not zero.
    /// Complexity: O(count / 64) at worst; windows without free bits are skipped.
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
    std::vector<std::uint64_t> words_;  // a set bit is free
    std::vector<std::uint32_t> free_in_;
};

}  // namespace sluice::fat

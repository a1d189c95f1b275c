#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/fat/engine/free_map.hpp"

namespace sluice::fat {

/// The clusters whose content is in use outside the file system and without its locks: by replies
/// that are sent from the image, and by reads of a worker thread.
///
/// Pins are counted for groups of 64 clusters. A query may therefore report the pin of a neighbour,
/// but never misses one.
/// Invariant: the count of a group is twice the number of pins that touch it, plus one if there
/// ever was a pin.
/// Thread safety: any thread. Allocates: in the constructor, 4 bytes for each group. Outlives its
/// pins.
class extent_pin_table {
public:
    /// Creates a table for clusters up to `last`.
    explicit extent_pin_table(std::uint32_t last) : counts_(last / group_clusters + 1) {}

    void begin(cluster_extent what) noexcept;
    void end(cluster_extent what) noexcept;

    /// Returns whether any cluster of `what`, which is not empty, may be pinned now.
    [[nodiscard]] bool is_pinned(cluster_extent what) const noexcept;
    /// Returns whether any cluster of `what` may ever have been pinned.
    [[nodiscard]] bool was_pinned(cluster_extent what) const noexcept;

private:
    static constexpr std::uint32_t group_clusters = 64;
    static constexpr std::uint32_t once = 1;
    static constexpr std::uint32_t one_pin = 2;

    [[nodiscard]] bool any_count_from(std::uint32_t least, cluster_extent what) const noexcept;

    std::vector<std::atomic<std::uint32_t>> counts_;
};

/// The pinned extents of one user. The destructor unpins them; the table may outlive the volume.
/// Thread safety: one thread at a time. Allocates: a list.
class extent_pin {
public:
    explicit extent_pin(std::shared_ptr<extent_pin_table> in) noexcept : table_(std::move(in)) {}
    extent_pin(const extent_pin&) = delete;
    extent_pin& operator=(const extent_pin&) = delete;
    ~extent_pin();

    void add(cluster_extent what);

private:
    std::shared_ptr<extent_pin_table> table_;
    std::vector<cluster_extent> pinned_;
};

}  // namespace sluice::fat

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/fat/engine/free_map.hpp"

namespace sluice::fat {

/// Which clusters somebody uses where they lie, beside the file system and without a lock of its: replies
/// that are sent from the image, reads that a worker thread does.
///
/// Kept for groups of 64 clusters: who asks about one is answered for its group, and may hear of a loan that
/// is a neighbour's, but never misses one.
/// Invariant: a group's count is twice the loans that touch it, plus one if there ever was any.
/// Thread safety: any thread. Allocates: the constructor, 4 bytes for each group. Outlives its loans.
class extent_pin_table {
public:
    /// For clusters up to `last`.
    explicit extent_pin_table(std::uint32_t last) : counts_(last / group_clusters + 1) {}

    void begin(cluster_extent what) noexcept;
    void end(cluster_extent what) noexcept;

    /// Whether any of `what`, which is not empty, may be on loan now.
    [[nodiscard]] bool is_lent(cluster_extent what) const noexcept;
    /// Whether any of it may ever have been.
    [[nodiscard]] bool was_lent(cluster_extent what) const noexcept;

private:
    static constexpr std::uint32_t group_clusters = 64;
    static constexpr std::uint32_t once = 1;
    static constexpr std::uint32_t one_loan = 2;

    [[nodiscard]] bool any_count_from(std::uint32_t least, cluster_extent what) const noexcept;

    std::vector<std::atomic<std::uint32_t>> counts_;
};

/// What one borrower has. Gives it back when it goes, to a book that may outlive the volume.
/// Thread safety: one thread at a time. Allocates: a list.
class loan {
public:
    explicit loan(std::shared_ptr<extent_pin_table> in) noexcept : book_(std::move(in)) {}
    loan(const loan&) = delete;
    loan& operator=(const loan&) = delete;
    ~loan();

    void add(cluster_extent what);

private:
    std::shared_ptr<extent_pin_table> book_;
    std::vector<cluster_extent> lent_;
};

}  // namespace sluice::fat

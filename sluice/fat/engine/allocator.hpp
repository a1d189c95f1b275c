#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/fat/engine/free_map.hpp"

namespace sluice::fat {

class allocator;

/// Free clusters reserved for one growing file, after its last cluster, so that files that grow
/// concurrently are not interleaved. In memory only: a crash leaks no clusters.
/// Thread safety: that of the allocator. Destroyed before its allocator; the destructor releases
/// the clusters.
class reservation {
public:
    explicit reservation(allocator& from) noexcept : from_(from) {}
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    ~reservation() { release(); }

    void release() noexcept;

private:
    friend class allocator;
    allocator& from_;
    cluster_extent held_;
};

/// An allocation request.
struct allocation_request {
    std::uint32_t goal = 0;    // the cluster after the last one of the file; 0: anywhere
    std::uint32_t wanted = 1;  // number of clusters; not zero
    std::uint32_t ahead = 0;   // number of clusters to reserve if there is no reservation
};

/// The allocator of clusters. The policy is next-fit. It prefers clusters that continue the last
/// run of the file, and otherwise runs that are as long as the request.
///
/// Invariants; every cluster is exactly one of
///   free       its bit in the map is set;
///   reserved   for one file: taken in the map, counted in reserved_;
///   released   by a file, but not available until that is durable: taken in the map, listed in
///   released_;
///   used       everything else.
/// free_count() counts the first three: all of them can be allocated, if necessary after a commit.
/// Complexity: as free_map. Allocates: lists. Thread safety: any thread.
class allocator {
public:
    /// `clusters` has the free clusters; the search begins at `start`.
    allocator(free_map clusters, std::uint32_t start) : map_(std::move(clusters)), next_(start) {}

    /// Allocates clusters for a file; appends them to `taken` in the order of the file.
    /// Errors: ENOSPC, without allocating any cluster, after the reservations of other files have
    /// been released; EAGAIN instead if there are enough clusters only after the released ones are
    /// durable.
    /// Complexity: O(1) while the reservation has clusters; otherwise as free_map.
    [[nodiscard]] result<void> allocate(const allocation_request& wanted, reservation& own,
                                        std::vector<cluster_extent>& taken);
    /// Frees allocated clusters that are not part of a file, at once. Free ones stay free: on a
    /// damaged volume, another file with the same clusters may have freed them.
    void undo(const std::vector<cluster_extent>& taken) noexcept;

    /// Releases clusters that a file no longer uses.
    void release(cluster_extent what);
    /// Returns the clusters released so far. The caller makes the release durable, then calls
    /// reuse() with them.
    [[nodiscard]] std::vector<cluster_extent> take_released();
    /// Makes the clusters of `freed` available, unless they already are. They were among `asked`
    /// clusters that take_released() returned; the others of these were already free in the table,
    /// because on a damaged volume a second file may have had them.
    void reuse(const std::vector<cluster_extent>& freed, std::uint64_t asked) noexcept;

    [[nodiscard]] std::uint32_t free_count() noexcept;
    /// Returns the position of the search: a hint for the next mount.
    [[nodiscard]] std::uint32_t next() noexcept;

private:
    friend class reservation;

    void release(reservation& which) noexcept;
    [[nodiscard]] bool take_reserved(const allocation_request& wanted, reservation& own,
                                     std::vector<cluster_extent>& taken);
    std::uint32_t take_row(cluster_extent row, std::uint32_t wanted, std::vector<cluster_extent>& taken);

    std::mutex mutex_;
    free_map map_;
    std::uint32_t next_;
    std::uint32_t reserved_ = 0;
    std::uint64_t released_count_ = 0;  // on a damaged volume a cluster may be released many times
    std::vector<cluster_extent> released_;
    std::set<reservation*> reservations_;  // those with clusters
};

}  // namespace sluice::fat

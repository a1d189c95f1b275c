#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/fat/engine/free_map.hpp"

namespace sluice::fat {

class allocator;

/// Free clusters kept for one file that grows, behind its last one, so that two files that grow at once do
/// not lie between each other. In memory only: a crash leaks nothing.
/// Thread safety: the allocator's. Goes before its allocator, and gives back what it holds.
class reservation {
public:
    explicit reservation(allocator& from) noexcept : from_(from) {}
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    ~reservation() { give_back(); }

    void give_back() noexcept;

private:
    friend class allocator;
    allocator& from_;
    cluster_extent held_;
};

/// What a file asks for.
struct allocation_request {
    std::uint32_t goal = 0;    // the cluster that would go on where the file ends; 0: anywhere
    std::uint32_t wanted = 1;  // how many in all; not zero
    std::uint32_t ahead = 0;   // how many more to reserve when no reservation is left
};

/// Who gets which clusters: next-fit, what goes on a file's last row first, rows as long as what is wanted
/// where there are any.
///
/// Invariants; every cluster is exactly one of
///   free       a one in the map;
///   reserved   for one file: taken in the map, counted in reserved_;
///   released   by a file, but not to be had until that is durable: taken in the map, listed in released_;
///   used       everything else.
/// free_count() counts the first three: they can all be had, if need be after a commit.
/// Complexity: as free_map. Allocates: lists. Thread safety: any thread.
class allocator {
public:
    /// `clusters` says which are free; the search begins at `start`.
    allocator(free_map clusters, std::uint32_t start) : map_(std::move(clusters)), next_(start) {}

    /// Takes clusters for a file; appends them to `taken` in the order of the file.
    /// Errors: ENOSPC, and then nothing was taken: reservations of others have been given back before;
    /// EAGAIN instead if there is enough only once what was released is durable.
    /// Complexity: O(1) while the reservation lasts; else as free_map.
    [[nodiscard]] result<void> allocate(const allocation_request& wanted, reservation& own,
                                        std::vector<cluster_extent>& taken);
    /// Frees at once clusters that were taken and are part of no file. Free ones stay free: on a damaged
    /// volume, another file that claims the clusters may have freed them.
    void undo(const std::vector<cluster_extent>& taken) noexcept;

    /// A file needs them no more.
    void release(cluster_extent what);
    /// What has been released so far; the caller makes that durable, then calls reuse() with it.
    [[nodiscard]] std::vector<cluster_extent> take_released();
    /// Of `asked` clusters taken by take_released(), those of `freed` are free now, if they were not already.
    /// The others were not the caller's to free: on a damaged volume, a second file can have had them.
    void reuse(const std::vector<cluster_extent>& freed, std::uint64_t asked) noexcept;

    [[nodiscard]] std::uint32_t free_count() noexcept;
    /// Where the search goes on: a hint for the next mount.
    [[nodiscard]] std::uint32_t next() noexcept;

private:
    friend class reservation;

    void give_back(reservation& which) noexcept;
    [[nodiscard]] bool take_reserved(const allocation_request& wanted, reservation& own,
                                     std::vector<cluster_extent>& taken);
    std::uint32_t take_row(cluster_extent row, std::uint32_t wanted, std::vector<cluster_extent>& taken);

    std::mutex mutex_;
    free_map map_;
    std::uint32_t next_;
    std::uint32_t reserved_ = 0;
    std::uint64_t released_count_ = 0;  // a damaged volume may have a cluster released many times
    std::vector<cluster_extent> released_;
    std::set<reservation*> reservations_;  // those that hold something
};

}  // namespace sluice::fat

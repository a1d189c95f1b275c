#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sluice/fat/engine/allocation_table.hpp"
#include "sluice/fat/engine/run_list.hpp"

namespace sluice::fat {

/// The method to find the clusters of a file. The first two are those of other implementations,
/// kept for comparison.
enum class lookup_strategy : std::uint8_t {
    naive,   ///< starts at the first cluster, each time
    cursor,  ///< starts at the last found cluster if possible; caches the end of the file
    runs,    ///< uses run_list: reads each entry of the table once
};

/// The chain of one file or directory.
///
/// Invariants:
///   1. count_, once known, is the number of clusters of the file. No entry after the last one is
///      followed, even if the table still has more (the table is cut later).
///   2. No walk takes more steps than the volume has clusters: a cyclic chain is an error.
/// Thread safety: known() may run concurrently with itself; all other calls require exclusive
/// access.
class cluster_chain {
public:
    /// `first` is the first cluster from the directory entry, 0 for none; it is not checked.
    /// `table` outlives this object.
    cluster_chain(allocation_table& table, const geometry& shape, lookup_strategy strategy,
                  std::uint32_t first);

    [[nodiscard]] std::uint32_t first() const noexcept { return first_; }

    /// Returns whether an error of this class reports a chain that is too short, damaged or cyclic,
    /// not one of the device, which may be temporary.
    [[nodiscard]] static bool is_damage(const error& why) noexcept;

    /// Returns the run that begins with `file_cluster`, if it is known without reading the table.
    /// Complexity: as run_list. Allocates: nothing.
    [[nodiscard]] std::optional<cluster_run> known(std::uint32_t file_cluster,
                                                   run_list::hint& hint) const noexcept;
    /// The same, but follows the chain as far as needed. Errors: EIO for a chain that is too short,
    /// damaged or cyclic; those of the device; EAGAIN if it may not wait and would have to wait for
    /// the table. Complexity: with the strategy runs, each entry is read once.
    [[nodiscard]] result<cluster_run> locate(std::uint32_t file_cluster, run_list::hint& hint,
                                             may_wait waits = may_wait::yes) noexcept;
    /// Returns the number of clusters. Follows the chain to its end, once. Errors: as locate.
    [[nodiscard]] result<std::uint32_t> count() noexcept;
    [[nodiscard]] bool is_counted() const noexcept { return count_.has_value(); }

    /// Appends clusters to the chain, in the table as well: first their entries, then the link.
    /// Complexity: O(1) once the end is known, plus the entries of the new clusters. Errors: as
    /// locate, also EIO if the last cluster is free in the table. Then the chain is unchanged, but
    /// `more` may be chained up in the table: the caller frees them there.
    [[nodiscard]] result<void> append(std::span<const cluster_extent> more) noexcept;

    /// Keeps only the first `clusters`, and returns the remaining clusters. Does not change the
    /// table.
    /// `last` is the last cluster kept, 0 if none. Errors: as locate; then the chain is unchanged.
    struct cut_off {
        std::uint32_t last = 0;
        std::vector<cluster_extent> rest;
    };
    [[nodiscard]] result<cut_off> cut(std::uint32_t clusters) noexcept;

    /// Replaces the clusters of the chain by `with`, which is not empty, in the table as well, and
    /// returns the old clusters. Does not change their entries. Errors: as locate, and as append;
    /// then the chain is unchanged, and the caller frees `with` in the table. Complexity: linear in
    /// both. Allocates: lists.
    [[nodiscard]] result<std::vector<cluster_extent>> replace(std::span<const cluster_extent> with) noexcept;

    /// Returns the part that is known so far, for inspection.
    [[nodiscard]] const run_list& runs() const noexcept { return runs_; }

private:
    struct place {
        std::uint32_t file_cluster = 0;
        std::uint32_t disk_cluster = 0;
    };

    [[nodiscard]] result<void> map_to(std::uint32_t file_cluster, may_wait waits) noexcept;
    [[nodiscard]] result<allocation_table::moment> chain_up(std::span<const cluster_extent> more) noexcept;
    void map(std::span<const cluster_extent> more, allocation_table::moment made) noexcept;
    [[nodiscard]] result<place> walk(place from, std::uint32_t file_cluster, may_wait waits) noexcept;
    [[nodiscard]] result<cluster_run> locate_by_walking(std::uint32_t file_cluster, may_wait waits) noexcept;
    [[nodiscard]] result<std::uint32_t> last() noexcept;
    [[nodiscard]] result<std::uint32_t> count_by_walking() noexcept;

    allocation_table& table_;
    const geometry& shape_;
    lookup_strategy strategy_;
    std::uint32_t first_;
    std::optional<std::uint32_t> count_;
    run_list runs_;
    std::optional<place> cursor_;  // for the strategy cursor
    std::optional<place> last_;
    std::optional<allocation_table::moment> tail_made_;  // when the last cluster was added
};

}  // namespace sluice::fat

#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sluice/fat/engine/allocation_table.hpp"
#include "sluice/fat/engine/run_list.hpp"

namespace sluice::fat {

/// How the clusters of a file are found. The first two are what others do, kept to be compared with.
enum class lookup_strategy : std::uint8_t {
    naive,   ///< from the first cluster, each time
    cursor,  ///< from the cluster found last, if it lies before; and the last of the file is remembered
    runs,    ///< by run_list: each entry of the table is looked at once
};

/// The chain of one file or directory.
///
/// Invariants:
///   1. count_, once known, is the number of clusters of the file; nothing behind is ever followed, whatever
///      the table still says (what is cut off is cut in the table later).
///   2. No walk takes more steps than the volume has clusters: a chain that comes back to itself ends in an
///      error.
/// Thread safety: known() at once with itself; everything else alone.
class cluster_chain {
public:
    /// `first` is what the directory says, 0 for none, nothing else of it checked. `table` outlives this.
    cluster_chain(allocation_table& table, const geometry& shape, lookup_strategy strategy,
                  std::uint32_t first);

    [[nodiscard]] std::uint32_t first() const noexcept { return first_; }

    /// The run that begins with `file_cluster`, if it is known without looking at the table.
    /// Complexity: as run_list. Allocates: nothing.
    [[nodiscard]] std::optional<cluster_run> known(std::uint32_t file_cluster,
                                                   run_list::hint& hint) const noexcept;
    /// The same, following the chain as far as needed. Errors: EIO for a chain that ends before, is damaged
    /// or comes back to itself; those of the device; EAGAIN if it may not wait and would have to for the
    /// table. Complexity: each entry once, with runs.
    [[nodiscard]] result<cluster_run> locate(std::uint32_t file_cluster, run_list::hint& hint,
                                             may_wait waits = may_wait::yes) noexcept;
    /// How many clusters there are. Follows the chain to its end, once. Errors: as locate.
    [[nodiscard]] result<std::uint32_t> count() noexcept;
    [[nodiscard]] bool is_counted() const noexcept { return count_.has_value(); }

    /// Adds clusters at the end, in the table as well; the entries before the link. Complexity: O(1) once the
    /// end is known, and the entries of the new ones. Errors: as locate, also EIO if the last one is free in
    /// the table. Then nothing was added, but the table may have `more` chained up: the caller frees them
    /// there.
    [[nodiscard]] result<void> append(std::span<const cluster_extent> more) noexcept;

    /// Keeps the first `clusters` only, and says what is left over; in the table nothing changes.
    /// `last` is the last one kept, 0 if none. Errors: as locate, and then nothing was cut.
    struct cut_off {
        std::uint32_t last = 0;
        std::vector<cluster_extent> rest;
    };
    [[nodiscard]] result<cut_off> cut(std::uint32_t clusters) noexcept;

    /// Takes `with`, which is not empty, as its clusters, in the table as well, and returns the clusters it
    /// had. In the table they change nothing. Errors: as locate, and as append; then the chain is as before,
    /// and the caller frees `with` in the table. Complexity: linear in both. Allocates: lists.
    [[nodiscard]] result<std::vector<cluster_extent>> replace(std::span<const cluster_extent> with) noexcept;

    /// What is known so far, for those who want to see it.
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
    std::optional<place> cursor_;  // of the strategy cursor
    std::optional<place> last_;
    std::optional<allocation_table::moment> tail_made_;  // when the last cluster came to it
};

}  // namespace sluice::fat

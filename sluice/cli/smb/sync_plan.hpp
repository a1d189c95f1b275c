#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::cli {

/// An object in a tree that is synchronised.
struct sync_entry {
    enum class kind : std::uint8_t {
        file,
        directory,
        other,  ///< a link or device, which is neither read nor replaced
    };
    std::string path;  ///< below the root, `/` between names, as a server spells them
    kind is = kind::file;
    std::uint64_t bytes = 0;
    std::uint64_t modified = 0;  ///< in units of 100 ns
    [[nodiscard]] friend bool operator==(const sync_entry&, const sync_entry&) = default;
};

struct sync_rules {
    bool removes = false;
    /// Two names that differ only in case are the same name in the target.
    bool ignores_case = false;
};

/// The actions that give the target the contents of the source. Positions are indices of the lists
/// of the two trees.
///
/// Invariants:
/// 1. No removal has a name that the source has, in any case, nor is it above such a name, or below
///    one that was skipped.
/// 2. A directory is removed after its contents.
/// 3. Each directory is created before its contents.
/// 4. An object of one kind never replaces one of another.
struct sync_plan {
    struct skipped_entry {
        std::string path;
        std::string why;
    };
    std::vector<std::size_t> directories;  ///< to create: positions in the source
    std::vector<std::size_t> files;        ///< to copy: positions in the source
    std::vector<std::size_t> same;         ///< unchanged: positions in the source
    std::vector<std::size_t> removals;     ///< positions in the target
    std::vector<skipped_entry> skipped;
    /// Why nothing may be removed; empty if it may: the trees have no name in common, so that the
    /// target may be a wrong one, or the source a file system that is not mounted.
    std::string no_removal;
};

/// Compares two trees, of which the listings are complete. Each directory comes before its entries.
/// Allocates: the plan. Complexity: sorts both lists.
[[nodiscard]] sync_plan plan_sync(const std::vector<sync_entry>& source,
                                  const std::vector<sync_entry>& target, sync_rules rules);

/// Returns whether two times of modification are the same, as far as both systems can store them.
/// One in whole seconds may differ by less than 2 s; if both are in whole seconds, only if one of
/// them is even, as on FAT. One in units of 10 ms, as on exFAT, may differ by less than that.
[[nodiscard]] bool is_same_time(std::uint64_t one, std::uint64_t other) noexcept;

}  // namespace sluice::cli

#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "sluice/cli/fat/image/image.hpp"

namespace sluice::cli {

/// A file or directory of a volume, for listings and copies.
struct tree_entry {
    std::string path;  // on the volume, without the first slash
    fat::inode_status status;
};

/// The reason why an object was not read or copied.
struct object_problem {
    std::string what;  // safe for a terminal: the path on the volume, or of the copy on the host
    std::string why;
    bool ends_the_command = false;  // every further object would have it, too
};

/// Returns a problem of an object of the volume. `path`: without the first slash.
/// Allocates: the texts.
[[nodiscard]] object_problem problem_of(const std::string& path, const error& why);
[[nodiscard]] object_problem problem_of(const std::string& path, const std::string& why);
/// Returns a problem of a copy on the host, which could not be written: `target` is its path there.
[[nodiscard]] object_problem problem_of_target(const std::string& target, const error& why);

/// The objects of a volume that a command could not read or copy. The command
/// continues with the others.
///
/// Thread safety: none.
class unreadable_objects {
public:
    /// Prints "sluice fat get: /path: why" to standard error and counts the object. `path`: without
    /// the first slash. Allocates: the message. Blocks: for standard error.
    void report(const std::string& path, const error& why);
    void report(const std::string& path, const std::string& why);
    /// Prints a problem. Leaves, after that, if it ends the command.
    void report(const object_problem& problem);

    /// Ends the command with failure if an object was reported. Call it when
    /// everything else is done.
    void leave_if_any() const;

private:
    std::uint64_t count_ = 0;
};

/// Returns the entries of a directory, in the order of its slots. Leaves with the reason if it
/// cannot be read; entries after damage in its chain are missing.
[[nodiscard]] std::vector<tree_entry> entries_of(fat::file_system& system, const std::string& path);

/// The receiver of a walk through a tree. Both functions are called in the order of the walk.
struct tree_visitor {
    std::function<bool(tree_entry)> visit;              ///< false ends the walk
    std::function<void(const object_problem&)> report;  ///< a problem of a visited directory
};

/// Visits everything below `path`; for a file, only the file itself. A directory comes before its
/// entries, and the entries of a directory come in the order of its slots.
///
/// Directories that cannot be read, or only in part, are reported, and so are directories that
/// share clusters with a directory visited before: each cluster chain is visited once, so the time
/// is linear in the volume's directories whatever the image contains. Directories more than 1,000
/// levels deep are reported and not read. Leaves with the reason if `path` does not exist.
/// Allocates: 256 entries for each directory from `path` down to the present one, and a number for
/// each directory that was read; no stack.
void for_each_below(fat::file_system& system, const std::string& path, const tree_visitor& visitor);

/// Returns the entries that for_each_below() visits, and passes its reports to `skipped`.
/// Allocates: all of it.
[[nodiscard]] std::vector<tree_entry> tree_of(fat::file_system& system, const std::string& path,
                                              unreadable_objects& skipped);

[[nodiscard]] fat::inode_handle find_or_fail(fat::file_system& system, const std::string& path);

/// Returns the number of contiguous runs of a file. Errors: EIO for a damaged chain.
[[nodiscard]] result<std::uint64_t> runs_of(fat::file_system& system, fat::inode& file);

/// Returns the lookup strategy of option --strategy.
[[nodiscard]] fat::lookup_strategy strategy_of(const std::string& name);

}  // namespace sluice::cli

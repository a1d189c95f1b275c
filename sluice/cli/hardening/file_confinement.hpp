#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/cli/hardening/measure.hpp"

namespace sluice::cli {

/// What the server may do in one of the directory trees that it may access.
enum class tree_access : std::uint8_t { read, write };

/// The directory trees, and single files, that this process may access; the kernel (Landlock) denies all
/// others.
///
/// Needed: Linux 5.19 (Landlock ABI 2). The first version denies every rename between directories, which
/// clients do all the time. What is open already stays usable; sockets, stat(2) and inotify are not
/// restricted.
///
/// Thread safety: enforce() before the process has a second thread or a ring: the rules belong to the calling
/// thread, and those that it starts from then on. covers() from any thread.
class file_confinement {
public:
    /// Adds a file or a directory with all that is in it. What does not exist is left out, and stays
    /// inaccessible. `path` is resolved now: links to other trees need trees of their own.
    void allow(const std::string& path, tree_access how);

    /// From now on, denies all other files to this thread and to those it starts. Needs no_new_privs.
    [[nodiscard]] hardening_measure enforce() noexcept;

    /// Returns whether files at `path` can be used as `how`: always before enforce().
    [[nodiscard]] bool covers(const std::string& path, tree_access how) const;

private:
    // The rules of the kernel are about inodes: a new directory of the same name is not covered.
    struct tree {
        std::string path;  // canonical
        tree_access how;
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
    };
    [[nodiscard]] bool has_rule(const std::string& path, tree_access how) const noexcept;

    std::vector<tree> trees_;
    bool is_enforced_ = false;
};

}  // namespace sluice::cli

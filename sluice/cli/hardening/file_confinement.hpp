#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/cli/hardening/measure.hpp"
#include "sluice/io/call/handle.hpp"

namespace sluice::cli {

/// The access to one directory tree.
enum class tree_access : std::uint8_t { read, write };

/// A directory tree that is allowed. Landlock rules apply to inodes: a new directory of the same
/// name is not covered.
struct allowed_tree {
    std::string path;  // canonical
    tree_access how = tree_access::read;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
};

/// The directory trees, and single files, that this process may access; the kernel
/// (Landlock) denies all others.
///
/// Needed: Linux 5.19 (Landlock ABI 2). The first version denies every rename between directories,
/// which clients do all the time. Open descriptors stay usable. Sockets, stat(2) and inotify are
/// not restricted: the process can still connect to Unix sockets of other programs.
///
/// Thread safety: enforce() before the process has a second thread or a ring: the rules belong to
/// the calling thread, and those that it starts from then on. covers() from any thread.
class file_confinement {
public:
    /// Allows a file, or a directory recursively. A missing one is ignored, and stays inaccessible.
    /// `path` is resolved now: targets of links in other trees must be allowed separately.
    void allow(const std::string& path, tree_access how);
    /// Allows the directory or file that is open, whatever its name leads to later.
    void allow(const io::handle& opened, tree_access how);

    /// Denies all other files to this thread, and to threads that it starts from now on. Requires
    /// no_new_privs.
    [[nodiscard]] hardening_measure enforce() noexcept;

    /// Returns whether files at `path` can be accessed as `how`; always true before enforce().
    [[nodiscard]] bool covers(const std::string& path, tree_access how) const;

private:
    [[nodiscard]] bool has_rule(const std::string& path, tree_access how) const noexcept;

    std::vector<allowed_tree> trees_;
    bool is_enforced_ = false;
};

}  // namespace sluice::cli

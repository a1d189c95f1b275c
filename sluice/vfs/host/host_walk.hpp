#pragma once

#include <functional>
#include <string>

#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/path.hpp"

// Internal to the host volume: for tools that look at every file.

namespace sluice::vfs {

struct walked_entry {
    const io::directory_handle& directory;
    const io::directory_entry& entry;  // "." in the root for the root itself
    const std::string& path;           // the host's; may be longer than the kernel permits
    bool is_beyond_mount = false;      // the directory is on a mount beneath that of the root
};

/// The status fields of a walked entry that are always known.
inline constexpr io::stat_fields walked_fields =
    io::stat_fields::type | io::stat_fields::inode | io::stat_fields::links;

struct walk_errors {
    std::uint64_t directories = 0;  // that could not be listed, or not completely
    std::string first{};            // the path of one of them
};

struct walk_visitor {
    std::function<void(const walked_entry&)> file;   // a regular file or a directory
    std::function<void(const walked_entry&)> store;  // a name of a stream store
    /// A directory that could not be searched, or not completely.
    std::function<void(const std::string& path, const error& why)> failed;
    bool crosses_mounts = false;  // otherwise mounts are skipped, with all that is beneath them
};

/// Visits the root of a volume and each file and directory beneath it, except those in a stream
/// store. Symbolic links are not followed. A file that is renamed during the walk may be missed, or
/// visited twice; one that is mounted in several places is visited in each. What a mount hides is
/// not visited. The length of a path and the number of its components are not limited.
///
/// Allocates: the names of the directories that are still to be visited, in each directory of the
/// present path. Blocks: for the file system, also for one that is mounted and hangs.
void walk(const host_tree& tree, const walk_visitor& visitor);

/// The same, within the mount of the root, and without stores.
template <class Visit>
walk_errors walk(const host_tree& tree, Visit visit) {
    walk_errors errors;
    walk(tree, walk_visitor{.file = std::move(visit),
                            .store = [](const walked_entry&) {},
                            .failed =
                                [&](const std::string& path, const error&) {
                                    if (errors.directories++ == 0) errors.first = path;
                                }});
    return errors;
}

}  // namespace sluice::vfs

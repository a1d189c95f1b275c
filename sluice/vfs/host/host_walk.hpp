#pragma once

#include <string>
#include <vector>

#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/path.hpp"

// Internal to the host volume: for tools that look at every file.

namespace sluice::vfs {

struct walked_entry {
    const io::directory_handle& directory;
    const io::directory_entry& entry;  // its status has type and inode
    const std::string& path;           // the host's
};

struct walk_errors {
    std::uint64_t directories = 0;  // that could not be listed, or not completely
    std::string first{};            // the path of one of them
};

/// Calls `visit(walked_entry)` for each file and directory beneath the root of a volume, and on its
/// file system, except stream stores; for those, `skip(path of the directory)`. Symbolic links are
/// not followed. A file that is renamed during the walk may be missed, or visited twice. Allocates:
/// paths. Blocks: for the file system.
template <class Visit, class Skip>
walk_errors walk(const host_tree& tree, Visit visit, Skip skip) {
    walk_errors errors;
    const auto failed = [&](const std::string& path) {
        if (errors.directories++ == 0) errors.first = path;
    };
    const auto root = io::path_handle::open(tree.root(), ".", io::confinement::beneath_one_mount_no_symlinks);
    if (not root) {
        failed({});
        return errors;
    }
    std::vector<std::string> unseen{std::string()};
    while (not unseen.empty()) {
        const std::string here = std::move(unseen.back());
        unseen.pop_back();
        const auto listed = io::directory_handle::open(*root, here.empty() ? std::string(".") : here);
        if (not listed) {
            // Removed meanwhile, or on another file system.
            if (listed.error().code() != ENOENT and listed.error().code() != EXDEV) failed(here);
            continue;
        }
        const auto wanted = io::stat_fields::type | io::stat_fields::inode;
        const auto done = for_each_entry(*listed, wanted, [&](const io::directory_entry& each) {
            if (is_stream_store(each.name)) return skip(here);
            const std::string path = join_path(here, each.name);
            const bool is_directory = each.type == io::file_type::directory;
            if (is_directory or each.type == io::file_type::regular)
                visit(walked_entry{.directory = *listed, .entry = each, .path = path});
            if (is_directory) unseen.push_back(path);
        });
        if (not done) failed(here);
    }
    return errors;
}

}  // namespace sluice::vfs

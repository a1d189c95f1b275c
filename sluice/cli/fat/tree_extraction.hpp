#pragma once

#include <string>
#include <string_view>

#include "sluice/cli/fat/file_extraction.hpp"

namespace sluice::cli {

/// The parts of a copy of a tree. The image outlives the copy.
struct tree_extraction {
    mounted_image& from;
    std::string path;            // the directory of the volume, without the first slash
    std::string target;          // the directory of the host that receives the entries
    bool is_target_new = false;  // whether this program has just created it
    damaged_file policy = damaged_file::skip;
};

/// Copies a tree to the host. One thread lists it and creates the directories, and up to three
/// others copy files; the listing thread copies as well. Names that would lead out of the target
/// are reported.
///
/// Problems are reported in the order of the entries, whatever the threads do, and those of a
/// directory before those of its entries. If a problem ends the command, such as a full file
/// system, nothing is reported of the entries after that; some of them may have been copied. Leaves
/// then. Allocates: up to 1 MiB per thread, 32 MiB for entries that were listed and not copied yet,
/// and the problems of at most 1,024 files; and as for_each_below(). Blocks: for both file systems.
void copy_tree(const tree_extraction& what, progress_bar& progress, unreadable_objects& skipped);

/// Returns whether a path from a volume stays below a directory of the host: it has no empty
/// component, and none that is "." or "..".
[[nodiscard]] bool is_host_path(std::string_view path) noexcept;

}  // namespace sluice::cli

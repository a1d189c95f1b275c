#pragma once

#include <string>
#include <vector>

#include "sluice/cli/fat/file_extraction.hpp"

namespace sluice::cli {

/// The parts of a copy of a tree. The arguments outlive the copy.
struct tree_extraction {
    mounted_image& from;
    const std::vector<tree_entry>& entries;  // a directory comes before its entries
    std::size_t prefix_bytes = 0;            // the part of each path that the copy does not have
    std::string target;                      // the directory of the host that receives the entries
    damaged_file policy = damaged_file::skip;
};

/// Copies a tree to the host: first all directories, then the files, several at once on up to four threads.
/// Names that would lead out of the target are reported.
///
/// Problems are reported in the order of the entries, whatever the threads do. If a problem ends the command,
/// such as a full file system, nothing is reported of the entries after that; some of them may have been
/// copied. Leaves then. Allocates: up to 1 MiB per thread, and the problems of at most 1,024 files. Blocks:
/// for both file systems.
void copy_tree(const tree_extraction& what, progress_bar& progress, unreadable_objects& skipped);

/// Returns whether a path from a volume is one beneath a directory of the host: it has no empty component,
/// and none that is "." or "..".
[[nodiscard]] bool is_host_path(std::string_view path) noexcept;

}  // namespace sluice::cli

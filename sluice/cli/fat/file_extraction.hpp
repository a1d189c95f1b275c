#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sluice/cli/fat/progress.hpp"
#include "sluice/cli/fat/tree.hpp"

namespace sluice::cli {

/// The treatment of a file of which only a part can be read.
enum class damaged_file : bool {
    skip,     ///< it is reported, and there is no copy
    salvage,  ///< the copy has the readable bytes, and zeros elsewhere; the missing ranges are reported
};

/// Copies files from a volume to the host. Data goes from the image to the target without passing through
/// this process where the kernel can do that.
///
/// Invariant: without `salvage` no target remains that lacks bytes of its file.
/// Thread safety: none. The arguments of the constructor outlive it.
class file_extraction {
public:
    file_extraction(mounted_image& from, progress_bar& progress, unreadable_objects& skipped,
                    damaged_file policy)
        : from_(from), progress_(progress), skipped_(skipped), policy_(policy) {}

    /// Copies one file to `to`, with its time of modification. Problems of this file, or of its target, are
    /// reported; a full or read-only file system of the host ends the command.
    /// Allocates: up to 1 MiB. Blocks: for both file systems.
    void copy(const tree_entry& file, const std::filesystem::path& to);

private:
    struct copy_in_progress;

    void copy_extents(copy_in_progress& copy);
    void copy_piece(copy_in_progress& copy, const fat::file_system::piece& piece);
    void copy_through_memory(copy_in_progress& copy, const fat::file_system::piece& piece);
    void copy_by_sectors(copy_in_progress& copy, byte_extent in_file, std::uint64_t place);
    void report_missing(const copy_in_progress& copy);
    void finish(copy_in_progress& copy);

    mounted_image& from_;
    progress_bar& progress_;
    unreadable_objects& skipped_;
    damaged_file policy_;
    std::vector<std::byte> room_;
};

}  // namespace sluice::cli

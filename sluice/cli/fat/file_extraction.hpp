#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/fat/data_ranges.hpp"
#include "sluice/cli/fat/image/new_file.hpp"
#include "sluice/cli/fat/progress.hpp"
#include "sluice/cli/fat/tree.hpp"

namespace sluice::cli {

/// The treatment of a file that is only partly readable.
enum class damaged_file : bool {
    skip,     ///< it is reported, and there is no copy
    salvage,  ///< the copy has the readable bytes, and zeros elsewhere; the
              ///< missing ranges are reported
};

/// The target of a copy.
struct copy_target {
    const io::path_handle& directory;
    new_file::form form;               // of new files there
    std::string name;                  // in the directory
    std::string path;                  // for messages
    bool is_in_new_directory = false;  // one that this program has just created
};

/// Copies files from a volume to the host. Small files pass through memory. The data of
/// large ones goes from the image to the target without passing through this process where
/// the kernel can do that.
///
/// Invariant: without `salvage` no target remains that lacks bytes of its file. A crash may leave
/// one for each thread, of a small file in a directory that this program has created. Thread
/// safety: one thread per object; several objects may copy from one image at once. The arguments of
/// the constructor outlive it.
class file_extraction {
public:
    file_extraction(mounted_image& from, progress_bar& progress, damaged_file policy)
        : from_(from), progress_(progress), policy_(policy) {}

    /// Copies one file, with its time of modification. Returns the problems of this
    /// file, or of its target.
    /// Allocates: up to 1 MiB. Blocks: for both file systems.
    [[nodiscard]] std::vector<object_problem> copy(const tree_entry& file, const copy_target& to);

private:
    struct copy_in_progress;

    [[nodiscard]] result<void> find_pieces(const tree_entry& file, fat::inode& source);
    [[nodiscard]] bool read_small(const tree_entry& file);
    void copy_content(copy_in_progress& copy, new_file::form form);
    [[nodiscard]] static result<void> make_target(copy_in_progress& copy, new_file::form form, bool is_read);
    void copy_extents(copy_in_progress& copy);
    void copy_piece(copy_in_progress& copy, const fat::file_system::piece& piece);
    [[nodiscard]] bool copy_in_kernel(copy_in_progress& copy, const fat::file_system::piece& piece);
    void copy_through_memory(copy_in_progress& copy, const fat::file_system::piece& piece);
    void copy_by_sectors(copy_in_progress& copy, byte_extent in_file, std::uint64_t place);

    mounted_image& from_;
    progress_bar& progress_;
    damaged_file policy_;
    bool lacks_nameless_files_ = false;  // the kernel or the file system of a target
    std::vector<std::byte> room_;
    std::vector<fat::file_system::piece> pieces_;  // pieces of the present file, if there are few
    bool has_all_pieces_ = false;
    data_ranges image_data_;
};

}  // namespace sluice::cli

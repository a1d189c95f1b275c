#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "sluice/io/path/directory_handle.hpp"
#include "sluice/vfs/host/recycle_bin.hpp"

// Internal to the host volume: the removal of old files from the recycle bin.

namespace sluice::vfs {

class host_tree;

/// One pass over the bin, in steps of bounded work, and a second one if the files are too large
/// together. A file is as old as its change time, which the rename into the bin sets. The first
/// pass removes the files that are too old, and adds up the sizes of the others by age; the second
/// one removes the oldest of them. Directories without files are removed.
///
/// Clients restore files and whole directories while a pass is in them, and the owner of a
/// directory may exchange its names. So paths are never resolved again: each directory is opened in
/// the one above it, without following links, within the mount. Beneath the directory of an owner,
/// only directories of the same owner are entered: others may have been moved there, with files
/// that this owner could not remove. A file is first renamed into a directory of the server in the
/// bin. It is removed there if it is the one that was listed, and if its directory is
/// still in the bin; otherwise it returns.
///
/// Thread safety: one thread at a time. Lifetime: the tree outlives it. Memory: bounded by
/// limits::recycled_depth_max and the size of a batch.
class recycle_sweep {
public:
    recycle_sweep(const host_tree& tree, std::chrono::system_clock::time_point now);

    /// Does the next part; returns whether there is more. Blocks: for the file system, for some 100
    /// files.
    [[nodiscard]] bool step();

private:
    struct level {
        io::directory_handle open;
        std::string name;
        std::uint32_t owner = 0;
        std::uint64_t position = 0;
        std::vector<std::string> unseen{};  // directories of the present batch
    };
    // Sixteen for each power of two of the seconds since the removal.
    static constexpr std::size_t ages_max = 16 * 64;

    [[nodiscard]] bool begin_pass();
    void descend();
    void leave();
    void visit(level& here);
    void visit_file(const level& here, const io::directory_entry& entry);
    [[nodiscard]] bool remove_file(const level& here, const io::directory_entry& entry) const;
    [[nodiscard]] bool remove_listed(const level& here, const io::directory_entry& entry) const;
    void put_back(const level& here, std::string_view name, const io::path_handle& removed,
                  const char* moved) const;
    [[nodiscard]] bool choose_age();
    [[nodiscard]] std::chrono::seconds age_of(const io::file_status& status) const noexcept;
    [[nodiscard]] static std::size_t index_of(std::chrono::seconds age) noexcept;

    const host_tree& tree_;
    const std::chrono::system_clock::time_point now_;
    io::path_handle bin_;
    std::vector<level> levels_;
    std::vector<std::uint64_t> bytes_by_age_;  // in the first pass
    bool is_begun_ = false;
    bool is_second_ = false;
    std::size_t removed_age_ = ages_max;  // by the second pass, which removes all that are older
    std::uint64_t removed_bytes_ = 0;     // to be removed from those of this age
};

}  // namespace sluice::vfs

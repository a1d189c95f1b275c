#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/io/path/directory_handle.hpp"
#include "sluice/vfs/host/recycle_bin.hpp"

// Internal to the host volume: the removal of old files from the recycle bin.

namespace sluice::vfs {

class host_tree;

/// One pass over the bin, in steps of bounded work, and further ones if the files are too large
/// together. A file is as old as its change time, which the rename into the bin sets. The first
/// pass removes the files that are too old, and adds up the sizes of the others by owner; the
/// further ones remove the oldest files of the owners of most bytes. Without the present time, no
/// file is too old. Directories without files are
/// removed. Files and directories that are not the owner's or the server's stay.
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
/// limits::recycled_depth_max, limits::swept_owners_max and the size of a batch.
class recycle_sweep {
public:
    recycle_sweep(const host_tree& tree, std::optional<std::chrono::system_clock::time_point> now);

    /// Does the next part; returns whether there is more. Blocks: for the file system, for some 100
    /// files.
    [[nodiscard]] bool step();
    /// Returns the number of names that the steps so far have seen.
    [[nodiscard]] std::uint64_t entries() const noexcept { return entries_; }

private:
    enum class pass : std::uint8_t { of_all, sums, oldest };
    struct level {
        io::directory_handle open;
        std::string name;
        std::uint32_t owner = 0;
        std::optional<std::uint32_t> user{};  // whose files these are; none: of several users
        std::uint64_t position = 0;
        bool is_listed = false;
        std::vector<std::string> unseen{};  // directories of the present batch
    };
    struct owner_bytes {
        std::uint32_t owner = 0;
        std::uint64_t bytes = 0;
    };
    // Sixteen for each power of two of the seconds since the removal.
    static constexpr std::size_t ages_max = 16 * 64;

    [[nodiscard]] bool begin_pass();
    [[nodiscard]] bool begin_next_pass();
    void choose_owners();
    [[nodiscard]] bool may_enter(const level& above, std::string_view name,
                                 std::uint32_t owner) const noexcept;
    [[nodiscard]] bool is_swept(const level& here, const io::file_status& file) const noexcept;
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
    const bool knows_time_;
    const std::chrono::system_clock::time_point now_;
    io::path_handle bin_;
    std::vector<level> levels_;
    std::unordered_map<std::uint32_t, std::uint64_t> bytes_by_owner_;
    std::vector<owner_bytes> large_;           // how many bytes stay; the last one is next
    std::vector<std::uint64_t> bytes_by_age_;  // for one owner
    pass pass_ = pass::of_all;
    bool is_begun_ = false;
    std::uint64_t entries_ = 0;
    std::size_t removed_age_ = ages_max;  // all files that are older go
    std::uint64_t removed_bytes_ = 0;     // to be removed from those of this age
};

}  // namespace sluice::vfs

#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/vfs/host/recycle_rules.hpp"

// Internal to the host volume: the recycle bin.
//
// The bin is a directory in the root. It has a directory for each owner of files, named by the
// number of the user, which only that user and the server can enter: a file in the bin has no more
// readers than it had before. In it is the tree of the directories that the files were in.

namespace sluice::vfs {

class host_tree;

/// Thread safety: any thread; the bin has no state but the files. Lifetime: the tree outlives it.
class recycle_bin {
public:
    explicit recycle_bin(const host_tree& tree) noexcept : tree_(tree) {}

    /// Returns whether a host's path is that of the bin, or beneath it.
    [[nodiscard]] bool contains(std::string_view host_path) const;

    /// Moves a file, whose present path is `where`, to the bin, with its streams, attributes and
    /// ACL. Returns false if it is not for the bin: the caller then removes it. That is a directory
    /// or a link, a file in the bin, one of an excluded name, and one that is larger than the bin.
    /// Errors: EXDEV if it is on another mount than the root; EACCES, EPERM if the user of the call
    /// may not remove the name, or if others may write to the bin; ENOENT; ENOSPC, EDQUOT; those of
    /// rename(2). The file then keeps its name. Blocks: for the file system.
    [[nodiscard]] result<bool> take(const io::handle& file, std::string_view where) const;

    /// Opens the bin, which need not exist. Errors: ENOENT; EACCES if it is not the server's, or
    /// others may write to it; ELOOP, ENOTDIR if it is a link or a file.
    [[nodiscard]] result<io::path_handle> open() const;

    /// Returns a name for the n-th version of a file, from 1: "name (2).txt". Not longer than a
    /// name can be.
    [[nodiscard]] static std::string name_of_version(std::string_view name, std::uint64_t version);

private:
    [[nodiscard]] result<io::path_handle> open_place(const io::file_status& file,
                                                     std::string_view parent) const;
    [[nodiscard]] result<void> move(const io::handle& file, const io::path_handle& place,
                                    std::string_view name) const;
    [[nodiscard]] result<void> replace(const io::handle& file, const io::path_handle& place,
                                       const std::string& name) const;

    const host_tree& tree_;
};

}  // namespace sluice::vfs

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/result.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/vfs/host/recycle_directory.hpp"
#include "sluice/vfs/host/recycle_rules.hpp"

// Internal to the host volume: the recycle bin.
//
// The bin is a directory in the root. It has a directory for each owner of files, named by the
// number of the user, which only that user and the server can enter: a file in the bin has no more
// readers than it had before, but for its owner. In it is the tree of the directories that the
// files were in. See recycle_directory.hpp for how these are opened.

namespace sluice::vfs {

class host_tree;

/// Thread safety: any thread; the bin has no state but the files. Lifetime: the tree outlives it.
class recycle_bin {
public:
    explicit recycle_bin(const host_tree& tree) noexcept : tree_(tree) {}

    /// A name in the bin.
    struct kept_name {
        io::path_handle directory;
        std::string name;
    };

    /// Returns whether a host's path is that of the bin, or beneath it.
    [[nodiscard]] bool contains(std::string_view host_path) const;
    /// Returns whether an open directory is the bin, or beneath it, now.
    [[nodiscard]] bool has_directory(const io::handle& directory) const;

    /// Returns whether a file that was found as `known` is in the bin now, with the path `present`,
    /// or has no name that the kernel knows: then `known` is that of another file, or of none.
    /// `tree` is that of the bin. Needs no rights. Blocks: for the file system.
    [[nodiscard]] bool has_taken(host_tree& tree, const io::handle& file, std::string_view known,
                                 const std::optional<std::string>& present) const;

    /// Moves a file, whose present path is `where`, to the bin, with its streams, attributes and
    /// ACL. Returns false if it is not for the bin: the caller then removes it. That is a directory
    /// or a link, a file in the bin, one of an excluded name, and one that is larger than the bin.
    /// Errors: EAGAIN if the file has another path now; EXDEV if it is on another mount than the
    /// root; EACCES, EPERM if the user of the call may not remove the name, or if others may
    /// write to the bin; ENOENT; ENOSPC, EDQUOT; those of rename(2). The file then keeps its name.
    /// Blocks: for the file system.
    [[nodiscard]] result<bool> take(const io::handle& file, std::string_view where) const;

    /// Gives a file, whose path is `where`, a name in the bin as well, so that it is there if
    /// another file replaces it at once. Returns std::nullopt if it is not for the bin; and an
    /// empty name if the file system has no links: then it has moved there. Errors: as take().
    [[nodiscard]] result<std::optional<kept_name>> keep(const io::handle& file, std::string_view where) const;
    /// Takes back what keep() has returned, if it is still the name of the file.
    void forget(const io::handle& file, const kept_name& kept) const noexcept;

    /// Opens the bin, which need not exist. Errors: ENOENT; EACCES if it is not the server's, or
    /// others keep the right to write to it; EEXIST if it has files that are not in the directory
    /// of an owner; ELOOP, ENOTDIR if it is a link or a file.
    [[nodiscard]] result<io::path_handle> open() const;
    /// Creates the bin before another account can. A failure is for the log.
    void prepare() const;

    /// Returns a name for the n-th version of a file, from 1: "name (2).txt". Not longer than a
    /// name can be.
    [[nodiscard]] static std::string name_of_version(std::string_view name, std::uint64_t version);

private:
    struct source;
    // A directory of the bin for a file.
    struct place {
        io::path_handle directory;
        bool is_complete = false;  // it has the path of the file's directory
    };

    [[nodiscard]] result<std::optional<source>> examine(const io::handle& file, std::string_view where) const;
    [[nodiscard]] recycle_owners of_server() const noexcept;
    [[nodiscard]] result<void> examine_bin(const io::path_handle& opened) const;
    [[nodiscard]] result<io::path_handle> open_or_create() const;
    [[nodiscard]] result<recycle_rights> rights_of(std::string_view path) const;
    [[nodiscard]] result<place> open_place(const source& from) const;
    void check_age(const source& from) const;
    template <class Give>
    [[nodiscard]] result<std::string> give_name(const source& from, const place& in, Give give) const;
    template <class Give>
    [[nodiscard]] result<kept_name> give_name_somewhere(const source& from, Give give) const;
    [[nodiscard]] result<void> replace(const io::path_handle& to, const std::string& name,
                                       const io::path_handle& base, const char* replacing) const;
    [[nodiscard]] result<void> move(const source& from, const io::path_handle& to, const std::string& name,
                                    bool replaces) const;
    [[nodiscard]] result<void> link(const source& from, const io::path_handle& to, const std::string& name,
                                    bool replaces) const;
    [[nodiscard]] error noted(const error& why, std::string_view where) const;

    const host_tree& tree_;
};

}  // namespace sluice::vfs

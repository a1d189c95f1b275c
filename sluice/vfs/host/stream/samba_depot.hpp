#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/file_status.hpp"

// Internal to the import of Samba's streams.

namespace sluice::vfs {

/// The place of the depot in a share, unless Samba is configured otherwise.
inline constexpr std::string_view usual_samba_depot = ".streams";

/// The directory in which Samba's module streams_depot stores streams: two levels of directories,
/// by a hash, and in them one directory for each file.
///
/// Samba creates the inner directories as the connected users, who can rename them. So their
/// content is not trusted: the user of a stream compares its owner with that of the file.
///
/// Thread safety: one thread. Blocks: for the file system. Allocates: names.
class samba_depot {
public:
    struct directory {
        std::uint64_t device = 0;  // where the file was when Samba created the directory
        std::string path{};        // in the depot
        bool is_used = false;      // its file was found,
        bool is_unmarked = false;  // or found without Samba's mark
    };
    using directories = std::multimap<std::uint64_t, directory>;  // by inode
    using reporter = std::function<void(const std::string&)>;

    /// Opens the depot: the one at `path`; if that is empty, `.streams` in the root of the volume,
    /// if there is one, which is not a link. Returns why it cannot be used: others must not be able
    /// to replace its directories.
    [[nodiscard]] std::optional<std::string> open(const io::path_handle& root, const std::string& path);
    [[nodiscard]] bool is_open() const noexcept { return depot_.is_valid(); }

    /// Finds the directories of files; once, after open(). `report` gets a line for each directory
    /// that cannot be listed. Returns their number.
    [[nodiscard]] std::uint64_t list(const reporter& report);
    [[nodiscard]] directories& all() noexcept { return directories_; }
    /// Returns two paths for an inode number that files of two file systems have; std::nullopt if
    /// there is none.
    [[nodiscard]] std::optional<std::pair<std::string, std::string>> ambiguous() const;

    /// Opens the directory of a file. Errors: those of io::directory_handle::open.
    [[nodiscard]] result<io::directory_handle> open_directory(const directory& which) const;
    /// Returns the names of its files that are streams. Errors: EIO.
    [[nodiscard]] static result<std::vector<std::string>> streams_in(const io::directory_handle& directory);
    struct source {
        io::file_handle file;
        io::file_status status;  // type, owner, size
    };
    /// Opens a stream, without waiting if it is something else. Errors: EINVAL for other
    /// types of files; those of open(2).
    [[nodiscard]] static result<source> open_source(const io::directory_handle& directory,
                                                    const std::string& name);
    /// Removes the directory of a file, and those above it, if they are empty. Returns whether it
    /// removed that of the file.
    bool remove_empty(const directory& which) const noexcept;

private:
    [[nodiscard]] std::vector<std::string> names_in(const std::string& path, const reporter& report);

    io::path_handle depot_;
    directories directories_;
    std::uint64_t unreadable_ = 0;
};

}  // namespace sluice::vfs

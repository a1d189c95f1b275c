#pragma once

#include <string>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::cli {

/// A file of the host that gets its name when it is complete.
///
/// Invariants:
///   1. A file that had the name before stays complete under it until the new one replaces it.
///      create_under() creates files without such a predecessor.
///   2. Only a regular file or a symbolic link is replaced: replacing a device or a pipe would
///      remove it for all programs.
///   3. No other user can substitute another file for the incomplete one beforehand: it has no
///      name, or one that did not exist, and that is unpredictable if other programs may know the
///      directory.
/// Thread safety: one thread per object. The directory outlives it.
class new_file {
public:
    enum class form : bool {
        nameless,  ///< the kernel removes it if it is never named, also after a crash
        named,     ///< for file systems without files that have no name
    };

    /// Returns the form for files of a directory: nameless on the usual disk and memory file
    /// systems. Other file systems may report failed writes only when a file is closed, and a
    /// nameless file is lost then. Blocks: for the file system.
    [[nodiscard]] static form form_for(const io::path_handle& directory) noexcept;

    /// Creates an empty file for `directory`. Errors: as io::file_handle::open; EOPNOTSUPP if the
    /// file system has no nameless files. Allocates: nothing. Blocks: for the file system.
    [[nodiscard]] static result<new_file> create(const io::path_handle& directory, form how) noexcept;

    /// Creates an empty file that has its name from the start, for a directory that this program
    /// has just created: that takes fewer system calls, and so less time of the directory lock.
    /// Other programs see the incomplete file, and a crash leaves it. Errors: EEXIST if `name`
    /// exists; those of io::file_handle::open. Allocates: the name. Blocks: for the file system.
    [[nodiscard]] static result<new_file> create_under(const io::path_handle& directory,
                                                       const std::string& name) noexcept;

    new_file(new_file&& other) noexcept;
    new_file& operator=(new_file&&) = delete;
    /// Removes the file unless it was named.
    ~new_file();

    [[nodiscard]] io::file_handle& file() noexcept { return file_; }

    /// Names the file, and closes it. `name`: the same as before for a file that has its name.
    /// Errors: EISDIR if `name` is a directory, EEXIST if it is neither a file nor a symbolic link;
    /// EOPNOTSUPP if the file system cannot name a nameless file; those of rename(2) and close(2).
    /// Blocks: for the file system.
    [[nodiscard]] result<void> become(const std::string& name) noexcept;

private:
    new_file(const io::path_handle& directory, io::file_handle file, std::string present) noexcept
        : directory_(&directory), file_(std::move(file)), present_(std::move(present)) {}
    [[nodiscard]] result<void> name_it(const std::string& name) noexcept;

    const io::path_handle* directory_;
    io::file_handle file_;
    std::string present_;  // the name of the incomplete file; empty: nameless, or named by become()
};

/// Returns 0 if a new file may replace the file `name` in `directory`, or if there is none;
/// otherwise EISDIR or EEXIST, as new_file::become(). Blocks: for the file system.
[[nodiscard]] int why_not_replaced(const io::path_handle& directory, const std::string& name) noexcept;

}  // namespace sluice::cli

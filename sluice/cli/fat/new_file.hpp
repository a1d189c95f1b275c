#pragma once

#include <string>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::cli {

/// A file of the host that gets its name when it is complete.
///
/// Invariants:
///   1. A file that had the name before stays complete under it until the new one replaces it. What
///   create_under() creates had no such file before.
///   2. Only a regular file or a symbolic link is replaced: a device or a pipe would be gone for all
///      programs.
///   3. No other user can put another file in the place of the incomplete one beforehand: it has no name, or
///      one that did not exist, and that is unpredictable if other programs may know the directory.
/// Thread safety: one thread per object. The directory outlives it.
class new_file {
public:
    enum class form : bool {
        nameless,  ///< the kernel removes it if it is never named, also after a crash
        named,     ///< for file systems without files that have no name
    };

    /// Returns the form for files of a directory: nameless on the usual file systems of disks and memory.
    /// Others may report only when a file is closed that something was not written, and a nameless file is
    /// gone then. Blocks: for the file system.
    [[nodiscard]] static form form_for(const io::path_handle& directory) noexcept;

    /// Creates an empty file for `directory`. Errors: as io::file_handle::open; EOPNOTSUPP if the file system
    /// has no nameless files. Allocates: nothing. Blocks: for the file system.
    [[nodiscard]] static result<new_file> create(const io::path_handle& directory, form how) noexcept;

    /// Creates an empty file that has its name from the start, for a directory that this program has just
    /// created: that takes fewer system calls, and so less time of the lock of the directory. Other programs
    /// see the file while it is incomplete, and a crash leaves it so. Errors: EEXIST if `name` exists; as
    /// io::file_handle::open. Allocates: the name. Blocks: for the file system.
    [[nodiscard]] static result<new_file> create_under(const io::path_handle& directory,
                                                       const std::string& name) noexcept;

    new_file(new_file&& other) noexcept;
    new_file& operator=(new_file&&) = delete;
    /// Removes the file unless it was named.
    ~new_file();

    [[nodiscard]] io::file_handle& file() noexcept { return file_; }

    /// Names the file, and closes it. `name`: the same as before for a file that has
    /// its name. Errors: EISDIR if `name`
    /// is a directory, EEXIST if it is neither a file nor a symbolic link; EOPNOTSUPP if the file system
    /// cannot name a nameless file; as rename(2) and close(2). Blocks: for the file system.
    [[nodiscard]] result<void> become(const std::string& name) noexcept;

private:
    new_file(const io::path_handle& directory, io::file_handle file, std::string present) noexcept
        : directory_(&directory), file_(std::move(file)), present_(std::move(present)) {}
    [[nodiscard]] result<void> name_it(const std::string& name) noexcept;

    const io::path_handle* directory_;
    io::file_handle file_;
    std::string present_;  // the name of the incomplete file; empty: nameless, or named by become()
};

/// Returns 0 if a new file may replace what `name` is in `directory`, or if nothing is there; otherwise
/// EISDIR or EEXIST, as new_file::become(). Blocks: for the file system.
[[nodiscard]] int why_not_replaced(const io::path_handle& directory, const std::string& name) noexcept;

}  // namespace sluice::cli

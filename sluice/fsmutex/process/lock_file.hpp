#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>

#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/file/file_handle.hpp"

// How a lock file is created, and which existing files are used.
//
// The default follows the directory of the file, whatever the umask:
// - the owner of the file may read and write it (0600);
// - if the group may write the directory, the file's group may read and write the file (0660), and
//   that is the group of the directory; a creator that is not a member of it keeps 0600;
// - if all may write the directory, and it is not sticky, all may read and write the file (0666);
// - in a sticky directory that all may write, such as /tmp, only the owner may (0600).
//
// An existing file in a directory that others may write can be planted. There symbolic links are
// not followed (ELOOP) and the file must have one link (EMLINK). If that directory is sticky, the
// file must belong to the effective user, to root, or to the owner of the directory (EPERM), unless
// the caller states by mode or group that it shares the file with other users.

namespace sluice::fsmutex {

/// Permissions for a lock file that is created. They do not change an existing file.
struct file_access {
    std::optional<unsigned> mode;  ///< permission bits, at most 0777;
                                   ///< std::nullopt: as the directory
    std::optional<gid_t> group;    ///< std::nullopt: as the directory; the file is at
                                   ///< least writable for it

    /// Returns whether the caller states that other users also use the file.
    [[nodiscard]] bool is_shared() const noexcept {
        return group.has_value() or (mode.has_value() and (*mode & 022U) != 0);
    }
};

/// Bounds the wait for another user that has just created a lock file and is about to give others
/// access. Until then, opening it fails with EACCES. Thread safety: one thread.
class refused_opens {
public:
    /// Returns whether to open again. Sleeps first. Blocks: about 30 ms, all its calls together.
    [[nodiscard]] bool pause(const dependencies& from) noexcept;

private:
    std::uint64_t rounds_ = 0;
    unsigned count_ = 0;
};

/// The permissions of the directory of a lock file, and the rules that follow from them.
class lock_directory {
public:
    /// Returns the directory of `path`. Errors: those of stat(2). Allocates: nothing.
    [[nodiscard]] static result<lock_directory> of(const io::path_handle& base, io::path_view path) noexcept;

    /// Returns whether another user may have planted an existing file.
    [[nodiscard]] bool is_shared() const noexcept { return (mode_ & 022U) != 0; }
    /// Returns 0 if a file or directory found there may be used, otherwise EMLINK or EPERM.
    [[nodiscard]] int problem_with(const struct stat& found, const file_access& access) const noexcept;
    /// Gives a newly created file or directory its permissions and its group. Errors: EPERM if the
    /// process is not a member of the group of `access`.
    [[nodiscard]] result<void> apply_to(int created, const file_access& access,
                                        bool is_directory) const noexcept;

private:
    explicit lock_directory(const struct stat& of) noexcept;

    unsigned mode_;
    uid_t owner_;
    gid_t group_;
};

/// Opens the lock file `path` for reading and writing, or creates it. Errors: as file_handle::open;
/// ENXIO if it is not a regular file; ELOOP, EMLINK, EPERM as above; EPERM if the group is refused;
/// ESTALE if it repeatedly appears and vanishes. Allocates: nothing. Blocks: for the file system,
/// and about 30 ms before EACCES, because another user may be creating it.
[[nodiscard]] result<io::file_handle> open_lock_file(const io::path_handle& base, io::path_view path,
                                                     const dependencies& from,
                                                     const file_access& access) noexcept;
/// Creates the lock file. Errors: as above; EEXIST.
[[nodiscard]] result<io::file_handle> create_lock_file(const io::path_handle& base, io::path_view path,
                                                       const file_access& access) noexcept;

}  // namespace sluice::fsmutex

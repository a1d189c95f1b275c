#pragma once

#include <optional>
#include <string>

#include "sluice/cli/smb/partial_names.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/file_status.hpp"

namespace sluice::cli {

/// A local file that is being received, under a name of its own until it is complete.
///
/// Invariants:
/// 1. Only a file that this class created is ever written to, renamed or removed: a regular
///    file of this account with one link, under a name that `partial_names` computed, and
///    locked by this object.
/// 2. The target's name refers to the old file or to the complete new one, also after a crash.
/// Thread safety: one thread.
class partial_file {
public:
    /// The location of the file, and its target.
    struct place {
        const io::path_handle& directory;  ///< outlives the partial file
        std::string name;                  ///< name of the partial file
        std::string target;                ///< name of the complete file
    };

    /// Creates the partial file; with `resumes`, opens the one that an earlier run left if its
    /// record is `version`. A leftover of another version, and without `resumes` any leftover, is
    /// removed. Without a `version`, or on a file system without locks or attributes, the file
    /// cannot be resumed later.
    ///
    /// Errors: EBUSY if another process of this account copies to the same target; EEXIST if a file
    /// has the name that is not a regular file of this account; those of file_handle::open. Blocks:
    /// for the file system.
    [[nodiscard]] static result<partial_file> open(place where,
                                                   const std::optional<partial_names::record>& version,
                                                   bool resumes) noexcept;
    partial_file(partial_file&&) noexcept = default;
    partial_file& operator=(partial_file&&) = delete;
    /// Removes the file, unless finish() renamed it or keep() was called.
    ~partial_file();

    [[nodiscard]] io::file_handle& file() noexcept { return file_; }

    /// Returns how many bytes an earlier run left; 0 for a new file.
    [[nodiscard]] std::uint64_t bytes_before() const noexcept { return bytes_before_; }
    /// Discards the data of an earlier run.
    [[nodiscard]] result<void> start_over() noexcept;

    /// Keeps the file for a later run with `resumes`. No effect if that could not find or verify
    /// it.
    void keep() noexcept { is_kept_ = can_be_resumed_; }

    /// Returns the status of the existing target, without following a link.
    [[nodiscard]] result<io::file_status> target_status() const noexcept {
        return io::status_at(where_.directory, where_.target);
    }
    /// Gives the file, which the caller has made durable, the name of the target, replacing an
    /// existing file, and its permissions. Until then only this account can read it. Errors: those
    /// of io::set_times and io::relink.
    [[nodiscard]] result<void> finish(io::file_status::time_point modified) noexcept;

private:
    partial_file(place where, io::file_handle file) noexcept
        : where_(std::move(where)), file_(std::move(file)) {}

    [[nodiscard]] static result<partial_file> create(
        const place& where, const std::optional<partial_names::record>& version) noexcept;
    [[nodiscard]] static result<std::optional<partial_file>> open_leftover(const place& where) noexcept;
    [[nodiscard]] result<void> lock() noexcept;
    [[nodiscard]] bool has_name() const noexcept;
    void remove() noexcept;

    place where_;
    io::file_handle file_;
    io::extent_guard lock_;  // must be destroyed before the handle
    std::uint64_t bytes_before_ = 0;
    bool can_be_resumed_ = false;
    bool is_kept_ = false;
};

}  // namespace sluice::cli

#pragma once

#include "sluice/io/path/path_handle.hpp"
#include "sluice/vfs/host/host_volume_options.hpp"
#include "sluice/vfs/snapshot/snapshots.hpp"

namespace sluice::io {
class io_multiplexer;
}

namespace sluice::vfs {

/// Snapshots of a directory of the host that are themselves directories in one directory, and
/// whose names contain the time: those of btrfs, of ZFS (`.zfs/snapshot`), mounted ones of LVM, and
/// plain copies.
///
/// The directory that contains them is opened once (open_directory_of_snapshots), and remains the
/// same if its name changes. No symbolic link is followed on the way from it to the directory that
/// a snapshot shows, so a link in it leads nowhere. Within a snapshot, links stay inside, and other
/// file systems that are mounted there are not entered.
///
/// All snapshots have one domain, which is not that of the live files, and whose calls are never
/// inline: each may be a file system of its own (ZFS, LVM) that hangs or that the kernel mounts
/// when it is opened, their lists take long, and lookups in them have no index of names.
///
/// Immutable, except the open directory's position, of which each call has its own. Thread safety:
/// any thread.
class host_snapshots final : public snapshots {
public:
    /// Opens the directory of the pattern, which is relative to `root` unless it is absolute.
    /// `options` are those of the volume. Without `domains`, calls are always inline. `multiplexer`
    /// outlives the object. Errors: as open_directory_of_snapshots; EAGAIN if a worker of the
    /// domain cannot be started. Allocates: yes. Blocks: for the file system.
    [[nodiscard]] static result<std::shared_ptr<host_snapshots>> open(io::io_multiplexer& multiplexer,
                                                                      const std::string& root,
                                                                      snapshot_pattern pattern,
                                                                      const host_volume_options& options);

    [[nodiscard]] fs_domain& domain() noexcept override { return *domain_; }
    [[nodiscard]] result<std::vector<snapshot_time>> list() noexcept override;
    [[nodiscard]] result<std::shared_ptr<volume>> open(snapshot_time when) noexcept override;

private:
    host_snapshots(io::io_multiplexer& multiplexer, io::path_handle directory, snapshot_pattern pattern,
                   const host_volume_options& options, std::shared_ptr<fs_domain> domain)
        : multiplexer_(multiplexer),
          directory_(std::move(directory)),
          pattern_(std::move(pattern)),
          options_(options),
          domain_(std::move(domain)) {}

    // `has_unknown` becomes true if the file system has not said whether a name is a directory.
    [[nodiscard]] result<std::vector<snapshot_time>> read_times(bool& has_unknown) const;
    [[nodiscard]] result<io::path_handle> open_root(snapshot_time when) const;

    io::io_multiplexer& multiplexer_;
    const io::path_handle directory_;  // confined, without symbolic links
    const snapshot_pattern pattern_;
    const host_volume_options options_;
    const std::shared_ptr<fs_domain> domain_;  // never null
};

/// Returns the path of the directory that contains the snapshots of the directory `root`. It is a
/// text for people: only open_directory_of_snapshots() opens the directory.
[[nodiscard]] std::string directory_of_snapshots(const std::string& root, const snapshot_pattern& pattern);

/// Opens the directory that contains the snapshots of the directory `root`. Links in `root` itself
/// are followed. Those in the pattern's directory are not: clients may rename and create links
/// where it is, and one of another share would lead to the snapshots of that share. The handle is
/// confined, without symbolic links. Errors: as io::path_handle::open; ELOOP if there is a link.
/// Allocates: the path. Blocks: for the file system.
[[nodiscard]] result<io::path_handle> open_directory_of_snapshots(const std::string& root,
                                                                  const snapshot_pattern& pattern);

/// Returns the remedy for an error of open_directory_of_snapshots, to follow its text; or an empty
/// text.
[[nodiscard]] std::string_view remedy_for_snapshots(const error& why) noexcept;

}  // namespace sluice::vfs

#pragma once

#include <expected>
#include <string>

#include "sluice/vfs/snapshot/snapshot_pattern.hpp"

// Snapshots of file systems that have them: btrfs and ZFS.

namespace sluice::vfs {

/// Creates a read-only snapshot of the directory `root`, as the pattern names it, and returns its
/// path. `when` is rounded to what the pattern can express. On btrfs, the directory is the root of
/// a subvolume, or leads to it by the pattern's subpath; on ZFS, the snapshots are in
/// `.zfs/snapshot`. Errors: a text that names the path, the rule, and the remedy. Allocates: paths.
/// Blocks: for the file system.
[[nodiscard]] std::expected<std::string, std::string> create_snapshot(const std::string& root,
                                                                      const snapshot_pattern& pattern,
                                                                      snapshot_time when);

/// Deletes a snapshot by its name, which must match the pattern. On btrfs, it must be a subvolume
/// that is read-only: one that is not may be more than a snapshot. Errors: as create_snapshot.
/// Allocates: paths. Blocks: for the file system.
[[nodiscard]] std::expected<void, std::string> delete_snapshot(const std::string& root,
                                                               const snapshot_pattern& pattern,
                                                               const std::string& name);

}  // namespace sluice::vfs

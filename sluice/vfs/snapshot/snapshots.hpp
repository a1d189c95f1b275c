#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/snapshot/snapshot_pattern.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::vfs {

/// The snapshots of a volume: what its tree was at some times.
///
/// Its calls may take long, because a directory may contain many snapshots: run them with
/// `domain().offload()`, never inline. Thread safety: any thread. Owner: the share, and each volume
/// that it opens needs it no more.
class snapshots {
public:
    virtual ~snapshots() = default;
    snapshots(const snapshots&) = delete;
    snapshots& operator=(const snapshots&) = delete;

    /// Returns the domain in which the calls of this object run.
    [[nodiscard]] virtual fs_domain& domain() noexcept = 0;

    /// Returns the times of the snapshots in which `path` exists, latest first, at most
    /// limits::snapshots_listed_max: the latest ones. `path` is one of the volume, in the case of
    /// its names; the empty path exists in each snapshot. The path is looked up with the identity
    /// of `as`, or, if it is null, with that of the process. Errors: E2BIG if the directory
    /// contains more than limits::snapshot_names_max names; those of the file system. Allocates:
    /// the result. Blocks: for the file systems of the snapshots. Complexity: linear in the names
    /// of the directory.
    [[nodiscard]] virtual result<std::vector<snapshot_time>> list(std::string_view path,
                                                                  const account_identity* as) noexcept = 0;

    /// Opens the tree as it was at that time: a volume that is read-only and has no change feed, so
    /// that any thread may destroy it; calls that block then run in domain(). Errors: ENOENT if
    /// there is no snapshot of exactly this time; those of opening a volume. Allocates: the volume.
    /// Blocks: for the file system of the snapshot.
    [[nodiscard]] virtual result<std::shared_ptr<volume>> open(snapshot_time when) noexcept = 0;

protected:
    snapshots() = default;
};

}  // namespace sluice::vfs

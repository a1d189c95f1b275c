#pragma once

#include <memory>
#include <vector>

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

    /// Returns the times of the snapshots, latest first, at most limits::snapshots_listed_max: the
    /// latest ones. Errors: E2BIG if the directory contains more than limits::snapshot_names_max
    /// names; those of the file system. Allocates: the result. Blocks: for the file systems of the
    /// snapshots. Complexity: linear in the names of the directory.
    [[nodiscard]] virtual result<std::vector<snapshot_time>> list() noexcept = 0;

    /// Opens the tree as it was at that time: a volume that is read-only and has no change feed, so
    /// that any thread may destroy it; the part of this that may block runs in domain(). Errors:
    /// ENOENT if there is no snapshot of exactly this time; those of opening a volume. Allocates:
    /// the volume. Blocks: for the file system of the snapshot.
    [[nodiscard]] virtual result<std::shared_ptr<volume>> open(snapshot_time when) noexcept = 0;

protected:
    snapshots() = default;
};

}  // namespace sluice::vfs

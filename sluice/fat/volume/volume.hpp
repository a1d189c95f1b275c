#pragma once

#include "sluice/fat/engine/file_system.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/task/call_threads.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::fat {

struct surroundings;

/// A FAT volume as any other: what a server or a program needs of it.
///
/// What FAT cannot hold is refused with EOPNOTSUPP: streams, extended attributes, security, links, sparse
/// files; EFBIG for 4 GiB, when the size is set. Times are rounded down: the last access to a day, changes to
/// two seconds, births to ten milliseconds. Transfers and flushes keep no loop waiting for the image if the
/// volume has threads for that; everything else blocks for it.
///
/// What has changed is written down when a node is flushed, when much has gathered, and, while changes()
/// runs, a second after the first change; on a thread, too. Outlives its nodes, listings and watches. Thread
/// safety: as vfs::volume; what is below, the file system, may be used by other threads all the while.
class volume final : public vfs::volume {
public:
    /// `multiplexer` and `threads` outlive it; `threads` make the calls that block (null: the loop makes
    /// them). `number`, not 0, is this engine's alone: copies of an image differ by nothing else
    /// (vfs::file_key::image). Allocates: yes.
    volume(io::io_multiplexer& multiplexer, std::unique_ptr<file_system> mounted, std::uint64_t number,
           io::call_threads* threads = nullptr);
    ~volume() override;

    [[nodiscard]] const vfs::volume_features& features() const noexcept override { return features_; }
    [[nodiscard]] const vfs::volume_identity& identity() const noexcept override { return identity_; }
    [[nodiscard]] result<vfs::volume_space> space() noexcept override;
    /// There are no links to follow. Errors: as vfs::volume; ELOOP for a directory that claims another's
    /// place.
    [[nodiscard]] result<vfs::node_ptr> find(std::string_view path,
                                             vfs::follow_links links) noexcept override;
    [[nodiscard]] result<vfs::node_ptr> create(std::string_view path,
                                               const vfs::creation_request& wanted) noexcept override;
    void serve_on(std::span<io::io_multiplexer* const> loops) override;
    [[nodiscard]] vfs::change_feed* changes() noexcept override;

    [[nodiscard]] file_system& mounted() noexcept;

private:
    std::unique_ptr<surroundings> around_;
    vfs::volume_features features_;
    vfs::volume_identity identity_;
};

}  // namespace sluice::fat

#pragma once

#include "sluice/fat/engine/file_system.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/task/call_threads.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::fat {

struct volume_context;

/// A FAT volume with the interface of any other volume, for servers and programs.
///
/// Operations that FAT does not support fail with EOPNOTSUPP: streams, extended attributes,
/// security, links, sparse files. Setting a size of 4 GiB or more fails with EFBIG. Times are
/// rounded down: the last access to a day, changes to two seconds, births to ten milliseconds. If
/// the volume has threads, transfers and flushes never make a loop wait for the image; all other
/// calls block for it.
///
/// Changes are committed when a node is flushed, when there are many, and, while changes() runs,
/// one second after the first change; also on a thread. Outlives its nodes, listings and watches.
/// Thread safety: as vfs::volume; other threads may use the file system below at any time.
class volume final : public vfs::volume {
public:
    /// `multiplexer` and `threads` outlive the volume; `threads` run the calls that block (null:
    /// the loop runs them). `number`, not 0, is unique to this engine, because copies of an image
    /// do not differ in anything else (vfs::file_key::image). Allocates: yes.
    volume(io::io_multiplexer& multiplexer, std::unique_ptr<file_system> mounted, std::uint64_t number,
           io::call_threads* threads = nullptr);
    ~volume() override;

    [[nodiscard]] const vfs::volume_features& features() const noexcept override { return features_; }
    [[nodiscard]] const vfs::volume_identity& identity() const noexcept override { return identity_; }
    [[nodiscard]] result<vfs::volume_space> space() noexcept override;
    /// Finds a node. There are no links to follow. Errors: as vfs::volume; ELOOP for a directory
    /// that claims the cluster of another.
    [[nodiscard]] result<vfs::node_ptr> find(std::string_view path,
                                             vfs::follow_links links) noexcept override;
    [[nodiscard]] result<vfs::node_ptr> create(std::string_view path,
                                               const vfs::creation_request& wanted) noexcept override;
    void serve_on(std::span<io::io_multiplexer* const> loops) override;
    [[nodiscard]] vfs::change_feed* changes() noexcept override;

    [[nodiscard]] file_system& mounted() noexcept;

private:
    std::unique_ptr<volume_context> around_;
    vfs::volume_features features_;
    vfs::volume_identity identity_;
};

}  // namespace sluice::fat

#pragma once

#include "sluice/io/path/volume_status.hpp"
#include "sluice/vfs/host/host_volume_options.hpp"
#include "sluice/vfs/host/name/name_index.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::vfs {

class host_tree;
class host_change_feed;
class recycle_sweep;

/// A directory of the host as a volume. All files that it opens, creates, renames or removes are
/// below the directory. The kernel ensures this during the path walk (RESOLVE_BENEATH), even if
/// another process renames directories or creates links at the same time. Magic links of /proc are
/// never followed.
///
/// Names: an exact match is found by one system call. Only a miss uses an index (name_index.hpp).
/// Names that Windows does not allow are mapped (host_name.hpp). Metadata that Windows stores and
/// Unix does not is in extended attributes (docs/formats/host_metadata.md), and large streams are
/// in files that no path leads to (docs/formats/streams.md). On a file system without extended
/// attributes there are no streams, EAs, security descriptors and DOS attributes.
///
/// The read_only attribute is only stored and reported. It does not change permission bits, so that
/// a client cannot lock out a local user. Without stored metadata, a file without any write
/// permission is reported as read_only.
///
/// Outlives its nodes, listings and watches. Thread safety: as volume; files and large streams
/// allow concurrent transfers, small streams do not.
class host_volume final : public volume {
public:
    /// Errors: as io::path_handle::open; ENOTDIR; ENOSYS on a kernel before 5.6.
    [[nodiscard]] static result<std::unique_ptr<host_volume>> open(io::io_multiplexer& multiplexer,
                                                                   io::path_view root,
                                                                   const host_volume_options& options = {});
    /// The same for a directory that is open. Its confinement is that of the volume: `beneath` or
    /// `beneath_one_mount`, with or without symbolic links as the options allow them. With
    /// `beneath_one_mount`, other file systems that are mounted in the tree are not entered.
    [[nodiscard]] static result<std::unique_ptr<host_volume>> open(io::io_multiplexer& multiplexer,
                                                                   io::path_handle root,
                                                                   const host_volume_options& options);
    ~host_volume() override;

    [[nodiscard]] fs_domain* crossing_domain() noexcept override;
    [[nodiscard]] bool tidy(std::optional<std::chrono::system_clock::time_point> now) noexcept override;
    [[nodiscard]] bool needs_tidying() const noexcept override;
    [[nodiscard]] std::string take_recycle_problem() noexcept override;
    [[nodiscard]] const volume_features& features() const noexcept override { return features_; }
    [[nodiscard]] const volume_identity& identity() const noexcept override { return identity_; }
    [[nodiscard]] result<volume_space> space() noexcept override;
    [[nodiscard]] result<node_ptr> find(std::string_view path, follow_links links) noexcept override;
    [[nodiscard]] result<found_node> find_with_status(std::string_view path, follow_links links,
                                                      data_access soon, name_match match) noexcept override;
    [[nodiscard]] result<found_node> find_directory(std::string_view path) noexcept override;
    [[nodiscard]] result<node_ptr> create(std::string_view path,
                                          const creation_request& wanted) noexcept override;
    [[nodiscard]] result<found_node> create_in(node& directory, std::string_view name,
                                               const creation_request& wanted) noexcept override;

    void serve_on(std::span<io::io_multiplexer* const> loops) override;

    /// Returns the feed of the changes that the kernel reports (inotify), by any process. Recursive
    /// watches are limited by limits::watched_directories_max and by fs.inotify.max_user_watches.
    [[nodiscard]] change_feed* changes() noexcept override;
    [[nodiscard]] volume_quotas* quotas() noexcept override { return quotas_.get(); }

    /// Returns the reason why streams that do not fit into attributes cannot be used, as found when
    /// the volume was opened. Otherwise, and for a volume without any streams, std::nullopt.
    [[nodiscard]] const std::optional<error>& stream_problem() const noexcept { return stream_problem_; }
    /// Returns that reason for people, with the rule and the remedy; empty if there is none.
    /// Blocks: for the file system.
    [[nodiscard]] std::string explain_stream_problem() const;

    /// Returns the state of the volume, for the tools of this directory.
    [[nodiscard]] host_tree& tree() noexcept { return *tree_; }

    /// Returns the statistics of the index.
    [[nodiscard]] name_index::counts index_statistics() const noexcept;

private:
    explicit host_volume(std::unique_ptr<host_tree> tree) noexcept;
    void describe(const io::volume_status& status);
    void prepare_bin(const io::volume_status& status);

    std::unique_ptr<host_tree> tree_;
    std::unique_ptr<host_change_feed> feed_;
    std::unique_ptr<volume_quotas> quotas_;  // null: not offered
    std::unique_ptr<recycle_sweep> sweep_;   // null: none is in progress
    volume_features features_;
    volume_identity identity_;
    std::optional<error> stream_problem_;
};

}  // namespace sluice::vfs

#pragma once

#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/host/host_walk.hpp"
#include "sluice/vfs/host/stream/samba_content.hpp"
#include "sluice/vfs/host/stream/samba_depot.hpp"
#include "sluice/vfs/host/stream/samba_streams.hpp"
#include "sluice/vfs/node_attached.hpp"

namespace sluice::vfs {

struct samba_import_options {
    // The directory of streams_depot; empty: `.streams` in the root of the volume, if it exists.
    std::string depot{};
    // The number of the file system may have changed since Samba used it. Then only files on that
    // of the root have streams in the depot.
    bool any_device = false;
    bool any_owner = false;  // the streams in the depot may belong to another account
    // Only files with the attribute by which Samba marks its streams as valid.
    bool needs_mark = true;
    bool removes_sources = false;  // Samba's streams, after they are durable
    std::string extension_prefix{usual_samba_extension_prefix};
    std::uint64_t kept_free_bytes = 0;  // how much space the import leaves
};

struct samba_import_result {
    std::uint64_t imported = 0;
    std::uint64_t present = 0;    // with the same content already
    std::uint64_t conflicts = 0;  // with other content: not changed
    std::uint64_t failed = 0;
    std::uint64_t foreign = 0;     // thereof those of another account than the file
    std::uint64_t incomplete = 0;  // thereof those with an attribute that is missing
    // Directories of the depot with streams whose file was not found, or is not marked.
    std::uint64_t unmatched = 0;
    std::uint64_t unmarked = 0;
    std::uint64_t unreadable = 0;  // files and directories
    std::uint64_t mounts = 0;      // other file systems, which were not searched

    /// Returns whether Samba has no stream that the volume does not have.
    [[nodiscard]] bool is_complete() const noexcept {
        return conflicts + failed + unmatched + unmarked + unreadable + mounts == 0;
    }
};

/// Imports Samba's named streams into a volume: those in attributes (streams_xattr), and those in a
/// directory (streams_depot). It can be repeated, also after it was interrupted: a stream that
/// exists with the same content is not written again, and one that is not complete has another
/// name. The modification times of the files do not change. No server uses the volume at the same
/// time; local users may.
///
/// Thread safety: one thread, which runs the loop of the volume. Blocks: for the file system.
/// Allocates: one stream in attributes, and the names in the depot.
class samba_import {
public:
    /// `report` gets a line for each stream that cannot be imported. The volume and the loop
    /// outlive it.
    samba_import(host_volume& volume, io::io_multiplexer& loop, const samba_import_options& options,
                 std::function<void(const std::string&)> report);

    /// Finds the depot and what is in it. Returns why it cannot be used; std::nullopt if it can,
    /// and for a directory without a depot.
    [[nodiscard]] std::optional<std::string> open_depot();
    [[nodiscard]] bool has_depot() const noexcept { return depot_.is_open(); }

    /// Imports all streams; once, after open_depot().
    [[nodiscard]] samba_import_result run();

private:
    enum class outcome : std::uint8_t { imported, present, conflict };
    using attempt = std::expected<outcome, std::string>;  // or why it has failed
    struct source_file {
        const io::handle& open;
        const std::string& path;
        stream_file facts;
    };

    void visit(const walked_entry& at);
    void report_unopened(const std::string& path, const error& why);
    void report_unused();
    void import_attributes(const source_file& file);
    [[nodiscard]] attempt import_attribute(const source_file& file, const std::string& attribute,
                                           std::string_view stream);
    [[nodiscard]] bool may_have_streams_in(const samba_depot::directory& from,
                                           const source_file& file) const noexcept;
    void import_depot(const source_file& file, samba_depot::directory& from);
    [[nodiscard]] attempt import_depot_file(const source_file& file, const io::directory_handle& directory,
                                            const std::string& name, std::string_view stream);
    [[nodiscard]] result<outcome> import_stream(const source_file& file, std::string_view stream,
                                                samba_content& content);
    [[nodiscard]] result<node_ptr> open_stream(const source_file& file, std::string_view name);
    [[nodiscard]] result<bool> is_equal(node& present, samba_content& content);
    // Creates a small stream with its content in one step; false if it has to be large.
    [[nodiscard]] result<bool> store_small(const source_file& file, std::string_view stream,
                                           samba_content& content);
    [[nodiscard]] result<void> store_large(const source_file& file, std::string_view stream,
                                           samba_content& content);
    [[nodiscard]] result<void> write_large(const source_file& file, const stream_directory& to,
                                           samba_content& content);
    void remove_incomplete(const source_file& file);
    [[nodiscard]] result<void> make_durable(node& stream);
    // The identity of a file's owner; null: that of the process has to do.
    [[nodiscard]] account_ptr owner_of(const source_file& file);
    void count(const source_file& file, std::string_view stream, const attempt& done);

    host_tree& tree_;
    io::io_multiplexer& loop_;
    const samba_import_options options_;
    std::function<void(const std::string&)> report_;
    samba_depot depot_;
    std::map<std::uint32_t, account_ptr> owners_;  // by user ID
    samba_import_result result_;
};

}  // namespace sluice::vfs

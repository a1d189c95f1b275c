#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/host/stream/samba_streams.hpp"
#include "sluice/vfs/node_attached.hpp"

namespace sluice::vfs {

struct samba_import_options {
    std::string depot{};  // the directory of streams_depot; empty: there is none
    // The number of the file system may have changed since Samba used it.
    bool any_device = false;
    // Only files with the attribute by which Samba marks its streams as valid.
    bool needs_mark = true;
    bool removes_sources = false;  // Samba's streams, after they are durable
};

struct samba_import_result {
    std::uint64_t imported = 0;
    std::uint64_t present = 0;    // with the same content already
    std::uint64_t conflicts = 0;  // with other content: not changed
    std::uint64_t failed = 0;
    // Directories of the depot whose file was not found, or is not marked.
    std::uint64_t unmatched = 0;
    std::uint64_t unreadable = 0;
};

/// Imports Samba's named streams into a volume: those in attributes (streams_xattr), and those in a
/// directory (streams_depot). It can be repeated, also after it was interrupted: a stream that
/// exists with the same content is not written again, and one that is not complete has another
/// name. The modification times of the files stay as they are. No server uses the volume at the
/// same time.
///
/// Thread safety: one thread, which runs the loop of the volume. Blocks: for the file system.
/// Allocates: one stream in attributes, and the names in the depot.
class samba_import {
public:
    /// `report` gets a line for each stream that cannot be imported. The volume and the loop
    /// outlive it.
    samba_import(host_volume& volume, io::io_multiplexer& loop, const samba_import_options& options,
                 std::function<void(const std::string&)> report);

    /// Errors: those of opening the depot.
    [[nodiscard]] result<samba_import_result> run();

private:
    enum class outcome : std::uint8_t { imported, present, conflict };
    struct depot_directory {
        std::uint64_t device = 0;
        std::string path{};  // in the depot
        bool is_used = false;
    };
    struct source_file {
        const io::handle& open;
        const std::string& path;
    };

    [[nodiscard]] result<void> list_depot();
    void import_file(const source_file& file, std::uint64_t device, std::uint64_t inode);
    void import_attributes(const source_file& file);
    [[nodiscard]] result<outcome> import_attribute(const source_file& file, const std::string& attribute,
                                                   std::string_view stream);
    void import_depot(const source_file& file, depot_directory& from);
    [[nodiscard]] result<outcome> import_depot_file(const source_file& file, io::file_handle& from,
                                                    std::string_view stream);
    using reader = std::function<result<std::size_t>(std::span<std::byte>, std::uint64_t)>;
    [[nodiscard]] result<outcome> import_stream(const source_file& file, std::string_view stream,
                                                std::uint64_t bytes, const reader& read);
    // Opens or creates a stream of the file.
    [[nodiscard]] result<node_ptr> open_stream(const source_file& file, const stream_request& wanted);
    void remove_incomplete(const source_file& file);
    // Creates a small stream with its content in one step; false if it has to be large.
    [[nodiscard]] result<bool> store_small(const source_file& file, std::string_view stream,
                                           std::uint64_t bytes, const reader& read);
    [[nodiscard]] result<void> store_large(const source_file& file, std::string_view stream,
                                           std::uint64_t bytes, const reader& read);
    [[nodiscard]] result<void> read_all(std::span<std::byte> into, const reader& read);
    [[nodiscard]] result<void> make_durable(node& stream);
    [[nodiscard]] result<void> copy(node& to, std::uint64_t bytes, const reader& read);
    [[nodiscard]] result<bool> is_equal(node& present, std::uint64_t bytes, const reader& read);
    void count(const source_file& file, std::string_view stream, const result<outcome>& done);

    host_tree& tree_;
    io::io_multiplexer& loop_;
    const samba_import_options options_;
    std::function<void(const std::string&)> report_;
    io::path_handle depot_;
    std::multimap<std::uint64_t, depot_directory> directories_;  // by inode
    samba_import_result result_;
};

}  // namespace sluice::vfs

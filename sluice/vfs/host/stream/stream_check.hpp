#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"

namespace sluice::vfs {

struct stream_check_options {
    bool repairs = false;
    std::chrono::seconds lost_kept =
        std::chrono::days(30);  // then directories without a reference are removed
    time_point now{};           // the present time
};

/// The numbers of files and directories; "problems" are those that a repair would change.
struct stream_check_result {
    std::uint64_t referring_files = 0;
    std::uint64_t directories = 0;  // in the store of the root
    std::uint64_t unreferenced = 0;
    std::uint64_t lost = 0;    // moved to `lost` by an earlier repair, and without a reference
    std::uint64_t copies = 0;  // files that refer to the streams of another, or were restored
    std::uint64_t nested = 0;  // files whose streams are in another store than that of the root
    // Files that refer to streams of another owner: not a problem of the store.
    std::uint64_t foreign = 0;
    // Files with streams in two stores, of which the second are not found. Not repaired.
    std::uint64_t split = 0;
    std::uint64_t repaired = 0;
    std::uint64_t failed = 0;        // repairs
    std::uint64_t unreadable = 0;    // directories that could not be searched
    std::string first_unreadable{};  // one of them
    [[nodiscard]] std::uint64_t problems() const noexcept { return unreferenced + copies + nested; }
};

/// Compares the references of all files of a volume with its store, and repairs the differences
/// (docs/formats/streams.md, Removal). Files on other file systems, such as those in snapshots, are
/// not changed; what they refer to is not lost. Other programs and servers may use both at the same
/// time.
///
/// Thread safety: one thread. Blocks: for the file system. Allocates: for each file with a
/// reference.
class stream_check {
public:
    /// `report` gets a line for each problem. The volume and it outlive the check.
    stream_check(host_volume& volume, const stream_check_options& options,
                 std::function<void(const std::string&)> report);

    /// Errors: EACCES if the store belongs to another account; EIO.
    [[nodiscard]] result<stream_check_result> run();

private:
    struct referring_file {
        std::string path;
        std::uint64_t inode = 0;
        std::uint64_t device = 0;
    };
    struct stored_directory {
        stream_id id{};
        time_point modified{};
        bool is_lost = false;
        bool is_being_removed = false;  // by a repair that was interrupted
    };

    [[nodiscard]] result<void> list_directories();
    void find_references();
    void check_references();
    void check_file(const stream_id& id, const referring_file& file, bool is_claimable);
    void check_directories();
    [[nodiscard]] bool claim(const io::handle& file, const stream_record& reference,
                             stream_directory& streams);
    [[nodiscard]] bool move_to_root(const stream_directory& streams);
    [[nodiscard]] bool remove_lost(const stored_directory& which);
    void record(bool is_repaired, const std::string& what);

    host_tree& tree_;
    const stream_check_options options_;
    std::function<void(const std::string&)> report_;
    io::path_handle store_;
    std::vector<stored_directory> stored_;
    std::map<stream_id, std::vector<referring_file>> references_;
    stream_check_result result_;
};

}  // namespace sluice::vfs

#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/host/host_walk.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/host/stream/stream_store_listing.hpp"

namespace sluice::vfs {

struct stream_check_options {
    bool repairs = false;
    /// Repairs also if files or directories could not be read, which may refer to streams.
    bool skips_unreadable = false;
    std::chrono::seconds lost_kept =
        std::chrono::days(30);  // then directories without a reference are removed
    time_point now{};           // the present time; newer directories are not examined
};

/// The numbers of files and directories; "problems" are those that a repair would change.
struct stream_check_result {
    std::uint64_t referring_files = 0;
    std::uint64_t directories = 0;   // in the store of the root
    std::uint64_t unreferenced = 0;  // problems
    std::uint64_t restored = 0;      // problems: files that refer to the streams of a missing one
    std::uint64_t nested = 0;        // problems: directories in other stores than that of the root
    std::uint64_t due = 0;           // problems: directories that have been in `lost` for too long
    std::uint64_t lost = 0;          // directories in `lost` without a reference
    // Files that refer to the streams of another one, and get copies of them when they change: not
    // a problem.
    std::uint64_t copies = 0;
    // Files that refer to streams of another owner, which they cannot use: not a problem of the
    // store.
    std::uint64_t foreign = 0;
    // Directories in nested stores that cannot be moved, because the root's has the same streams.
    std::uint64_t split = 0;
    std::uint64_t strays = 0;  // objects in stores that the format does not define
    std::uint64_t repaired = 0;
    std::uint64_t failed = 0;      // repairs
    std::uint64_t unreadable = 0;  // files and directories that could not be read or searched
    [[nodiscard]] std::uint64_t problems() const noexcept { return unreferenced + restored + nested + due; }
};

/// Compares the references of all files of a volume with its store, and repairs the differences
/// (docs/formats/streams.md, Removal). Files on all mounts beneath the volume count, those on other
/// file systems are not changed. Other programs and servers may use both at the same time.
///
/// Thread safety: one thread. Blocks: for the file systems, also for one that is mounted and hangs.
/// Allocates: about 150 bytes for each directory in the store and for each file with several names
/// that has a reference, and as walk(). Paths are not kept, because a user chooses their length: so
/// a second walk finds the copied files again.
class stream_check {
public:
    /// `report` gets a line for each problem. The volume and it outlive the check.
    stream_check(host_volume& volume, const stream_check_options& options,
                 std::function<void(const std::string&)> report);

    /// Errors: EACCES if the store belongs to another account; EIO.
    [[nodiscard]] result<stream_check_result> run();

private:
    /// The streams of one ID in the store of the root.
    struct stored_streams {
        std::optional<stream_record> mark{};
        std::optional<std::uint32_t> stream_owner{};  // stream_directory::may_be_used()
        time_point lost_since{};
        bool is_in_group = false;
        bool is_lost = false;
        bool is_being_removed = false;
        bool is_referenced = false;
        bool has_own = false;     // a file that they are made for
        bool has_copies = false;  // on the file system of the root
    };
    using stored_map = std::map<stream_id, stored_streams>;
    enum class relation : std::uint8_t { own, copy, copy_elsewhere, foreign };
    /// The outcome of a repair: the reason why it was not done; empty if it is not needed any more.
    using repair = std::expected<void, std::string>;

    [[nodiscard]] result<void> open_store();
    void list_directories();
    void record_reference(const walked_entry& at);
    [[nodiscard]] relation relation_of(const stored_streams& streams, const stream_file& file) const;
    void check_copies();
    void walk_again(const std::function<void(const walked_entry&)>& visit);
    void record_original(const walked_entry& at);
    void check_copy(const walked_entry& at);
    [[nodiscard]] repair claim(const walked_entry& at, const stream_id& id) const;
    void check_nested_store(const walked_entry& at);
    void check_nested(const io::path_handle& store, const std::string& path, const listed_streams& each);
    [[nodiscard]] repair move_to_root(const io::path_handle& from, std::string_view group,
                                      const stream_id& id);
    void check_directories();
    void retire_unreferenced();
    [[nodiscard]] static repair refusal();
    [[nodiscard]] bool is_new(const stream_id& id) const;
    [[nodiscard]] repair retire(const stream_id& id) const;
    [[nodiscard]] repair remove_lost(const stream_id& id, bool is_being_removed) const;
    [[nodiscard]] bool is_counted_once(const walked_entry& at);
    [[nodiscard]] bool may_remove() const noexcept {
        return options_.skips_unreadable or result_.unreadable == 0;
    }
    /// Counts a problem, and repairs it if requested.
    template <class Repair>
    void repair_or_report(std::uint64_t& problem, const std::string& what, Repair attempt);
    void record_unreadable(const std::string& path, const error& why);
    void record_stray(const std::string& path);
    [[nodiscard]] static std::string shown(const std::string& path);

    host_tree& tree_;
    const stream_check_options options_;
    std::function<void(const std::string&)> report_;
    io::path_handle store_;
    std::uint64_t device_ = 0;  // on which the store is
    stored_map stored_;
    // Inodes with several names that were visited in this walk.
    std::set<std::pair<std::uint64_t, std::uint64_t>> visited_;
    stream_check_result result_;
};

}  // namespace sluice::vfs

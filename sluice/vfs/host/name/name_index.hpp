#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sluice/io/path/directory_handle.hpp"
#include "sluice/vfs/limits.hpp"

namespace sluice::vfs {

struct index_limits {
    std::size_t directories_max = limits::indexed_directories_max;
    std::size_t names_max = limits::indexed_names_max;
};

/// Specifies whether the kernel reports every change to a directory. On network file systems it
/// reports only the changes of this host, and the directory's times must be checked, too.
enum class reports_all_changes : bool { no, yes };

/// An index that finds the name in a directory of the host that equals another except for case,
/// without a scan per lookup: Windows clients often look up names that do not exist.
///
/// A directory's names are read once and then updated through inotify, whose queue is read before
/// every answer. The answer thus reflects all earlier changes on this host. When the limits are
/// reached, the least recently used directories are dropped; after an overflow of the kernel's
/// queue, all are. A directory that cannot be watched (fs.inotify.max_user_watches) is scanned for
/// every lookup.
///
/// The accounts of an impersonated volume share one index. Before the index answers for one of
/// them, it asks the kernel whether the account may list the directory.
///
/// Monitor. Thread safety: any thread. The names of a directory are read without the mutex. Changes
/// that the kernel reports during the read are applied afterwards. A thread that needs a name in a
/// directory whose names another thread is reading scans the directory itself.
///
/// Invariants:
///   1. Every directory in the index has a watch that was set before its names were read.
///   2. `names_held_` is the sum of the names of all directories in the index.
///   3. `changes` of a directory are empty unless `is_being_read`, and `names` are empty then.
class name_index {
public:
    struct counts {
        std::uint64_t scans = 0;    // scanned directories
        std::uint64_t answers = 0;  // answers without a scan
        std::uint64_t overflows = 0;
    };

    /// Constructs an empty index. Without inotify (EMFILE, ENOSYS) it works by scanning
    /// directories. Allocates: yes.
    explicit name_index(const index_limits& bounds, reports_all_changes reach);
    name_index(const name_index&) = delete;
    name_index& operator=(const name_index&) = delete;
    ~name_index();

    /// Returns the host's name in `directory` for `wanted`, also a host's name: the same if it
    /// exists, otherwise the first in code point order of those that differ in case, or in mapped
    /// characters (host_name.hpp). With look::through_directory the index is neither used nor
    /// locked. If the directory may be searched but not listed, only the exact name is found.
    /// Errors: those of opening and reading the directory; ENOTDIR. Allocates: yes. Blocks: for the
    /// file system. Complexity: O(1) in the names of an indexed directory, plus O(changes).
    enum class look : bool { in_index, through_directory };
    [[nodiscard]] result<std::optional<std::string>> find(const io::handle& directory,
                                                          std::string_view wanted,
                                                          look where = look::in_index);

    [[nodiscard]] counts statistics() const noexcept {
        const std::scoped_lock guard(mutex_);
        return counts_;
    }

private:
    // Ignores case and mapping.
    struct hash_as_shown {
        using is_transparent = void;
        std::size_t operator()(std::string_view name) const noexcept;
    };
    struct equal_as_shown {
        using is_transparent = void;
        bool operator()(std::string_view a, std::string_view b) const noexcept;
    };
    using name_set = std::unordered_multiset<std::string, hash_as_shown, equal_as_shown>;

    struct directory_id {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        bool operator==(const directory_id&) const noexcept = default;
    };
    struct directory_id_hash {
        std::size_t operator()(const directory_id& id) const noexcept {
            return static_cast<std::size_t>(id.inode * 0x9e37'79b9'7f4a'7c15ULL ^ id.device);
        }
    };
    struct name_change {
        std::string name;
        bool appears = false;
    };
    struct held_directory {
        directory_id id;
        int watch = -1;
        io::file_status::time_point changed{};  // the time before the names were read
        std::uint64_t reader = 0;               // number of the search whose thread reads the names
        name_set names;
        bool is_being_read = true;
        std::vector<name_change> changes;  // since the watch was set
    };
    using held_list = std::list<held_directory>;  // the most recently used first

    // The answer if the directory is in the index. Otherwise empty, and the caller must read the
    // names; `reader` is then its number if the index will store them.
    struct answer {
        std::optional<std::string> name;
    };
    std::optional<answer> ask(const io::handle& directory, const io::file_status& status,
                              std::string_view wanted, std::uint64_t& reader);
    // Applies the changes since the watch was set to newly read names, and stores the names unless
    // the read of `reader` was dropped.
    void hold(const directory_id& id, std::uint64_t reader, name_set& names);
    void abandon(const directory_id& id, std::uint64_t reader);

    // The caller of these holds the mutex.
    static std::optional<std::string> choose(const name_set& names, std::string_view wanted);
    static std::ptrdiff_t apply(name_set& names, const name_change& what);
    [[nodiscard]] held_directory* find_reading(const directory_id& id, std::uint64_t reader) noexcept;
    int watch(const io::handle& directory) noexcept;
    void take_events();
    // Returns whether the event belongs to a watched directory.
    bool take(int watch, std::uint32_t what, std::string_view name);
    void forget(held_list::iterator which, bool is_watched);
    void forget_all();
    void make_room();

    const index_limits bounds_;
    const reports_all_changes reach_;
    const int inotify_;

    mutable std::mutex mutex_;  // guards all following members
    std::uint64_t last_reader_ = 0;
    std::size_t names_held_ = 0;
    counts counts_;
    held_list directories_;
    std::unordered_map<directory_id, held_list::iterator, directory_id_hash> by_id_;
    std::unordered_map<int, held_list::iterator> by_watch_;
};

}  // namespace sluice::vfs

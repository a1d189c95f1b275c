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

/// Whether the kernel tells of every change to a directory. On network file systems it tells of this host's
/// only, and the directory's times have to be looked at as well.
enum class tells_all : bool { no, yes };

/// Which name a directory of the host has that equals another but for case, without looking through the
/// directory each time: Windows clients ask for names that do not exist all day long.
///
/// A directory's names are read once and then kept right by inotify, whose queue is emptied before every
/// answer: what anybody on this host changed before the question is in it. What was used longest ago is
/// forgotten when the limits are reached; everything, when the kernel's queue ran over. A directory that
/// cannot be watched (fs.inotify.max_user_watches) is looked through every time.
///
/// The accounts of an impersonated volume share one index. Before the index answers for one of them, it asks
/// the kernel whether the account may list the directory.
///
/// Monitor. Thread safety: any thread. The names of a directory are read without the mutex. Changes that the
/// kernel reports in the meantime are applied to them afterwards. A thread that needs a name in a directory
/// whose names another thread is reading scans the directory itself.
///
/// Invariants:
///   1. Every directory held has a watch that was set before its names were read.
///   2. `names_held_` is the sum of the names of all directories held.
///   3. `changes` of a directory held are empty unless `is_being_read`, and `names` are empty then.
class name_index {
public:
    struct counts {
        std::uint64_t scans = 0;    // directories read through
        std::uint64_t answers = 0;  // thereof without a scan: the rest
        std::uint64_t overflows = 0;
    };

    /// Without inotify (EMFILE, ENOSYS) it works, by looking through directories. Allocates: yes.
    explicit name_index(const index_limits& bounds, tells_all reach);
    name_index(const name_index&) = delete;
    name_index& operator=(const name_index&) = delete;
    ~name_index();

    /// The host's name in `directory` for `wanted`, also a host's name: the same if there is one, else the
    /// first in code point order of those that differ in case, or in being spelled with mapped characters
    /// (host_name.hpp). With look::through_directory the index is neither asked nor locked. Where the
    /// directory may be searched but not listed, only the name itself is found. Errors: those of opening and
    /// reading the directory; ENOTDIR. Allocates: yes. Blocks: for the file system. Complexity: O(1) in the
    /// names of a directory that is held, plus O(changes).
    enum class look : bool { in_index, through_directory };
    [[nodiscard]] result<std::optional<std::string>> find(const io::handle& directory,
                                                          std::string_view wanted,
                                                          look where = look::in_index);

    [[nodiscard]] counts statistics() const noexcept {
        const std::scoped_lock guard(mutex_);
        return counts_;
    }

private:
    // Case and mapping ignored.
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
        io::file_status::time_point changed{};  // as it was before the names were read
        std::uint64_t reader = 0;               // the number of the thread's search that reads the names
        name_set names;
        bool is_being_read = true;
        std::vector<name_change> changes;  // since the watch was set
    };
    using held_list = std::list<held_directory>;  // the last used first

    // The answer if the directory is held. Otherwise empty, and the caller is to read the names; `reader` is
    // then its number if the index is to hold them.
    struct answer {
        std::optional<std::string> name;
    };
    std::optional<answer> ask(const io::handle& directory, const io::file_status& status,
                              std::string_view wanted, std::uint64_t& reader);
    // Applies the changes since the watch was set to names just read, and stores the names unless the read
    // of `reader` has been forgotten.
    void hold(const directory_id& id, std::uint64_t reader, name_set& names);
    void abandon(const directory_id& id, std::uint64_t reader);

    // These with the mutex held.
    static std::optional<std::string> choose(const name_set& names, std::string_view wanted);
    static std::ptrdiff_t apply(name_set& names, const name_change& what);
    [[nodiscard]] held_directory* find_reading(const directory_id& id, std::uint64_t reader) noexcept;
    int watch(const io::handle& directory) noexcept;
    void take_events();
    // Returns whether the event is of a directory that is watched.
    bool take(int watch, std::uint32_t what, std::string_view name);
    void forget(held_list::iterator which, bool is_watched);
    void forget_all();
    void make_room();

    const index_limits bounds_;
    const tells_all reach_;
    const int inotify_;

    mutable std::mutex mutex_;  // guards what follows
    std::uint64_t last_reader_ = 0;
    std::size_t names_held_ = 0;
    counts counts_;
    held_list directories_;
    std::unordered_map<directory_id, held_list::iterator, directory_id_hash> by_id_;
    std::unordered_map<int, held_list::iterator> by_watch_;
};

}  // namespace sluice::vfs

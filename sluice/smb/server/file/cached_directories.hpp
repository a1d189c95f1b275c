#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::smb::server {

class open;

/// The state of a name in a directory: the file, as it was at that time; none: the name is missing.
using name_state = std::optional<vfs::name_identity>;

/// The directories that clients may cache by leases ([MS-SMB2] 3.3.1.12), and the changes of their
/// names: those that the server makes for clients, and those that the change feed reports.
///
/// A client that changes a directory keeps its own lease of it, but the feed reports that change
/// like one of another program. So the server records, with each change that it makes, the state in
/// which that has left the name. If the name is in that state when an event is examined, the event
/// belongs to the server's own change. A change by another program in the same tick of the file
/// system's clock as an own change of the same name is not noticed.
///
/// Invariants:
///   1. A directory is here exactly as long as there is a watch of it (directory_watch).
///   2. An event is examined while no own change of its name is in progress.
///   3. A recorded state is forgotten once the name was found in another one, or events were lost.
///   4. Forgetting a recorded state, or events, costs a needless break at most: never a missing
///      one. Events that are forgotten count as lost.
/// Monitor: any thread; `mutex_` guards the table. Complexity: logarithmic in directories and in
/// names with recorded states.
class cached_directories {
public:
    cached_directories() noexcept = default;
    cached_directories(const cached_directories&) = delete;
    cached_directories& operator=(const cached_directories&) = delete;

    /// Returns whether there are any. Without the mutex: a change that misses the first one began
    /// before that was granted.
    [[nodiscard]] bool has_any() const noexcept { return count_.load(std::memory_order_seq_cst) != 0; }
    [[nodiscard]] bool has(const vfs::file_key& directory) const noexcept;

    // --- watches

    /// Adds a watch of a directory, by an open of it; remove() takes it out. Returns false if the
    /// directory has too many.
    [[nodiscard]] bool add(const vfs::file_key& directory, const void* watch, std::weak_ptr<open> by);
    void remove(const vfs::file_key& directory, const void* watch) noexcept;

    // --- changes by the server

    /// `now`: the state of the name before the change, if it is known. If that is not the recorded
    /// one, another program has changed the name, and events count as lost. If no state is
    /// recorded, only an event that was not examined shows that. `writes`: clients have written to
    /// the file since its state was recorded.
    void begin_change(const vfs::file_key& directory, std::string_view name,
                      const std::optional<name_state>& now, bool writes = false);
    /// `left`: the state of the name after the change; none is recorded if the change has no known
    /// one.
    void end_change(const vfs::file_key& directory, std::string_view name,
                    const std::optional<name_state>& left);

    // --- events of the feed

    /// A name has changed. `is_content`: only the content of the file.
    void record_event(const vfs::file_key& directory, std::string_view name, bool is_content);
    /// Events were lost, or the directory itself is not what it was.
    void record_loss(const vfs::file_key& directory) noexcept;
    [[nodiscard]] bool has_events() const noexcept {
        return has_events_.load(std::memory_order_acquire);  // pairs with record_event()
    }

    struct event {
        std::string name;
        bool is_content = false;
    };
    /// The events of one directory.
    struct events {
        vfs::file_key directory{};
        std::vector<std::weak_ptr<open>> by;  // opens of the directory
        std::vector<event> names;
        bool are_lost = false;
    };
    /// Moves the events out of all directories that are not being examined, except those of names
    /// that the server is changing. They are being examined until end_examination().
    [[nodiscard]] std::vector<events> take_events();
    void end_examination(const vfs::file_key& directory) noexcept;
    /// Returns whether the server itself has left the name in that state, of which an event was
    /// taken. If it is changing the name, the event waits for the end of that. If not, forgets the
    /// recorded state. `is_written`: clients have written to the file since.
    [[nodiscard]] bool is_own_change(const vfs::file_key& directory, const event& seen, const name_state& now,
                                     bool is_written);
    /// Forgets the recorded states of a directory, because events of it were not examined.
    void forget_states(const vfs::file_key& directory) noexcept;

private:
    struct own_changes {
        std::uint32_t in_progress = 0;
        bool was_known = false;  // the change in progress began in a state of the server's own
        std::optional<name_state> left;
    };
    struct watched_directory {
        std::vector<std::pair<const void*, std::weak_ptr<open>>> watches;
        std::map<std::string, own_changes, std::less<>> names;
        std::map<std::string, bool, std::less<>> events;  // whether only of the content
        bool has_lost_events = false;
        bool is_being_examined = false;
    };
    void bound_names(watched_directory& of, std::string_view except) SLUICE_REQUIRES(mutex_);
    [[nodiscard]] static bool is_as_left(const own_changes& own, const name_state& now,
                                         bool is_written) noexcept;
    void lose_events(watched_directory& of) noexcept SLUICE_REQUIRES(mutex_);

    std::atomic<std::size_t> count_{0};
    std::atomic<bool> has_events_{false};
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    std::map<vfs::file_key, watched_directory> directories_ SLUICE_GUARDED_BY(mutex_);
    std::size_t names_ SLUICE_GUARDED_BY(mutex_) = 0;   // in all directories
    std::size_t events_ SLUICE_GUARDED_BY(mutex_) = 0;  // the same
};

}  // namespace sluice::smb::server

#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/fat/engine/file_system.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/task/call_threads.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/vfs/change_queue.hpp"

// Internal to the volume.

namespace sluice::fat {

/// Tells of what is done through a volume: nobody else changes an image that is mounted. Commits what was
/// changed a second after the first change, and goes on telling meanwhile if there are threads for that.
/// Monitor. Thread safety: as vfs::change_feed; whatever notes something, on any thread.
class volume_change_feed final : public vfs::change_feed {
public:
    /// All outlive it. `threads` may be null.
    volume_change_feed(io::io_multiplexer& multiplexer, file_system& of, io::call_threads* threads);
    ~volume_change_feed() override;

    [[nodiscard]] result<std::unique_ptr<vfs::change_watch>> watch(
        vfs::node& directory, bool recursive, vfs::change_listener& listener) noexcept override;
    [[nodiscard]] io::task<bool> co_changed() noexcept override;
    void tell() noexcept override;

    [[nodiscard]] bool is_watched() const noexcept {
        const std::scoped_lock guard(mutex_);
        return not watches_.empty();
    }
    /// A file's content has changed.
    void note_written(item& which);
    /// Something has happened to what is at a path, which nobody looks at unless is_watched().
    void note(vfs::change_kind what, bool is_directory, const std::string& path);
    /// What a path is called by each watch that sees it: to be asked before a move, and told after.
    struct name_seen {
        const vfs::queued_watch* by = nullptr;
        std::optional<std::string> name{};
    };
    using names_seen = std::vector<name_seen>;
    [[nodiscard]] names_seen names_of(const std::string& path);
    void note_move(const names_seen& before, bool is_directory, const std::string& after);
    /// A directory has been removed: its watches end.
    void note_end(const item& directory);

private:
    class held_watch;

    void notify_watches(vfs::change_kind what, bool is_directory, const std::string& path);
    void note_what_was_written();
    void ring() noexcept;
    void forget(held_watch& which) noexcept;

    [[nodiscard]] io::task<void> commit_in_background() noexcept;
    [[nodiscard]] io::task<bool> co_poll() noexcept;

    io::io_multiplexer& loop_;
    file_system& system_;
    io::call_threads* threads_;
    // A byte for co_changed() to wake by. Without it, if there was no descriptor left when the volume was
    // opened, co_changed() polls instead.
    io::pipe_handle::pair bell_;
    bool has_bell_ = false;
    std::atomic<bool> has_rung_ = false;

    std::mutex written_mutex_;  // guards what follows
    std::set<item_ptr> written_;
    bool notes_written_ = false;  // somebody watches

    // co_changed()'s and tell()'s:
    deadline commits_at_;  // none: nothing was changed since the last commit
    bool commits_now_ = false;
    io::task_group commits_;  // under way on a thread; one at most

    mutable std::recursive_mutex mutex_;  // guards what follows; recursive because listeners use the feed
    std::vector<held_watch*> watches_;
    vfs::change_queue queue_;
};

}  // namespace sluice::fat

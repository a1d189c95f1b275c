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

/// Reports the changes that are made through a volume; a mounted image has no other writers.
/// Commits one second after the first change. If there are threads, it continues to report during
/// the commit.
/// Monitor. Thread safety: as vfs::change_feed; the functions that record changes, on any thread.
class volume_change_feed final : public vfs::change_feed {
public:
    /// The arguments outlive the feed. `threads` may be null.
    volume_change_feed(io::io_multiplexer& multiplexer, file_system& of, io::call_threads* threads);
    ~volume_change_feed() override;

    [[nodiscard]] result<std::unique_ptr<vfs::change_watch>> watch(
        vfs::node& directory, bool recursive, vfs::change_listener& listener) noexcept override;
    [[nodiscard]] io::task<bool> co_changed() noexcept override;
    void deliver() noexcept override;

    [[nodiscard]] bool is_watched() const noexcept {
        const std::scoped_lock guard(mutex_);
        return not watches_.empty();
    }
    /// Records a change of a file's content.
    void record_written(inode& which);
    /// Records a change of the inode at a path. The path is used only if is_watched().
    void record(vfs::change_kind what, bool is_directory, const std::string& path);
    /// The name of a path relative to each watch that covers it. A rename gets the names before,
    /// and passes them to record_move() after the move.
    struct name_seen {
        const vfs::queued_watch* by = nullptr;
        std::optional<std::string> name{};
    };
    using names_seen = std::vector<name_seen>;
    [[nodiscard]] names_seen names_of(const std::string& path);
    void record_move(const names_seen& before, bool is_directory, const std::string& after);
    /// Ends the watches of a directory that has been removed.
    void record_end(const inode& directory);

private:
    class held_watch;

    void notify_watches(vfs::change_kind what, bool is_directory, const std::string& path);
    void record_writes();
    void ring() noexcept;
    void forget(held_watch& which) noexcept;

    [[nodiscard]] io::task<void> commit_in_background() noexcept;
    [[nodiscard]] io::task<bool> co_poll() noexcept;

    io::io_multiplexer& loop_;
    file_system& system_;
    io::call_threads* threads_;
    // A byte in this pipe wakes co_changed(). If no descriptors were available when the volume was
    // opened, there is no pipe, and co_changed() polls.
    io::pipe_handle::pair wake_pipe_;
    bool has_wake_pipe_ = false;
    std::atomic<bool> is_signalled_ = false;

    std::mutex written_mutex_;  // guards the members below
    std::set<inode_ptr> written_;
    bool notes_written_ = false;  // there are watches

    // Used only by co_changed() and deliver():
    deadline commits_at_;  // none: no change since the last commit
    bool commits_now_ = false;
    io::task_group commits_;  // in progress on a thread; at most one

    mutable std::recursive_mutex mutex_;  // guards the members below; recursive for listeners
    std::vector<held_watch*> watches_;
    vfs::change_queue queue_;
};

}  // namespace sluice::fat

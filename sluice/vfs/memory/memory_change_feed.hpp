#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/vfs/change_queue.hpp"

// Internal to the memory volume.

namespace sluice::vfs {

struct memory_entry;
struct memory_file;

/// The changes of a memory volume. They are queued until deliver() delivers them. Thread safety:
/// the volume's mutex guards all of it, except co_changed().
class memory_change_feed final : public change_feed {
public:
    memory_change_feed(io::io_multiplexer& multiplexer, std::recursive_mutex& mutex);
    ~memory_change_feed() override;

    [[nodiscard]] result<std::unique_ptr<change_watch>> watch(node& directory, bool recursive,
                                                              change_listener& listener) noexcept override;
    [[nodiscard]] io::task<bool> co_changed() noexcept override;
    void deliver() noexcept override {
        const std::scoped_lock guard(mutex_);
        queue_.deliver_all();
    }

    /// Records a change of the file with the name `entry`.
    void record(change_kind what, const memory_entry& entry);
    /// The path of `entry` for each watch that sees it. It is queried before a move and passed to
    /// the call after it.
    using names_seen = std::vector<std::optional<std::string>>;
    [[nodiscard]] names_seen names_of(const memory_entry& entry) const;
    void record_move(const names_seen& before, const memory_entry& after);
    /// Records the removal of a directory, which ends its watches.
    void record_end(const memory_file& directory);

private:
    class held_watch;

    void wake_if(bool was_idle) noexcept;
    void forget(held_watch& which) noexcept;

    std::recursive_mutex& mutex_;
    io::pipe_handle::pair wake_pipe_;  // a byte in it wakes co_changed()
    std::vector<held_watch*> watches_;
    change_queue queue_;
};

}  // namespace sluice::vfs

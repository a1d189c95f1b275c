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

/// Reports the changes of a memory volume. Changes wait in a queue until tell() delivers them. Thread safety:
/// the volume's mutex guards all of it, except co_changed().
class memory_change_feed final : public change_feed {
public:
    memory_change_feed(io::io_multiplexer& multiplexer, std::recursive_mutex& mutex);
    ~memory_change_feed() override;

    [[nodiscard]] result<std::unique_ptr<change_watch>> watch(node& directory, bool recursive,
                                                              change_listener& listener) noexcept override;
    [[nodiscard]] io::task<bool> co_changed() noexcept override;
    void tell() noexcept override {
        const std::scoped_lock guard(mutex_);
        queue_.deliver_all();
    }

    /// Something has happened to what `entry` names.
    void note(change_kind what, const memory_entry& entry);
    /// What `entry` is called by each watch that sees it: to be asked before it moves, and told after.
    using names_seen = std::vector<std::optional<std::string>>;
    [[nodiscard]] names_seen names_of(const memory_entry& entry) const;
    void note_move(const names_seen& before, const memory_entry& after);
    /// A directory has been removed: its watches end.
    void note_end(const memory_file& directory);

private:
    class held_watch;

    void wake_if(bool was_idle) noexcept;
    void forget(held_watch& which) noexcept;

    std::recursive_mutex& mutex_;
    io::pipe_handle::pair bell_;  // a byte for co_changed() to wake by
    std::vector<held_watch*> watches_;
    change_queue queue_;
};

}  // namespace sluice::vfs

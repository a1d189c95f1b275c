#include "sluice/vfs/memory/memory_change_feed.hpp"

#include <algorithm>
#include <array>

#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/limits.hpp"
#include "sluice/vfs/memory/memory_file.hpp"

namespace sluice::vfs {

class memory_change_feed::held_watch final : public queued_watch {
public:
    held_watch(memory_change_feed& feed, const memory_file& directory, bool recursive,
               change_listener& listener) noexcept
        : queued_watch(listener), feed_(feed), directory_(&directory), is_recursive_(recursive) {}
    ~held_watch() override { feed_.forget(*this); }

    /// Returns the path of the entry relative to this directory; std::nullopt if it is elsewhere.
    [[nodiscard]] std::optional<std::string> path_from_here(const memory_entry& entry) const {
        std::string path = entry.name;
        const memory_file* above = entry.parent;
        while (is_recursive_ and above != nullptr and above != directory_ and above->self != nullptr) {
            path = above->self->name + '/' + path;
            above = above->self->parent;
        }
        if (above != directory_) return std::nullopt;
        return path;
    }
    [[nodiscard]] const memory_file* directory() const noexcept { return directory_; }

private:
    memory_change_feed& feed_;
    const memory_file* directory_;
    bool is_recursive_;
};

memory_change_feed::memory_change_feed(io::io_multiplexer& multiplexer, std::recursive_mutex& mutex)
    : mutex_(mutex), wake_pipe_(io::pipe_handle::anonymous().value()) {
    ENSURE(wake_pipe_.reader.set_multiplexer(&multiplexer).has_value());
}

memory_change_feed::~memory_change_feed() {
    ENSURE(watches_.empty(), "a volume outlives its watches");
}

result<std::unique_ptr<change_watch>> memory_change_feed::watch(node& directory, bool recursive,
                                                                change_listener& listener) noexcept {
    const std::scoped_lock guard(mutex_);
    const memory_file* const file = memory_directory_of(directory);
    if (file == nullptr) return failure({ENOTDIR, "watch"});
    if (watches_.size() == limits::watched_directories_max) return failure({ENOSPC, "watch"});
    auto made = std::make_unique<held_watch>(*this, *file, recursive, listener);
    watches_.push_back(made.get());
    return made;
}

void memory_change_feed::record(change_kind what, const memory_entry& entry) {
    const bool is_directory = entry.file->status.kind == node_kind::directory;
    const bool was_idle = queue_.empty();
    for (held_watch* const each : watches_) {
        auto path = each->path_from_here(entry);
        if (path) queue_.add(*each, what, is_directory, std::move(*path));
    }
    wake_if(was_idle);
}

memory_change_feed::names_seen memory_change_feed::names_of(const memory_entry& entry) const {
    names_seen seen;
    for (const held_watch* const each : watches_)
        seen.push_back(each->path_from_here(entry));
    return seen;
}

void memory_change_feed::record_move(const names_seen& before, const memory_entry& after) {
    ENSURE(before.size() == watches_.size());
    const bool is_directory = after.file->status.kind == node_kind::directory;
    const bool was_idle = queue_.empty();
    for (std::size_t i = 0; i < before.size(); ++i) {
        const auto path = watches_[i]->path_from_here(after);
        // If a watch sees only one of the names, it reports a removed or an added name.
        if (before[i])
            queue_.add(*watches_[i], path ? change_kind::renamed_old_name : change_kind::removed,
                       is_directory, *before[i]);
        if (path)
            queue_.add(*watches_[i], before[i] ? change_kind::renamed_new_name : change_kind::added,
                       is_directory, *path);
    }
    wake_if(was_idle);
}

void memory_change_feed::record_end(const memory_file& directory) {
    const bool was_idle = queue_.empty();
    for (held_watch* const each : watches_)
        if (each->directory() == &directory) queue_.add_end(*each);
    wake_if(was_idle);
}

void memory_change_feed::wake_if(bool was_idle) noexcept {
    if (not was_idle or queue_.empty()) return;
    const std::array<std::byte, 1> one{};
    // A full pipe wakes, too.
    (void)wake_pipe_.writer.try_write(io::io_request<io::const_bytes_type>{.buffers = one});
}

void memory_change_feed::forget(held_watch& which) noexcept {
    const std::scoped_lock guard(mutex_);
    std::erase(watches_, &which);
    queue_.forget(which);
}

io::task<bool> memory_change_feed::co_changed() noexcept {
    std::array<std::byte, 16> signals;
    const io::io_request<io::bytes_type> request{.buffers = signals};
    const auto woken = co_await io::co_read(wake_pipe_.reader, request);
    co_return woken.has_value();
}

}  // namespace sluice::vfs

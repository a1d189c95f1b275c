#include "sluice/fat/volume/volume_change_feed.hpp"

#include <algorithm>
#include <array>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/volume/inode_holder.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/limits.hpp"

namespace sluice::fat {
namespace {

// The maximal delay of a commit after a change.
constexpr std::chrono::seconds commit_after(1);

deadline commit_time() noexcept {
    return deadline(std::chrono::steady_clock::now() + commit_after);
}

}  // namespace

class volume_change_feed::held_watch final : public vfs::queued_watch {
public:
    held_watch(volume_change_feed& feed, inode_ptr directory, bool recursive,
               vfs::change_listener& listener) noexcept
        : queued_watch(listener), feed_(feed), directory_(std::move(directory)), is_recursive_(recursive) {}
    ~held_watch() override { feed_.forget(*this); }

    /// Returns the path relative to the watched directory, or std::nullopt if it is outside.
    [[nodiscard]] std::optional<std::string> path_from_here(const std::string& path) const {
        std::string prefix = feed_.system_.path_of(*directory_);
        if (not prefix.empty()) prefix += '/';
        if (not path.starts_with(prefix) or path.size() == prefix.size()) return std::nullopt;
        std::string rest = path.substr(prefix.size());
        if (not is_recursive_ and rest.find('/') != rest.npos) return std::nullopt;
        return rest;
    }
    [[nodiscard]] const inode* directory() const noexcept { return directory_.get(); }

private:
    volume_change_feed& feed_;
    inode_ptr directory_;
    bool is_recursive_;
};

volume_change_feed::volume_change_feed(io::io_multiplexer& multiplexer, file_system& of,
                                       io::call_threads* threads)
    : loop_(multiplexer), system_(of), threads_(threads), commits_(multiplexer) {
    auto made = io::pipe_handle::anonymous();
    if (not made or not made->reader.set_multiplexer(&multiplexer)) return;
    wake_pipe_ = *std::move(made);
    has_wake_pipe_ = true;
}

volume_change_feed::~volume_change_feed() {
    ENSURE(watches_.empty(), "a volume outlives its watches");
}

result<std::unique_ptr<vfs::change_watch>> volume_change_feed::watch(
    vfs::node& directory, bool recursive, vfs::change_listener& listener) noexcept {
    inode* const watched = inode_of(directory);
    if (watched == nullptr or not watched->is_directory) return failure({ENOTDIR, "watch"});
    const std::scoped_lock locked(mutex_);
    if (watches_.size() == vfs::limits::watched_directories_max) return failure({ENOSPC, "watch"});
    auto made = std::make_unique<held_watch>(*this, watched->shared_from_this(), recursive, listener);
    watches_.push_back(made.get());
    const std::scoped_lock guard(written_mutex_);
    notes_written_ = true;
    return made;
}

void volume_change_feed::notify_watches(vfs::change_kind what, bool is_directory, const std::string& path) {
    for (held_watch* const each : watches_) {
        auto seen = each->path_from_here(path);
        if (seen) queue_.add(*each, what, is_directory, std::move(*seen));
    }
}

void volume_change_feed::record(vfs::change_kind what, bool is_directory, const std::string& path) {
    const std::scoped_lock guard(mutex_);
    record_writes();
    notify_watches(what, is_directory, path);
    ring();
}

// The path is determined later, outside of the write.
void volume_change_feed::record_written(inode& which) {
    {
        const std::scoped_lock guard(written_mutex_);
        if (notes_written_) written_.insert(which.shared_from_this());
    }
    ring();
}

// Reports writes before other changes, so that a write is reported before later changes of the
// file.
void volume_change_feed::record_writes() {
    std::set<inode_ptr> written;
    {
        const std::scoped_lock guard(written_mutex_);
        written.swap(written_);
    }
    for (const inode_ptr& each : written)
        if (not each->is_removed) notify_watches(vfs::change_kind::modified, false, system_.path_of(*each));
}

volume_change_feed::names_seen volume_change_feed::names_of(const std::string& path) {
    const std::scoped_lock guard(mutex_);
    record_writes();
    names_seen seen;
    for (const held_watch* const each : watches_)
        seen.push_back({.by = each, .name = each->path_from_here(path)});
    return seen;
}

void volume_change_feed::record_move(const names_seen& before, bool is_directory, const std::string& after) {
    using enum vfs::change_kind;
    const std::scoped_lock guard(mutex_);
    for (held_watch* const each : watches_) {
        const auto path = each->path_from_here(after);
        // None: the watch is newer.
        const auto seen = std::ranges::find(before, each, &name_seen::by);
        const bool has_seen = seen != before.end() and seen->name;
        // A watch that covers only one of the names reports an addition or a removal.
        if (has_seen) queue_.add(*each, path ? renamed_old_name : removed, is_directory, *seen->name);
        if (path) queue_.add(*each, has_seen ? renamed_new_name : added, is_directory, *path);
    }
    ring();
}

void volume_change_feed::record_end(const inode& directory) {
    const std::scoped_lock guard(mutex_);
    for (held_watch* const each : watches_)
        if (each->directory() == &directory) queue_.add_end(*each);
    ring();
}

void volume_change_feed::ring() noexcept {
    if (not has_wake_pipe_ or is_signalled_.exchange(true)) return;
    const std::array<std::byte, 1> one{};
    // If the pipe is full, the reader wakes up as well.
    (void)wake_pipe_.writer.try_write(io::io_request<io::const_bytes_type>{.buffers = one});
}

void volume_change_feed::forget(held_watch& which) noexcept {
    const std::scoped_lock locked(mutex_);
    const std::size_t erased = std::erase(watches_, &which);
    ENSURE(erased == 1, "a watch ends once");
    queue_.forget(which);
    const std::scoped_lock guard(written_mutex_);
    notes_written_ = not watches_.empty();
}

// If this fails, the next flush fails and reports the error.
io::task<void> volume_change_feed::commit_in_background() noexcept {
    const auto done = co_await threads_->run(loop_, [this] { return system_.commit(); });
    (void)done;
}

io::task<bool> volume_change_feed::co_poll() noexcept {
    const auto slept = co_await io::co_sleep(loop_, deadline(commit_after));
    if (not slept) {
        co_await commits_.join();
        co_return false;
    }
    commits_now_ = false;
    if (threads_ == nullptr)
        (void)system_.commit();  // as in commit_in_background()
    else if (commits_.size() == 0)
        commits_.spawn(commit_in_background());
    co_return true;
}

io::task<bool> volume_change_feed::co_changed() noexcept {
    if (not has_wake_pipe_) {
        io::task<bool> polling = co_poll();
        co_return co_await std::move(polling);
    }
    std::array<std::byte, 16> signals;
    const io::io_request<io::bytes_type> request{.buffers = signals};
    for (;;) {
        const auto woken = co_await io::co_read(wake_pipe_.reader, request, commits_at_);
        if (woken) co_return true;
        if (woken.error() != std::errc::timed_out) {
            co_await commits_.join();
            co_return false;
        }
        commits_now_ = threads_ == nullptr;
        if (commits_now_) co_return true;
        commits_at_ = deadline();
        if (commits_.size() == 0)
            commits_.spawn(commit_in_background());
        else
            commits_at_ = commit_time();
    }
}

void volume_change_feed::deliver() noexcept {
    if (commits_now_) {
        (void)system_.commit();  // as in commit_in_background()
        commits_now_ = false;
        commits_at_ = deadline();
        return;
    }
    is_signalled_ = false;
    const std::scoped_lock guard(mutex_);
    record_writes();
    queue_.deliver_all();
    if (commits_at_.is_none()) commits_at_ = commit_time();
}

}  // namespace sluice::fat

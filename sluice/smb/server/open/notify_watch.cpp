#include "sluice/smb/server/open/notify_watch.hpp"

#include <algorithm>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/file/file_state.hpp"
#include "sluice/vfs/limits.hpp"

namespace sluice::smb::server {

using wire::completion_filter;
using wire::notify_action;
using wire::nt_status;

namespace {

// So that what one client has watched leaves room in each volume for the share of any other.
static_assert(vfs::limits::watched_directories_max >= limits::watches_max);

// Returns the filters that a change passes. The system does not report which attribute was changed,
// so any of them may have been.
[[nodiscard]] completion_filter filters_passed(const vfs::change& what) noexcept {
    switch (what.kind) {
        case vfs::change_kind::modified:
            return completion_filter::size | completion_filter::last_write;
        case vfs::change_kind::attributes:
            return completion_filter::attributes | completion_filter::last_write |
                   completion_filter::last_access | completion_filter::creation |
                   completion_filter::extended_attributes | completion_filter::security;
        default:
            return what.is_directory ? completion_filter::directory_name : completion_filter::file_name;
    }
}

[[nodiscard]] notify_action action_of(vfs::change_kind kind) noexcept {
    switch (kind) {
        case vfs::change_kind::added:
            return notify_action::added;
        case vfs::change_kind::removed:
            return notify_action::removed;
        case vfs::change_kind::renamed_old_name:
            return notify_action::renamed_old_name;
        case vfs::change_kind::renamed_new_name:
            return notify_action::renamed_new_name;
        case vfs::change_kind::modified:
        case vfs::change_kind::attributes:
            break;
    }
    return notify_action::modified;
}

}  // namespace

result<std::unique_ptr<notify_watch>> notify_watch::begin(vfs::change_feed& feed, vfs::node& directory,
                                                          const interest& wanted, counted by) {
    std::unique_ptr<notify_watch> fresh(new notify_watch(wanted, std::move(by)));
    auto watch = feed.watch(directory, wanted.recursive, *fresh);
    if (not watch) return failure(watch.error());
    fresh->watch_ = *std::move(watch);
    return fresh;
}

notify_watch::~notify_watch() {
    watch_.reset();  // nothing is called any more
    end(nt_status::notify_cleanup);
}

void notify_watch::wait(one_shot_event<nt_status>& notified) {
    event_wakes<nt_status> woken;
    const lock_guard held(mutex_);
    if (ended_by_ != nt_status::success) {
        woken.set(notified, ended_by_);
        return;
    }
    waiting_.push_back(&notified);
    wake_next(woken);
}

void notify_watch::forget(one_shot_event<nt_status>& notified) noexcept {
    event_wakes<nt_status> woken;
    const lock_guard held(mutex_);
    const std::size_t waited = std::erase(waiting_, &notified);
    ENSURE(waited == 0 or woken_ != &notified, "a woken waiter is not in the list");
    if (woken_ == &notified) woken_ = nullptr;
    wake_next(woken);
}

notify_watch::forgotten notify_watch::forget_changes() noexcept {
    ENSURE(not by_ or change_bytes_.amount() >= changes_.size() * sizeof(kept_change),
           "the changes that are kept are counted for their client");
    return {.changes = std::exchange(changes_, {}), .bytes = change_bytes_.take_all()};
}

nt_status notify_watch::take(wire::notify_writer& into) noexcept {
    forgotten taken;
    bool is_all = false;
    {
        const lock_guard held(mutex_);
        is_all = not std::exchange(has_lost_some_, false);
        taken = forget_changes();
    }
    for (const kept_change& change : taken.changes) {
        if (not is_all) break;
        is_all = into.put({.action = change.action, .name = change.path}) != wire::entry_outcome::no_room;
    }
    return is_all and into.count() != 0 ? nt_status::success : nt_status::notify_enum_dir;
}

void notify_watch::changed(const vfs::change& what) noexcept {
    if (wire::has_any(filter_, filters_passed(what))) keep(action_of(what.kind), what.path);
    // To Windows, a file (not a directory) of another name has other attributes.
    constexpr completion_filter of_renamed = completion_filter::attributes | completion_filter::creation;
    const bool is_renamed = what.kind == vfs::change_kind::renamed_new_name and not what.is_directory;
    if (is_renamed and wire::has_any(filter_, of_renamed)) keep(notify_action::modified, what.path);
    wake_next();
}

// One at least, however few are left: the watch is there.
bool notify_watch::may_watch(std::size_t directories) noexcept {
    return not by_ or directories_.resize(std::max(directories, std::size_t{1}));
}

void notify_watch::lose() noexcept {
    forgotten lost;
    const lock_guard held(mutex_);
    has_lost_some_ = true;
    lost = forget_changes();
}

void notify_watch::overflowed() noexcept {
    lose();
    wake_next();
}

// One write after another is one change.
bool notify_watch::is_known(notify_action action, const std::string& smb_path) const noexcept {
    return has_lost_some_ or (action == notify_action::modified and not changes_.empty() and
                              changes_.back().action == action and changes_.back().path == smb_path);
}

void notify_watch::keep(notify_action action, std::string_view path) {
    std::string smb_path(path);
    std::ranges::replace(smb_path, '/', '\\');
    bool is_full = false;
    {
        const lock_guard held(mutex_);
        is_full = changes_.size() >= limits::notify_changes_max;
        if (has_lost_some_ or (not is_full and is_known(action, smb_path))) return;
    }
    if (is_full) {
        if (by_) by_.quotas().rejections().add(limit::notify_changes, by_.name());
        return overflowed();
    }
    // Only this thread adds changes; others only take them.
    quota_hold bytes;
    if (by_) {
        bytes = by_.quotas().take(by_, limit::queued_change_bytes, sizeof(kept_change) + smb_path.capacity());
        if (bytes.amount() == 0) return overflowed();
    }
    const lock_guard held(mutex_);
    change_bytes_.absorb(std::move(bytes));
    changes_.push_back({.action = action, .path = std::move(smb_path)});
    ENSURE(changes_.size() <= limits::notify_changes_max, "one thread adds changes, up to their bound");
    ENSURE(not has_lost_some_, "nothing is kept once changes are lost");
}

void notify_watch::end(nt_status why) noexcept {
    ENSURE(why != nt_status::success, "a watch ends with an error status");
    event_wakes<nt_status> woken;
    const lock_guard held(mutex_);
    if (ended_by_ == nt_status::success) ended_by_ = why;
    for (one_shot_event<nt_status>* const one : std::exchange(waiting_, {}))
        woken.set(*one, ended_by_);
}

void notify_watch::wake_next() noexcept {
    event_wakes<nt_status> woken;
    const lock_guard held(mutex_);
    wake_next(woken);
}

void notify_watch::wake_next(event_wakes<nt_status>& woken) noexcept {
    const bool has_news = has_lost_some_ or not changes_.empty();
    if (woken_ != nullptr or waiting_.empty() or not has_news) return;
    woken_ = waiting_.front();
    waiting_.erase(waiting_.begin());
    woken.set(*woken_, nt_status::success);
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/file/cached_directories.hpp"

#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {

bool cached_directories::has(const vfs::file_key& directory) const noexcept {
    if (not has_any()) return false;
    const lock_guard held(mutex_);
    return directories_.contains(directory);
}

bool cached_directories::add(const vfs::file_key& directory, const void* watch, std::weak_ptr<open> by) {
    ENSURE(watch != nullptr, "a watch has an identity");
    const lock_guard held(mutex_);
    watched_directory& to = directories_[directory];
    if (to.watches.size() == limits::watches_per_cached_directory_max) return false;
    to.watches.emplace_back(watch, std::move(by));
    count_.store(directories_.size(), std::memory_order_seq_cst);
    return true;
}

void cached_directories::remove(const vfs::file_key& directory, const void* watch) noexcept {
    decltype(directories_)::node_type removed;  // destroyed without the mutex
    const lock_guard held(mutex_);
    const auto found = directories_.find(directory);
    ENSURE(found != directories_.end(), "a watch that ends has begun");
    ENSURE(
        std::erase_if(found->second.watches, [watch](const auto& each) { return each.first == watch; }) == 1,
        "a watch is of one directory");
    if (not found->second.watches.empty()) return;
    ENSURE(names_ >= found->second.names.size() and events_ >= found->second.events.size(),
           "the names and events of all directories are counted");
    names_ -= found->second.names.size();
    events_ -= found->second.events.size();
    removed = directories_.extract(found);
    count_.store(directories_.size(), std::memory_order_seq_cst);
}

// Forgets recorded states once there are too many.
void cached_directories::bound_names(watched_directory& of) {
    if (of.names.size() <= limits::own_changes_kept_max and names_ <= limits::own_changes_kept_total_max)
        return;
    names_ -= std::erase_if(of.names, [](const auto& each) { return each.second.in_progress == 0; });
}

void cached_directories::lose_events(watched_directory& of) noexcept {
    ENSURE(events_ >= of.events.size(), "the events of all directories are counted");
    events_ -= of.events.size();
    of.events.clear();
    of.has_lost_events = true;
    for (auto& each : of.names)
        each.second.left.reset();
    has_events_.store(true, std::memory_order_release);  // pairs with has_events()
}

void cached_directories::begin_change(const vfs::file_key& directory, std::string_view name,
                                      const std::optional<name_state>& now, bool writes) {
    const lock_guard held(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end()) return;
    watched_directory& in = found->second;
    const auto [at, is_new] = in.names.try_emplace(std::string(name));
    names_ += is_new ? 1 : 0;
    own_changes& own = at->second;
    if (const auto event = in.events.find(name); event != in.events.end() and own.in_progress == 0) {
        // A write changes the change time, but not the file.
        const bool is_same_file =
            now and * now and own.left and * own.left and (*now)->key == (*own.left)->key;
        const bool is_own = (now and own.left == now) or (writes and event->second and is_same_file);
        if (is_own) {
            in.events.erase(event);
            --events_;
        } else {
            lose_events(in);
        }
    }
    ++own.in_progress;
}

void cached_directories::end_change(const vfs::file_key& directory, std::string_view name,
                                    const std::optional<name_state>& left) {
    const lock_guard held(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end()) return;
    const auto [at, is_new] = found->second.names.try_emplace(std::string(name));
    names_ += is_new ? 1 : 0;
    // Zero if the directory was not cached when the change began.
    if (at->second.in_progress != 0) --at->second.in_progress;
    at->second.left = left;
    bound_names(found->second);
    // Those of this name waited for the end.
    if (not found->second.events.empty()) has_events_.store(true, std::memory_order_release);
}

void cached_directories::record_event(const vfs::file_key& directory, std::string_view name,
                                      bool is_content) {
    const lock_guard held(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end() or found->second.has_lost_events) return;
    watched_directory& in = found->second;
    if (in.events.size() == limits::directory_events_max or events_ == limits::directory_events_total_max)
        return lose_events(in);
    const auto [at, is_new] = in.events.try_emplace(std::string(name), is_content);
    events_ += is_new ? 1 : 0;
    at->second = at->second and is_content;
    has_events_.store(true, std::memory_order_release);  // pairs with has_events()
}

void cached_directories::record_loss(const vfs::file_key& directory) noexcept {
    const lock_guard held(mutex_);
    if (const auto found = directories_.find(directory); found != directories_.end())
        lose_events(found->second);
}

std::vector<cached_directories::events> cached_directories::take_events() {
    std::vector<events> taken;
    const lock_guard held(mutex_);
    has_events_.store(false, std::memory_order_relaxed);  // under the mutex, as all that set it
    for (auto& [key, of] : directories_) {
        if (of.is_being_examined or (of.events.empty() and not of.has_lost_events)) continue;
        events here{.directory = key, .by = {}, .names = {}};
        here.are_lost = std::exchange(of.has_lost_events, false);
        events_ -= std::erase_if(of.events, [&, &names = of.names](const auto& each) {
            const auto own = names.find(each.first);
            if (own != names.end() and own->second.in_progress != 0) return false;
            here.names.push_back({.name = each.first, .is_content = each.second});
            return true;
        });
        if (not here.are_lost and here.names.empty()) continue;
        for (const auto& watch : of.watches)
            here.by.push_back(watch.second);
        of.is_being_examined = true;
        taken.push_back(std::move(here));
    }
    return taken;
}

void cached_directories::end_examination(const vfs::file_key& directory) noexcept {
    const lock_guard held(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end()) return;
    found->second.is_being_examined = false;
    // Those that came in the meantime.
    if (not found->second.events.empty() or found->second.has_lost_events)
        has_events_.store(true, std::memory_order_release);  // pairs with has_events()
}

bool cached_directories::is_own_change(const vfs::file_key& directory, std::string_view name,
                                       const name_state& now) noexcept {
    const lock_guard held(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end()) return false;
    const auto own = found->second.names.find(name);
    if (own == found->second.names.end()) return false;
    // A change that has begun since then breaks the other leases at its end.
    if (own->second.in_progress != 0 or (own->second.left and *own->second.left == now)) return true;
    own->second.left.reset();
    return false;
}

}  // namespace sluice::smb::server

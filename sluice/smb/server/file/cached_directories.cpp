#include "sluice/smb/server/file/cached_directories.hpp"

#include <algorithm>
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

// Forgets recorded states once there are too many, but not that of `except`: of that directory, if
// it has its share of them or more, or else of the one with most, so that one client does not make
// all others forget theirs. The directories are searched only while this one has less than the
// average.
void cached_directories::bound_names(watched_directory& of, std::string_view except) {
    const bool is_full = of.names.size() > limits::own_changes_kept_max;
    ENSURE(names_ >= of.names.size(), "the recorded names of all directories are counted");
    if (not is_full and names_ <= limits::own_changes_kept_total_max) return;
    const auto names_in = [](const auto& each) { return each.second.names.size(); };
    const bool has_its_share = of.names.size() * directories_.size() >= names_;
    watched_directory& most =
        is_full or has_its_share ? of : std::ranges::max_element(directories_, {}, names_in)->second;
    names_ -= std::erase_if(
        most.names, [&](const auto& each) { return each.second.in_progress == 0 and each.first != except; });
}

// A write changes the change time, but not the file.
bool cached_directories::is_as_left(const own_changes& own, const name_state& now, bool is_written) noexcept {
    if (not own.left) return false;
    const bool is_same_file = now and * own.left and now->key == (*own.left)->key;
    return *own.left == now or (is_written and is_same_file);
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
    if (own.in_progress++ != 0) return;
    const bool is_as_before = now and is_as_left(own, *now, writes);
    const auto event = in.events.find(name);
    const bool has_event = event != in.events.end();
    const bool is_own_event = is_as_before or (has_event and event->second and writes);
    own.was_known = is_as_before or writes;
    ENSURE(not has_event or events_ != 0, "the events of all directories are counted");
    if ((own.left and now and not is_as_before) or (has_event and not is_own_event)) {
        lose_events(in);
    } else if (has_event) {
        in.events.erase(event);
        --events_;
    }
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
    bound_names(found->second, name);
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

bool cached_directories::is_own_change(const vfs::file_key& directory, const event& seen,
                                       const name_state& now, bool is_written) {
    const lock_guard held(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end()) return false;
    watched_directory& in = found->second;
    const auto at = in.names.find(seen.name);
    if (at == in.names.end()) return false;
    own_changes& own = at->second;
    if (own.in_progress != 0 and own.was_known) {
        events_ += in.events.try_emplace(seen.name, seen.is_content).second ? 1 : 0;
        return true;
    }
    if (own.in_progress == 0 and is_as_left(own, now, is_written)) return true;
    own.left.reset();
    return false;
}

void cached_directories::forget_states(const vfs::file_key& directory) noexcept {
    const lock_guard held(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end()) return;
    for (auto& each : found->second.names)
        each.second.left.reset();
}

}  // namespace sluice::smb::server

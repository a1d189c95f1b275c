#include "sluice/vfs/host/name/name_index.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/name/directory_names.hpp"

namespace sluice::vfs {
namespace {

constexpr std::uint32_t changes_of_names = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;

char32_t as_compared(const name_character& character) noexcept {
    return upcase(host_character(character.point));
}

// Finds a name exactly, because a directory that may be searched but not listed permits nothing
// else.
result<std::optional<std::string>> find_exactly(const io::handle& directory, std::string_view wanted) {
    struct stat status{};
    const io::terminated_path name(wanted);
    if (name.problem() != 0) return failure(error::with_path(name.problem(), "find", wanted));
    if (::fstatat(directory.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
        return std::string(wanted);
    if (errno == ENOENT) return std::nullopt;
    return failure(error::last("find", directory.descriptor()));
}

}  // namespace

std::size_t name_index::hash_as_shown::operator()(std::string_view name) const noexcept {
    // FNV-1a over the characters. An attacker may choose the input, so lookups in a directory of
    // colliding names are slow for its users, like in an unindexed directory.
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325ULL;
    for (std::size_t at = 0; at < name.size();) {
        const name_character next = character_at(name, at);
        hash = (hash ^ as_compared(next)) * 0x0000'0100'0000'01b3ULL;
        at += next.length;
    }
    return static_cast<std::size_t>(hash ^ (hash >> 32));
}

bool name_index::equal_as_shown::operator()(std::string_view a, std::string_view b) const noexcept {
    if (a == b) return true;
    std::size_t at_a = 0;
    std::size_t at_b = 0;
    while (at_a < a.size() and at_b < b.size()) {
        const name_character in_a = character_at(a, at_a);
        const name_character in_b = character_at(b, at_b);
        if (as_compared(in_a) != as_compared(in_b)) return false;
        at_a += in_a.length;
        at_b += in_b.length;
    }
    return at_a == a.size() and at_b == b.size();
}

name_index::name_index(const index_limits& bounds, reports_all_changes reach)
    : bounds_(bounds),
      reach_(reach),
      inotify_(bounds.directories_max == 0 ? -1 : ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

name_index::~name_index() {
    if (inotify_ >= 0) (void)::close(inotify_);
}

std::optional<std::string> name_index::choose(const name_set& names, std::string_view wanted) {
    const auto [first, last] = names.equal_range(wanted);
    const std::string* best = nullptr;
    for (auto each = first; each != last; ++each) {
        if (*each == wanted) return *each;
        if (best == nullptr or *each < *best) best = &*each;
    }
    if (best == nullptr) return std::nullopt;
    return *best;
}

result<std::optional<std::string>> name_index::find(const io::handle& directory, std::string_view wanted,
                                                    look where) {
    const auto status = io::status_of(directory, io::stat_fields::inode | io::stat_fields::changed);
    if (not status) return failure(status.error());
    if (account_identity::is_in_use() and not may_list(directory)) return find_exactly(directory, wanted);
    std::uint64_t reader = 0;
    if (where == look::in_index) {
        if (auto known = ask(directory, *status, wanted, reader)) return std::move(known->name);
    }

    const directory_id id{.device = status->device, .inode = status->inode};
    name_set names;
    const auto done = for_each_name(directory, [&](std::string_view name) {
        names.emplace(name);
        return true;
    });
    if (not done) {
        if (reader != 0) abandon(id, reader);
        if (done.error().code() == EACCES) return find_exactly(directory, wanted);
        return failure(done.error());
    }
    auto found = choose(names, wanted);
    if (reader != 0) hold(id, reader, names);
    return found;
}

std::optional<name_index::answer> name_index::ask(const io::handle& directory, const io::file_status& status,
                                                  std::string_view wanted, std::uint64_t& reader) {
    const directory_id id{.device = status.device, .inode = status.inode};
    const std::scoped_lock guard(mutex_);
    take_events();
    if (const auto held = by_id_.find(id); held != by_id_.end()) {
        held_directory& known = *held->second;
        if (not known.is_being_read and
            (reach_ == reports_all_changes::yes or known.changed == status.changed)) {
            ++counts_.answers;
            directories_.splice(directories_.begin(), directories_, held->second);
            return answer{.name = choose(known.names, wanted)};
        }
        if (known.is_being_read) {
            ++counts_.scans;
            return std::nullopt;
        }
        forget(held->second, true);
    }
    ++counts_.scans;
    const int watched = watch(directory);
    if (watched < 0) return std::nullopt;
    reader = ++last_reader_;
    directories_.push_front({.id = id,
                             .watch = watched,
                             .changed = status.changed,
                             .reader = reader,
                             .names = {},
                             .changes = {}});
    by_id_[id] = directories_.begin();
    by_watch_[watched] = directories_.begin();
    return std::nullopt;
}

name_index::held_directory* name_index::find_reading(const directory_id& id, std::uint64_t reader) noexcept {
    const auto held = by_id_.find(id);
    const bool is_it =
        held != by_id_.end() and held->second->is_being_read and held->second->reader == reader;
    return is_it ? &*held->second : nullptr;
}

void name_index::hold(const directory_id& id, std::uint64_t reader, name_set& names) {
    const std::scoped_lock guard(mutex_);
    held_directory* const here = find_reading(id, reader);
    if (here == nullptr) return;  // not watched, or dropped in the meantime
    for (const name_change& each : here->changes)
        (void)apply(names, each);
    here->changes = {};
    here->is_being_read = false;
    if (names.size() > bounds_.names_max) return forget(by_id_.find(id)->second, true);
    here->names = std::move(names);
    names_held_ += here->names.size();
    make_room();
}

void name_index::abandon(const directory_id& id, std::uint64_t reader) {
    const std::scoped_lock guard(mutex_);
    if (find_reading(id, reader) != nullptr) forget(by_id_.find(id)->second, true);
}

int name_index::watch(const io::handle& directory) noexcept {
    if (inotify_ < 0) return -1;
    const io::descriptor_path path(directory.descriptor());
    return ::inotify_add_watch(inotify_, path.c_str(), changes_of_names);
}

void name_index::take_events() {
    constexpr std::size_t event_bytes_max = sizeof(inotify_event) + NAME_MAX + 1;
    if (inotify_ < 0) return;
    alignas(inotify_event) std::array<char, 16384> buffer;
    for (unsigned reads = 0; reads != limits::change_reads_max;) {
        const ssize_t bytes = ::read(inotify_, buffer.data(), buffer.size());
        if (bytes <= 0) return;
        bool concerns_us = false;
        for (ssize_t at = 0; at < bytes;) {
            inotify_event event{};
            std::memcpy(&event, buffer.data() + at, sizeof event);
            // Padded with zeros to a multiple of its alignment.
            const char* const name = buffer.data() + at + sizeof event;
            concerns_us |=
                take(event.wd, event.mask, {name, event.len == 0 ? 0 : ::strnlen(name, event.len)});
            at += static_cast<ssize_t>(sizeof event + event.len);
        }
        // Events of directories that are no longer watched do not count, because the kernel adds no
        // further ones.
        if (concerns_us) ++reads;
        // More events would have fitted, so the queue is empty.
        if (buffer.size() - static_cast<std::size_t>(bytes) > event_bytes_max) return;
    }
    // The remaining events are treated as lost.
    ++counts_.overflows;
    forget_all();
}

bool name_index::take(int watch, std::uint32_t what, std::string_view name) {
    if ((what & IN_Q_OVERFLOW) != 0) {
        ++counts_.overflows;
        forget_all();
        return true;
    }
    const auto found = by_watch_.find(watch);
    if (found == by_watch_.end()) return false;  // the directory is no longer watched
    const auto which = found->second;
    if ((what & (IN_IGNORED | IN_UNMOUNT)) != 0) {
        forget(which, false);
        return true;
    }
    const name_change change{.name = std::string(name), .appears = (what & (IN_CREATE | IN_MOVED_TO)) != 0};
    if (not which->is_being_read) {
        names_held_ += static_cast<std::size_t>(apply(which->names, change));
    } else if (which->changes.size() < bounds_.names_max) {
        which->changes.push_back(change);
    } else {
        forget(which, true);
    }
    return true;
}

// Applies a change. The names were read after the watch was set, so they may already reflect it.
// Returns the increase in the number of names.
std::ptrdiff_t name_index::apply(name_set& names, const name_change& what) {
    const auto [first, last] = names.equal_range(what.name);
    const auto known = std::find(first, last, what.name);
    if (what.appears and known == last) {
        names.emplace(what.name);
        return 1;
    }
    if (what.appears or known == last) return 0;
    names.erase(known);
    return -1;
}

void name_index::forget(held_list::iterator which, bool is_watched) {
    if (is_watched) (void)::inotify_rm_watch(inotify_, which->watch);
    names_held_ -= which->names.size();
    by_watch_.erase(which->watch);
    by_id_.erase(which->id);
    directories_.erase(which);
}

void name_index::forget_all() {
    while (not directories_.empty())
        forget(directories_.begin(), true);
}

void name_index::make_room() {
    while (directories_.size() > 1 and
           (directories_.size() > bounds_.directories_max or names_held_ > bounds_.names_max))
        forget(std::prev(directories_.end()), true);
}

}  // namespace sluice::vfs

#include "sluice/vfs/host/host_change_feed.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "sluice/io/path/volume_status.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/host_node.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr std::uint32_t reported_events = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY |
                                          IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR |
                                          IN_EXCL_UNLINK;

// The second half of a rename is queued directly after the first, but a read may separate them.
constexpr auto rename_gap_max = std::chrono::milliseconds(2);

change_kind kind_of_change(std::uint32_t mask) noexcept {
    if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) return change_kind::added;
    if ((mask & (IN_DELETE | IN_MOVED_FROM)) != 0) return change_kind::removed;
    return (mask & IN_ATTRIB) != 0 ? change_kind::attributes : change_kind::modified;
}

// Those that end the search for directories to watch; any other belongs to one
// directory, which is left out.
bool is_out_of_watches(const error& why) noexcept {
    return why.code() == ENOSPC or why.code() == ENOMEM;
}

/// The identity of an account while this lives; without an account, nothing.
class acting_for {
public:
    explicit acting_for(const account_ptr& account) noexcept {
        if (account != nullptr) now_.emplace(*account);
    }

private:
    std::optional<account_identity::use> now_;
};

}  // namespace

// A directory that is watched on behalf of one watch.
struct host_change_feed::place {
    held_watch* owner = nullptr;
    int kernel_watch = -1;
    place* parent = nullptr;
    std::string name;  // the host's
    std::vector<std::unique_ptr<place>> children{};

    [[nodiscard]] auto find_child(std::string_view wanted) {
        return std::ranges::find_if(children, [&](const auto& each) { return each->name == wanted; });
    }
    // From the watched directory; the host's names.
    [[nodiscard]] std::string path() const {
        return parent == nullptr ? std::string() : join_path(parent->path(), name);
    }
    [[nodiscard]] std::string shown_path_of(std::string_view entry) const {
        std::string storage;
        std::string path(shown_name(entry, storage));
        for (const place* above = this; above->parent != nullptr; above = above->parent)
            path = join_path(shown_name(above->name, storage), path);
        return path;
    }
};

class host_change_feed::held_watch final : public queued_watch {
public:
    held_watch(host_change_feed& feed, change_listener& listener, io::path_handle directory, bool recursive)
        : queued_watch(listener), root(std::move(directory)), is_recursive(recursive), feed_(feed) {}
    ~held_watch() override { feed_.forget(*this); }  // before any member goes

    account_ptr account;
    io::path_handle root;
    bool is_recursive;
    std::unique_ptr<place> first;
    std::size_t places = 0;  // in the table

    // After there are fewer.
    void report_places() noexcept { (void)listener().may_watch(places); }

private:
    host_change_feed& feed_;
};

// Whether an account may list the directory that an event is about, as seen from a watched
// directory. Watches that have both in common, however many, have the answer in common: one
// event must cost little.
struct host_change_feed::listing_right {
    account_ptr account;
    int from = -1;               // the kernel's watch of the watched directory
    std::optional<int> watched;  // the kernel's watch of the one it is about; none: it may not

    [[nodiscard]] bool is_of(const held_watch& watch) const noexcept {
        const unix_account& one = account->account();
        const unix_account& other = watch.account->account();
        return from == watch.first->kernel_watch and one.user_id == other.user_id and
               one.group_id == other.group_id and one.groups == other.groups;
    }
};

host_change_feed::host_change_feed(host_tree& tree) noexcept : tree_(tree) {
    const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (descriptor < 0) {
        opened_ = failure(error::last("inotify_init"));
        return;
    }
    // Bytes to wait for and to read, like a pipe's.
    kernel_queue_ = io::pipe_handle(io::native_handle{
        .descriptor = descriptor, .kind = io::handle_kind::pipe, .readable = true, .nonblocking = true});
}

host_change_feed::~host_change_feed() {
    ENSURE(watches_.empty(), "a volume outlives its watches");
}

result<std::unique_ptr<change_watch>> host_change_feed::watch_as(const account_ptr& account, node& directory,
                                                                 bool recursive,
                                                                 change_listener& listener) noexcept {
    auto* const itself = dynamic_cast<host_node*>(&directory);
    if (itself == nullptr or itself->kind() != node_kind::directory) return failure({ENOTDIR, "watch"});
    // A call that waits for another file system must not hold the lock of the feed.
    const bool crosses = tree_.crossing_domain() == &itself->domain();
    if (crosses) return failure({EOPNOTSUPP, "watch"});
    const std::scoped_lock guard(mutex_);
    if (not opened_) return failure(opened_.error());
    const acting_for now(account);
    const io::descriptor_path path(itself->held().descriptor());
    // Confined to it: the directories to watch below are never behind a link or on another mount.
    auto root = io::path_handle::open(path.c_str(), io::confinement::beneath_one_mount_no_symlinks);
    if (not root) return failure(root.error());
    auto made = std::make_unique<held_watch>(*this, listener, std::move(*root), recursive);
    made->account = account;
    watches_.push_back(made.get());
    const auto first = add_place(*made, nullptr, made->root, {});
    if (not first) return failure(first.error());
    if (recursive) {
        if (const auto done = add_below(**first, report_content::no); not done) return failure(done.error());
    }
    return made;
}

bool host_change_feed::reports_all_changes(node& directory) noexcept {
    auto* const itself = dynamic_cast<host_node*>(&directory);
    if (itself == nullptr or tree_.crossing_domain() == &itself->domain()) return false;
    const auto volume = io::volume_of(itself->held());
    return volume and volume->reach == io::volume_reach::this_host;
}

result<host_change_feed::place*> host_change_feed::add_place(held_watch& owner, place* parent,
                                                             const io::handle& directory,
                                                             std::string_view name) {
    const bool has_room = places_.size() < limits::watched_directories_max;
    if (not has_room or not owner.listener().may_watch(owner.places + 1)) return failure({ENOSPC, "watch"});
    const io::descriptor_path path(directory.descriptor());
    const int watched = ::inotify_add_watch(kernel_queue_.descriptor(), path.c_str(), reported_events);
    if (watched < 0) {
        const error why = error::last("inotify_add_watch", directory.descriptor());
        owner.report_places();
        return failure(why);
    }
    ++owner.places;
    auto made = std::make_unique<place>(
        place{.owner = &owner, .kernel_watch = watched, .parent = parent, .name = std::string(name)});
    place* const added = made.get();
    places_.emplace(watched, added);
    (parent == nullptr ? owner.first : parent->children.emplace_back()) = std::move(made);
    return added;
}

// Watches every directory below that the thread may list. Directories that vanish while it does are
// skipped, because their removal is reported.
result<void> host_change_feed::add_below(place& above, report_content reports) {
    std::vector<place*> unseen{&above};
    std::vector<io::directory_entry> entries(limits::listed_names_per_batch);
    std::vector<char> storage(limits::listing_storage_bytes);
    while (not unseen.empty()) {
        place& here = *unseen.back();
        unseen.pop_back();
        held_watch& owner = *here.owner;
        const std::string path = here.path();
        const auto listed = io::directory_handle::open(owner.root, path.empty() ? std::string(".") : path);
        for (std::uint64_t position = 0; listed;) {
            const auto batch =
                listed->enumerate({.entries = entries, .storage = storage, .position = position});
            if (not batch or batch->entries.empty()) break;
            position = batch->next;
            for (const io::directory_entry& each : batch->entries) {
                if (tree_.is_excluded(each.name)) continue;
                const bool is_directory = each.type == io::file_type::directory;
                if (reports == report_content::yes)
                    queue_.add(owner, change_kind::added, is_directory, here.shown_path_of(each.name));
                if (not is_directory or here.find_child(each.name) != here.children.end()) continue;
                const auto below = io::path_handle::open(*listed, each.name);
                if (not below) continue;
                const auto added = add_place(owner, &here, *below, each.name);
                if (added)
                    unseen.push_back(*added);
                else if (is_out_of_watches(added.error()))
                    return failure(added.error());
            }
        }
    }
    return {};
}

// Takes a place, and those below, out of the table; the kernel's watch goes with
// the last of its places.
void host_change_feed::release(place& which) noexcept {
    for (const auto& each : which.children)
        release(*each);
    const auto [first, last] = places_.equal_range(which.kernel_watch);
    const bool is_only = std::distance(first, last) == 1;
    const auto found = std::find_if(first, last, [&](const auto& each) { return each.second == &which; });
    if (found == last) return;  // the kernel ended it
    places_.erase(found);
    --which.owner->places;
    if (is_only) (void)::inotify_rm_watch(kernel_queue_.descriptor(), which.kernel_watch);
}

void host_change_feed::forget(held_watch& which) noexcept {
    const std::scoped_lock guard(mutex_);
    if (which.first != nullptr) release(*which.first);
    std::erase(watches_, &which);
    queue_.forget(which);
}

void host_change_feed::take_events() {
    alignas(inotify_event) std::array<char, 16384> buffer;
    for (unsigned reads = 0; reads != limits::change_reads_max; ++reads) {  // the rest next time
        const ssize_t bytes = ::read(kernel_queue_.descriptor(), buffer.data(), buffer.size());
        if (bytes <= 0) return;
        for (ssize_t at = 0; at < bytes;) {
            inotify_event event{};
            std::memcpy(&event, buffer.data() + at, sizeof event);
            const char* const name = buffer.data() + at + sizeof event;
            events_.push_back({.kernel_watch = event.wd,
                               .mask = event.mask,
                               .cookie = event.cookie,
                               .name = {name, event.len == 0 ? 0 : ::strnlen(name, event.len)}});
            at += static_cast<ssize_t>(sizeof event + event.len);
        }
    }
}

io::task<bool> host_change_feed::co_changed() noexcept {
    if (not opened_) co_return false;
    if (kernel_queue_.multiplexer() == nullptr and not kernel_queue_.set_multiplexer(&tree_.multiplexer()))
        co_return false;
    const auto ready = co_await io::co_ready(kernel_queue_, io::direction::in);
    if (not ready) co_return false;
    take_events();
    if (not events_.empty() and (events_.back().mask & IN_MOVED_FROM) != 0) {
        (void)co_await io::co_ready(kernel_queue_, io::direction::in, deadline(rename_gap_max));
        take_events();
    }
    co_return true;
}

void host_change_feed::deliver() noexcept {
    const std::scoped_lock guard(mutex_);
    dispatch();
    queue_.deliver_all();
}

void host_change_feed::dispatch() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
        // Between two events, when no table is walked.
        if (queue_.size() >= limits::queued_changes_max) queue_.deliver_all();
        const kernel_event& event = events_[i];
        if ((event.mask & IN_Q_OVERFLOW) != 0) {
            overflow();
        } else if ((event.mask & IN_IGNORED) != 0) {
            end(event.kernel_watch);
        } else if ((event.mask & IN_MOVE_SELF) != 0) {
            dispatch_own_move(event.kernel_watch);
        } else if (event.name.empty() or tree_.is_excluded(event.name)) {
            continue;  // about the directory itself; its parent tells. Or about what no client sees
        } else if ((event.mask & IN_MOVED_FROM) != 0 and i + 1 < events_.size() and
                   (events_[i + 1].mask & IN_MOVED_TO) != 0 and events_[i + 1].cookie == event.cookie and
                   not tree_.is_excluded(events_[i + 1].name)) {
            dispatch_rename(event, events_[i + 1]);
            ++i;
        } else {
            dispatch_single(event);
        }
    }
    events_.clear();
}

// A watch that needs no changes costs little, however many there are.
void host_change_feed::queue_change(const place& where, change_kind what, bool is_directory,
                                    std::string_view name) {
    if (where.owner->listener().needs_no_changes()) return;
    queue_.add(*where.owner, what, is_directory, where.shown_path_of(name));
}

void host_change_feed::dispatch_single(const kernel_event& event) {
    const bool is_directory = (event.mask & IN_ISDIR) != 0;
    const change_kind what = kind_of_change(event.mask);
    // Copied: to follow a directory changes the table.
    std::vector<place*> concerned;
    for (auto [each, last] = places_.equal_range(event.kernel_watch); each != last; ++each)
        concerned.push_back(each->second);
    std::vector<listing_right> known;
    for (place* const where : concerned) {
        queue_change(*where, what, is_directory, event.name);
        if (not is_directory) continue;
        if (what == change_kind::added) appear(*where, event.name);
        if (what == change_kind::removed) remove_child(*where, event.name);
        if (what == change_kind::attributes) check_again(*where, event.name, known);
    }
    for (const listing_right& each : known) {
        // Renamed, or too many.
        const bool is_left = each.watched and not places_.contains(*each.watched);
        if (is_left) (void)::inotify_rm_watch(kernel_queue_.descriptor(), *each.watched);
    }
}

void host_change_feed::remove_child(place& where, std::string_view name) noexcept {
    const auto gone = where.find_child(name);
    if (gone == where.children.end()) return;
    release(**gone);
    where.children.erase(gone);
    where.owner->report_places();
}

// The permissions of a directory may have changed. Its name may lead to another one by now, so that
// the kernel's watch of the one that the account may list is compared with ours.
void host_change_feed::check_again(place& where, const std::string& name, std::vector<listing_right>& known) {
    const held_watch& owner = *where.owner;
    if (not owner.is_recursive or owner.account == nullptr) return;
    const std::optional<int> watched = right_of(where, name, known).watched;
    if (const auto child = where.find_child(name); child != where.children.end()) {
        if (watched == (*child)->kernel_watch) return;
        remove_child(where, name);
    }
    if (watched) appear(where, name);
}

const host_change_feed::listing_right& host_change_feed::right_of(const place& where, const std::string& name,
                                                                  std::vector<listing_right>& known) {
    const held_watch& owner = *where.owner;
    const auto found =
        std::ranges::find_if(known, [&](const listing_right& each) { return each.is_of(owner); });
    if (found != known.end()) return *found;
    return known.emplace_back(listing_right{.account = owner.account,
                                            .from = owner.first->kernel_watch,
                                            .watched = watch_of_listable(where, name)});
}

// The number the kernel watches a directory by, if the account of the watch may list it.
std::optional<int> host_change_feed::watch_of_listable(const place& where, const std::string& name) {
    const acting_for now(where.owner->account);
    const auto listed = io::directory_handle::open(where.owner->root, join_path(where.path(), name));
    if (not listed) return std::nullopt;
    const io::descriptor_path path(listed->descriptor());
    const int watched = ::inotify_add_watch(kernel_queue_.descriptor(), path.c_str(), reported_events);
    if (watched < 0) return std::nullopt;
    return watched;
}

// A directory has been made or moved in, or may be listed now.
void host_change_feed::appear(place& where, const std::string& name) {
    held_watch& owner = *where.owner;
    if (not owner.is_recursive or where.find_child(name) != where.children.end()) return;
    const acting_for now(owner.account);
    const auto directory = io::path_handle::open(owner.root, join_path(where.path(), name));
    if (not directory) return;  // gone again
    const auto added = add_place(owner, &where, *directory, name);
    const auto below = added ? add_below(**added, report_content::yes) : failure(added.error());
    // No more watches: from here on changes are lost, and the listener should know.
    if (not below and is_out_of_watches(below.error())) queue_.add_overflow(owner);
}

void host_change_feed::dispatch_rename(const kernel_event& from, const kernel_event& to) {
    const bool is_directory = (from.mask & IN_ISDIR) != 0;
    std::vector<place*> old_places;
    std::vector<place*> new_places;
    for (auto [each, last] = places_.equal_range(from.kernel_watch); each != last; ++each)
        old_places.push_back(each->second);
    for (auto [each, last] = places_.equal_range(to.kernel_watch); each != last; ++each)
        new_places.push_back(each->second);

    for (place* const old_place : old_places) {
        const auto same = std::ranges::find(new_places, old_place->owner, &place::owner);
        place* const new_place = same == new_places.end() ? nullptr : *same;
        queue_change(*old_place, new_place ? change_kind::renamed_old_name : change_kind::removed,
                     is_directory, from.name);
        if (new_place != nullptr)
            queue_change(*new_place, change_kind::renamed_new_name, is_directory, to.name);
        const auto moved = old_place->find_child(from.name);
        if (moved == old_place->children.end()) continue;
        std::unique_ptr<place> child = std::move(*moved);
        old_place->children.erase(moved);
        if (new_place == nullptr) {
            release(*child);
            old_place->owner->report_places();
            continue;
        }
        child->name = to.name;
        child->parent = new_place;
        new_place->children.push_back(std::move(child));
    }
    for (place* const new_place : new_places) {
        if (std::ranges::find(old_places, new_place->owner, &place::owner) != old_places.end()) continue;
        queue_change(*new_place, change_kind::added, is_directory, to.name);
        if (is_directory) appear(*new_place, to.name);
    }
}

// The kernel has ended a watch: the directory is gone. Or we have, and know.
void host_change_feed::end(int kernel_watch) {
    for (auto [each, last] = places_.equal_range(kernel_watch); each != last; ++each) {
        held_watch& owner = *each->second->owner;
        --owner.places;
        owner.report_places();
        if (each->second->parent == nullptr) queue_.add_end(owner);
    }
    places_.erase(kernel_watch);
}

void host_change_feed::dispatch_own_move(int kernel_watch) {
    const auto [first, last] = places_.equal_range(kernel_watch);
    for (auto each = first; each != last; ++each)
        if (each->second->parent == nullptr) queue_.add_move(*each->second->owner);
}

void host_change_feed::overflow() {
    for (held_watch* const each : watches_) {
        queue_.add_overflow(*each);
        // Directories may have been created without an event.
        const acting_for now(each->account);
        if (each->is_recursive and each->first != nullptr) (void)add_below(*each->first, report_content::no);
    }
}

}  // namespace sluice::vfs

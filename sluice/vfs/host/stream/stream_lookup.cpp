#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "sluice/io/path/fs_location.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/name/directory_names.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"

// The lookup of a file's streams in the stores that may have them.

namespace sluice::vfs {
namespace {

using as_process = account_identity::pause;
using found_place = std::optional<stream_directory::place>;
constexpr io::confinement of_a_store = io::confinement::beneath_one_mount_no_symlinks;

bool is_missing(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory;
}

// Renamed in between, or beneath a mount that this call may not cross, or that covers the file.
bool leads_elsewhere(const error& why) noexcept {
    const int code = why.code();
    return code == ENOENT or code == ENOTDIR or code == EXDEV or code == ELOOP;
}

result<found_place> open_in(const io::path_handle& store, std::string_view group,
                            const std::string& name) noexcept {
    auto above = io::path_handle::open(store, group);
    auto itself = above ? io::directory_handle::open(*above, name)
                        : result<io::directory_handle>(failure(above.error()));
    if (itself)
        return stream_directory::place{
            .store = {}, .above = std::move(*above), .itself = std::move(*itself), .name = name};
    if (is_missing(itself.error())) return std::nullopt;
    return failure(itself.error());
}

// Where the directory is after the check has moved it, although it is used.
result<found_place> open_lost(const io::path_handle& store, const stream_id& id, bool may_change) {
    const std::string name = id.text();
    auto lost = open_in(store, lost_streams_name, name);
    if (not lost or not*lost or not may_change) return lost;
    const std::string group = stream_group_of(id);
    const auto above = make_store_directory(store, group, stream_record{.kind = stream_record_kind::mark});
    if (not above) return failure(above.error());
    if (::renameat((*lost)->above.descriptor(), name.c_str(), above->descriptor(), name.c_str()) == 0 or
        errno == ENOENT or errno == ENOTEMPTY or errno == EEXIST)
        return open_in(store, group, name);
    return failure(error::last("restore streams"));
}

// Calls `visit(directory)` for the directories that lead from the root to a file, but not for the
// root, until it returns false. Each is opened relative to the one before: from the root, the time
// would be quadratic in the depth. Returns false if `visit` has.
template <class Visit>
result<bool> visit_path(const host_tree& tree, std::string_view path, Visit visit) {
    auto here = io::path_handle::open(tree.root(), ".", io::confinement::beneath_no_symlinks);
    if (not here) return failure(here.error());
    while (not path.empty()) {
        const std::string_view name = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        auto next = io::path_handle::open(*here, name);
        if (not next and leads_elsewhere(next.error())) return true;
        if (not next) return failure(next.error());
        here = std::move(next);
        const borrowed_directory confined(*here, of_a_store);
        const result<bool> more = visit(confined.get());
        if (not more or not*more) return more;
    }
    return true;
}

// The path of the directories that may have a store with the streams of a file. Empty also if the
// file has no name any more.
result<std::string> path_to(const host_tree& tree, const io::handle& file) {
    const auto status = io::status_of(file, io::stat_fields::type | io::stat_fields::links);
    if (not status) return failure(status.error());
    auto path = tree.present_path(file);
    if (not path and status->links == 0) return std::string();
    // It has another name, or was moved out, or its path is too long.
    if (not path) return failure({EIO, "find the path of", file.descriptor()});
    // A directory has streams, too, and may be the top of a file system.
    if (status->type == io::file_type::directory) return *std::move(path);
    const std::size_t slash = path->rfind('/');
    path->erase(slash == path->npos ? 0 : slash);
    return *std::move(path);
}

// Calls `visit(directory)` for each directory that may have a store with the streams of a file,
// until it returns false, or an error; the outermost directory first. If the file was moved during
// that, repeats those beneath the root. Errors: those of `visit`; EIO if the path of the file is
// not known; EAGAIN if it changes again and again.
template <class Visit>
result<void> visit_places(const host_tree& tree, const io::handle& file, Visit visit) {
    for (const io::path_handle& each : tree.store_places()) {
        const result<bool> more = visit(each);
        if (not more) return failure(more.error());
        if (not*more) return {};
    }
    auto path = path_to(tree, file);
    for (unsigned attempt = 0; attempt != limits::lookup_attempts_max; ++attempt) {
        if (not path) return failure(path.error());
        const result<bool> more = visit_path(tree, *path, visit);
        if (not more) return failure(more.error());
        if (not*more) return {};
        auto now = path_to(tree, file);
        if (now and *now == *path) return {};
        path = std::move(now);
    }
    return failure({EAGAIN, "find streams", file.descriptor()});
}

}  // namespace

bool stream_store::is_in_memory(std::uint64_t device) const noexcept {
    return tree_.root_is_in_memory and device == tree_.root_device;
}

result<std::optional<stream_directory>> stream_store::find_in(const io::path_handle& base,
                                                              const stream_file& facts,
                                                              const stream_id& id) const {
    auto store = open_store(base);
    if (not store) {
        if (is_missing(store.error())) return std::nullopt;
        return failure(store.error());
    }
    auto found = open_in(*store, stream_group_of(id), id.text());
    if (found and not*found) found = open_lost(*store, id, not tree_.options.read_only);
    // Between the two, another process may have moved it back.
    if (found and not*found) found = open_in(*store, stream_group_of(id), id.text());
    if (not found) return failure(found.error());
    if (not*found) return std::nullopt;
    const auto mark = load_stream_record((*found)->itself);
    if (not mark) return failure(mark.error());
    // Without a mark, its creation was interrupted: it is empty.
    const bool is_marked = *mark and (*mark)->kind == stream_record_kind::mark and (*mark)->id == id;
    if (not is_marked) return std::nullopt;
    const auto of_store = io::status_of(*store, io::stat_fields::inode);
    if (not of_store) return failure(of_store.error());
    (*found)->device = of_store->device;
    (*found)->store = std::move(*store);
    return stream_directory(std::move(**found), **mark, facts, is_in_memory(of_store->device));
}

result<stream_store::located> stream_store::locate(const io::handle& file, const stream_file& facts,
                                                   const stream_id& id) const {
    located best;  // one to copy, or none
    std::optional<error> refusal;
    const auto look = [&](const io::path_handle& place) -> result<bool> {
        auto found = find_in(place, facts, id);
        const bool is_base = &place == &tree_.store_base();
        if (not found) {
            if (may_be_own_store(place, found.error())) return failure(found.error());
            // Something else of a user: it matters only where new streams would be stored.
            if (is_base) refusal = found.error();
            return true;
        }
        if (not*found) return true;
        const bool is_here = (*found)->is_on_file_system_of_file();
        // A snapshot contains the streams as they were at its time.
        if (is_here or not best.streams) best = {.streams = std::move(*found), .is_in_base = is_base};
        return not is_here;
    };
    const auto visited = visit_places(tree_, file, look);
    if (not visited) return failure(visited.error());
    if (best.streams and best.streams->is_on_file_system_of_file()) return best;
    // Another process may have moved it to the first store, from one that was visited later.
    const auto base = base_of(file, facts);
    if (not base and base.error().code() != EOPNOTSUPP) return failure(base.error());
    auto again = base ? find_in(*base, facts, id) : result<std::optional<stream_directory>>(std::nullopt);
    if (again and *again and (*again)->is_on_file_system_of_file())
        return located{.streams = std::move(*again), .is_in_base = true};
    if (not best.streams and refusal) return failure(*refusal);
    if (not again and may_be_own_store(*base, again.error())) return failure(again.error());
    return best;
}

result<std::optional<stream_directory>> stream_store::find(const io::handle& file, const stream_file& facts,
                                                           const stream_id& id) const {
    const as_process now;
    auto found = locate(file, facts, id);
    if (not found) return failure(found.error());
    return std::move(found->streams);
}

result<std::optional<stream_directory>> stream_store::find_in_base(const io::handle& file,
                                                                   const stream_file& facts,
                                                                   const stream_id& id) const {
    const as_process now;
    auto found = locate(file, facts, id);
    if (not found) return failure(found.error());
    const bool may_move = found->streams and found->streams->is_own() and not tree_.options.read_only;
    if (may_move and not found->is_in_base) move_to_base(file, facts, *found->streams);
    return std::move(found->streams);
}

// The file may leave the directory of a nested store, and would not find it any more.
void stream_store::move_to_base(const io::handle& file, const stream_file& facts,
                                stream_directory& found) const {
    const auto base = base_of(file, facts);
    // No barrier, here and after the move: both stores are searched, and this may be an event loop.
    const auto store =
        base ? make_store(*base, store_durability::later) : result<io::path_handle>(failure(base.error()));
    if (not store) return;
    const auto here = io::status_of(found.store(), io::stat_fields::inode);
    const auto there = io::status_of(*store, io::stat_fields::inode);
    if (not here or not there or here->is_same_inode(*there)) return;
    const stream_id id = found.mark().id;
    const std::string name = id.text();
    const auto group =
        make_store_directory(*store, stream_group_of(id), stream_record{.kind = stream_record_kind::mark});
    if (not group) return;
    // On failure, another process was faster, or it can only be used where it is.
    (void)::renameat(found.above().descriptor(), name.c_str(), group->descriptor(), name.c_str());
    auto moved = find_in(*base, facts, id);
    if (moved and *moved and (*moved)->is_own()) found = std::move(**moved);
}

// The directory in which the store for new streams of a file is: the topmost on its file system.
result<io::path_handle> stream_store::base_of(const io::handle& file, const stream_file& facts) const {
    if (facts.device == tree_.root_device) return io::path_handle::open(tree_.store_base(), ".", of_a_store);
    std::optional<result<io::path_handle>> base;
    const auto visited = visit_places(tree_, file, [&](const io::path_handle& place) -> result<bool> {
        const auto status = io::status_of(place, io::stat_fields::inode);
        if (not status) return failure(status.error());
        if (status->device != facts.device) return true;
        base = io::path_handle::open(place, ".", of_a_store);
        return false;
    });
    if (not visited) return failure(visited.error());
    if (base) return *std::move(base);
    // Such as a single file that is mounted. In the store of another file system, its streams would
    // not be its own.
    return failure({EOPNOTSUPP, "create streams", file.descriptor()});
}

}  // namespace sluice::vfs

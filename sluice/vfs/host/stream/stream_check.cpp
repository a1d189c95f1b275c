#include "sluice/vfs/host/stream/stream_check.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sluice/io/path/confined_open.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/host/stream/stream_move.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr io::confinement limit = io::confinement::beneath_one_mount_no_symlinks;

// ENOENT: a server, or another check, was faster.
std::expected<void, std::string> outcome_of(const error& why) {
    return std::unexpected(why.code() == ENOENT ? std::string() : why.message());
}

result<io::handle> open_walked(const walked_entry& at) {
    const auto opened =
        io::open_at(io::anchor_directory{.descriptor = at.directory.descriptor(),
                                         .limit = io::confinement::beneath_no_symlinks},
                    io::terminated_path(at.entry.name), {.flags = O_PATH | O_NOFOLLOW, .operation = "open"});
    if (not opened) return failure(opened.error());
    return io::handle({.descriptor = *opened, .kind = io::handle_kind::path});
}

// Errors: those that may hide a reference.
result<std::optional<stream_record>> reference_of(const walked_entry& at) {
    std::array<std::byte, stream_record_bytes> storage;
    const bool is_root = at.entry.name == ".";
    const auto bytes =
        is_root ? io::fetch_xattr(at.directory, streams_attribute, storage)
                : io::fetch_xattr_at(at.directory, at.entry.name.data(), streams_attribute, storage);
    if (not bytes) {
        const int code = bytes.error().code();
        if (code == EACCES or code == EPERM or code == EIO) return failure(bytes.error());
        return std::nullopt;
    }
    const auto record = decode_stream_record(*bytes);
    if (not record or record->kind != stream_record_kind::reference) return std::nullopt;
    return record;
}

}  // namespace

stream_check::stream_check(host_volume& volume, const stream_check_options& options,
                           std::function<void(const std::string&)> report)
    : tree_(volume.tree()), options_(options), report_(std::move(report)) {}

result<stream_check_result> stream_check::run() {
    if (const auto opened = open_store(); not opened) return failure(opened.error());
    // Before the references: the directory of a new one is created after the reference.
    if (store_.is_valid()) list_directories();
    walk(tree_, {.file = [&](const walked_entry& at) { record_reference(at); },
                 .store = [&](const walked_entry& at) { check_nested_store(at); },
                 .failed = [&](const std::string& path, const error& why) { record_unreadable(path, why); },
                 .crosses_mounts = true});
    check_copies();
    check_directories();
    return result_;
}

result<void> stream_check::open_store() {
    auto store = stream_store(tree_).open_root();
    device_ = tree_.root_device;
    if (not store and store.error() == std::errc::no_such_file_or_directory) return {};
    if (not store) return failure(store.error());
    const auto status = io::status_of(*store, io::stat_fields::inode);
    if (not status) return failure(status.error());
    device_ = status->device;
    store_ = std::move(*store);
    return {};
}

void stream_check::list_directories() {
    const std::string name(stream_store_name);
    list_store(store_, {.streams =
                            [&](const listed_streams& each) {
                                stored_streams& known = stored_[each.id];
                                if (each.is_lost) {
                                    known.lost_since = time_of(each.modified);
                                    (each.is_being_removed ? known.is_being_removed : known.is_lost) = true;
                                } else {
                                    known.is_in_group = true;
                                    ++result_.directories;
                                }
                                // A lookup prefers the directory that is not in `lost`.
                                if (each.is_lost and known.is_in_group) return;
                                known.mark = each.mark;
                                known.stream_owner = each.stream_owner;
                            },
                        .stray = [&](const std::string& path) { record_stray(join_path(name, path)); },
                        .failed = [&](const std::string& path,
                                      const error& why) { record_unreadable(join_path(name, path), why); }});
}

// --- references

// Returns false for a further name of a file.
bool stream_check::is_counted_once(const walked_entry& at) {
    const io::file_status& status = at.entry.status;
    if (status.type != io::file_type::regular or status.links == 1) return true;
    return visited_.emplace(status.device, status.inode).second;
}

// As a server decides which file may use the streams. A reference that it ignores must not keep
// them: every user who has read one could keep the streams of another user.
stream_check::relation stream_check::relation_of(const stored_streams& streams,
                                                 const stream_file& file) const {
    const bool is_here = file.device == device_;
    if (is_here and file.is_described_by(*streams.mark)) return relation::own;
    const bool may_use = streams.mark->owner == file.user_id or streams.stream_owner == file.user_id;
    if (not may_use) return relation::foreign;
    return is_here ? relation::copy : relation::copy_elsewhere;
}

void stream_check::record_reference(const walked_entry& at) {
    const auto reference = reference_of(at);
    if (not reference) {
        // A directory is reported when it cannot be listed, which needs the same right.
        if (at.entry.type != io::file_type::directory or reference.error().code() != EACCES)
            record_unreadable(at.path, reference.error());
        return;
    }
    if (not*reference or not is_counted_once(at)) return;
    ++result_.referring_files;
    const auto found = stored_.find((*reference)->id);
    if (found == stored_.end()) return;  // in another store, or new, or without streams
    stored_streams& streams = found->second;
    const auto open = open_walked(at);
    const auto file = open ? stream_file::of(*open) : result<stream_file>(failure(open.error()));
    // Renamed in between, or the owner is not known: it may be the original.
    if (not file or not streams.mark) {
        streams.is_referenced = streams.has_own = true;
        return;
    }
    const relation is = relation_of(streams, *file);
    streams.has_own |= is == relation::own;
    streams.has_copies |= is == relation::copy;
    streams.is_referenced |= is != relation::foreign;
    if (is != relation::foreign or file->device != device_) return;
    ++result_.foreign;
    report_(shown(at.path) + ": refers to streams of another owner");
}

// --- copied and restored files

// In further walks, because only after the first is it known whether the original exists. The
// second finds originals that were moved during the first: a copy that took over the streams of one
// would change its content.
void stream_check::check_copies() {
    if (std::ranges::none_of(stored_, [](const auto& each) { return each.second.has_copies; })) return;
    walk_again([&](const walked_entry& at) { record_original(at); });
    walk_again([&](const walked_entry& at) { check_copy(at); });
}

void stream_check::walk_again(const std::function<void(const walked_entry&)>& visit) {
    visited_.clear();
    walk(tree_, {.file = visit,
                 .store = [](const walked_entry&) {},
                 .failed = [](const std::string&, const error&) {},
                 .crosses_mounts = true});
}

void stream_check::record_original(const walked_entry& at) {
    const auto reference = reference_of(at);
    const auto found = reference and * reference ? stored_.find((*reference)->id) : stored_.end();
    if (found == stored_.end() or found->second.has_own) return;
    const auto open = open_walked(at);
    const auto file = open ? stream_file::of(*open) : result<stream_file>(failure(open.error()));
    found->second.has_own =
        not file or not found->second.mark or relation_of(found->second, *file) == relation::own;
}

void stream_check::check_copy(const walked_entry& at) {
    const auto reference = reference_of(at);
    const auto found = reference and * reference ? stored_.find((*reference)->id) : stored_.end();
    if (found == stored_.end() or not found->second.has_copies or not is_counted_once(at)) return;
    stored_streams& streams = found->second;
    const auto open = open_walked(at);
    const auto file = open ? stream_file::of(*open) : result<stream_file>(failure(open.error()));
    if (not file or not streams.mark or relation_of(streams, *file) != relation::copy) return;
    // The original may be in a directory that could not be searched, even if that is accepted.
    if (streams.has_own or result_.unreadable != 0) {
        ++result_.copies;
        return report_(shown(at.path) + ": copied, and not changed since");
    }
    streams.has_own = true;
    repair_or_report(result_.restored, shown(at.path) + ": restored",
                     [&] { return claim(at, found->first); });
}

// The streams become those of this file. A further copy still refers to them.
stream_check::repair stream_check::claim(const walked_entry& at, const stream_id& id) const {
    const auto open = open_walked(at);
    if (not open) return outcome_of(open.error());
    const auto facts = stream_file::of(*open);
    if (not facts) return outcome_of(facts.error());
    auto streams = stream_store(tree_).find(*open, *facts, id);
    if (not streams) return outcome_of(streams.error());
    if (not*streams) return std::unexpected(std::string());
    const auto locked = io::directory_handle::open((*streams)->store(), ".");
    if (not locked) return outcome_of(locked.error());
    lock_streams(*locked);
    const auto present = load_stream_record(*open);
    if (not present) return outcome_of(present.error());
    const auto may_use = (*streams)->may_be_used();
    if (not may_use) return outcome_of(may_use.error());
    const bool is_wanted = *present and (*present)->kind == stream_record_kind::reference and
                           (*present)->id == id and (*streams)->is_on_file_system_of_file() and
                           not(*streams)->is_own() and * may_use;
    if (not is_wanted) return std::unexpected(std::string());  // a server was faster
    if (const auto claimed = (*streams)->claim(); not claimed) return outcome_of(claimed.error());
    stream_record own = (*streams)->mark();
    own.kind = stream_record_kind::reference;
    const auto stored = store_stream_record(*open, own, record_storing::replace);
    return stored ? repair() : outcome_of(stored.error());
}

// --- nested stores

// Servers find the streams of a file only in the store of the root and in those of the directories
// above it, so a file that is moved out of a nested share would lose them.
void stream_check::check_nested_store(const walked_entry& at) {
    if (at.entry.name != stream_store_name or at.entry.status.device != device_) return;
    // On another mount, even of the same file system, nothing can be moved from there.
    if (at.is_beyond_mount or at.path == stream_store_name) return;
    const auto store = stream_store::open_nested(at.directory);
    if (not store) {
        // EACCES: not created by this server.
        const int code = store.error().code();
        if (code != ENOENT and code != EACCES) record_unreadable(at.path, store.error());
        return;
    }
    const std::string path = at.path;
    std::vector<listed_streams> all;
    list_store(*store, {.streams = [&](const listed_streams& each) { all.push_back(each); },
                        .stray = [&](const std::string& stray) { record_stray(join_path(path, stray)); },
                        .failed = [&](const std::string& group,
                                      const error& why) { record_unreadable(join_path(path, group), why); }});
    for (const listed_streams& each : all)
        if (not each.is_being_removed) check_nested(*store, path, each);
    if (options_.repairs) (void)stream_store(tree_).remove_empty(at.directory);
}

void stream_check::check_nested(const io::path_handle& store, const std::string& path,
                                const listed_streams& each) {
    const std::string group(each.is_lost ? lost_streams_name : std::string_view(stream_group_of(each.id)));
    const std::string what = shown(join_path(path, join_path(group, each.id.text())));
    const auto from = io::path_handle::open(store, group);
    if (not from) return;  // removed in between
    const auto to = store_.is_valid() ? io::path_handle::open(store_, group)
                                      : result<io::path_handle>(failure({ENOENT, "open streams"}));
    const auto ambiguous = to ? is_move_ambiguous(*from, *to, each.id) : result<bool>(false);
    if (ambiguous and *ambiguous) {
        ++result_.split;
        return report_(what + ": " + std::string(stream_store_name) +
                       " has streams of this ID, too; only those are used");
    }
    repair_or_report(result_.nested, what + ": in a nested directory",
                     [&] { return move_to_root(*from, group, each.id); });
}

stream_check::repair stream_check::move_to_root(const io::path_handle& from, std::string_view group,
                                                const stream_id& id) {
    if (not store_.is_valid()) {
        auto made = stream_store(tree_).make_root();
        if (not made) return outcome_of(made.error());
        store_ = std::move(*made);
    }
    const auto to = make_store_directory(store_, group, {.kind = stream_record_kind::mark});
    if (not to) return std::unexpected(to.error().message());
    const auto moved = move_streams(from, *to, id);
    return moved ? repair() : outcome_of(moved.error());
}

// --- directories

void stream_check::check_directories() {
    retire_unreferenced();
    for (const auto& [id, each] : stored_) {
        const std::string name = "lost/" + id.text();
        if (each.is_being_removed)
            repair_or_report(result_.due, name + ": not removed completely",
                             [&] { return remove_lost(id, true); });
        // One that a file refers to is found there, unless there is another one.
        if (not each.is_lost or (each.is_referenced and not each.is_in_group)) continue;
        ++result_.lost;
        if (options_.now - each.lost_since < options_.lost_kept) continue;
        repair_or_report(result_.due, name + ": without a file for too long",
                         [&] { return may_remove() ? remove_lost(id, false) : refusal(); });
    }
}

void stream_check::retire_unreferenced() {
    for (const auto& [id, each] : stored_)
        if (each.is_in_group and not each.is_referenced and not is_new(id))
            repair_or_report(result_.unreferenced, id.text() + ": streams without a file",
                             [&] { return may_remove() ? retire(id) : refusal(); });
}

stream_check::repair stream_check::refusal() {
    return std::unexpected("not all files could be read");
}

// Created or changed since the check began, perhaps for a file that was visited before.
bool stream_check::is_new(const stream_id& id) const {
    const std::string path = join_path(stream_group_of(id), id.text());
    const auto status = io::status_at(store_, path, io::follow::no, io::stat_fields::changed);
    return not status or time_of(status->changed) > options_.now;
}

stream_check::repair stream_check::retire(const stream_id& id) const {
    const auto group = io::path_handle::open(store_, stream_group_of(id), limit);
    if (not group) return outcome_of(group.error());
    // Without streams, there is nothing to keep.
    if (::unlinkat(group->descriptor(), id.text().c_str(), AT_REMOVEDIR) == 0) return {};
    const auto moved = move_to_lost(store_, id);
    return moved ? repair() : outcome_of(moved.error());
}

stream_check::repair stream_check::remove_lost(const stream_id& id, bool is_being_removed) const {
    const std::string name = id.text();
    const std::string removed = name + std::string(removed_suffix);
    const auto lost = io::path_handle::open(store_, lost_streams_name, limit);
    if (not lost) return outcome_of(lost.error());
    if (not is_being_removed) {
        // A server may have moved it back, and here again.
        const auto status = io::status_at(*lost, name, io::follow::no, io::stat_fields::modified);
        if (not status) return outcome_of(status.error());
        if (options_.now - time_of(status->modified) < options_.lost_kept)
            return std::unexpected(std::string());
        if (::renameat(lost->descriptor(), name.c_str(), lost->descriptor(), removed.c_str()) != 0)
            return outcome_of(error::with_path(errno, "rename", name));
    }
    const auto directory = io::directory_handle::open(*lost, removed);
    if (not directory) return outcome_of(directory.error());
    std::vector<std::string> names;
    (void)for_each_entry(*directory, io::stat_fields::none,
                         [&](const io::directory_entry& each) { names.emplace_back(each.name); });
    for (const std::string& each : names)
        (void)::unlinkat(directory->descriptor(), each.c_str(), 0);
    if (::unlinkat(lost->descriptor(), removed.c_str(), AT_REMOVEDIR) == 0) return {};
    return outcome_of(error::with_path(errno, "remove", removed));
}

// --- reports

template <class Repair>
void stream_check::repair_or_report(std::uint64_t& problem, const std::string& what, Repair attempt) {
    if (not options_.repairs) {
        ++problem;
        return report_(what);
    }
    const repair done = attempt();
    if (not done and done.error().empty()) return;
    ++problem;
    report_(done ? what : what + "; not repaired: " + done.error());
    ++(done ? result_.repaired : result_.failed);
}

void stream_check::record_unreadable(const std::string& path, const error& why) {
    ++result_.unreadable;
    report_(shown(path) + ": cannot be read: " + why.message());
}

void stream_check::record_stray(const std::string& path) {
    ++result_.strays;
    report_(shown(path) + ": not a part of the store, which has only directories of IDs; move it elsewhere");
}

// A user chooses the length of a path.
std::string stream_check::shown(const std::string& path) {
    if (path.empty()) return ".";
    return path.size() <= limits::path_bytes_max ? path : path.substr(0, limits::path_bytes_max) + "...";
}

}  // namespace sluice::vfs

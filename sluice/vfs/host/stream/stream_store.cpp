#include "sluice/vfs/host/stream/stream_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

using as_process = account_identity::pause;

bool is_missing(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory;
}

// A link, or no directory, in place of the store.
bool is_foreign(const error& why) noexcept {
    return why.code() == ENOTDIR or why.code() == ELOOP;
}

// A store that others could have prepared, or could change, is not used.
result<void> check_store(const io::handle& store) noexcept {
    const auto status = io::status_of(store, io::stat_fields::owner | io::stat_fields::permissions);
    if (not status) return failure(status.error());
    constexpr unsigned rights_of_others = 077;
    if (status->user_id == ::geteuid() and (status->permission_bits & rights_of_others) == 0) return {};
    return failure(error::with_path(EACCES, "use streams of another account in", stream_store_name));
}

result<io::path_handle> open_store(const io::path_handle& base) noexcept {
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    const auto descriptor = io::open_at(base, io::terminated_path(stream_store_name),
                                        {.flags = flags, .operation = "open streams"});
    if (not descriptor) {
        if (is_foreign(descriptor.error()))
            return failure(error::with_path(EACCES, "open streams", stream_store_name));
        return failure(descriptor.error());
    }
    io::path_handle store({.descriptor = *descriptor, .kind = io::handle_kind::path},
                          io::confinement::beneath_one_mount_no_symlinks);
    if (const auto checked = check_store(store); not checked) return failure(checked.error());
    return store;
}

result<io::path_handle> make_store(const io::path_handle& base) noexcept {
    auto store = open_store(base);
    if (store or not is_missing(store.error())) return store;
    const auto made =
        make_store_directory(base, stream_store_name, stream_record{.kind = stream_record_kind::mark});
    if (not made) {
        if (is_foreign(made.error()))
            return failure(error::with_path(EACCES, "open streams", stream_store_name));
        return failure(made.error());
    }
    const auto around = io::directory_handle::open(base, ".");
    const auto durable = around ? around->barrier() : result<void>(failure(around.error()));
    // The server may be permitted to use a directory, but not to list it.
    if (not durable and durable.error().code() != EACCES) return failure(durable.error());
    return open_store(base);
}

result<std::optional<stream_directory::place>> open_in(const io::path_handle& store, std::string_view group,
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
result<std::optional<stream_directory::place>> open_lost(const io::path_handle& store, const stream_id& id,
                                                         bool may_change) {
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

std::uint64_t nanoseconds_of(io::file_status::time_point when) noexcept {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(when.time_since_epoch()).count());
}

// An account that may change a file, or see the names of its streams, may perhaps not read its
// attributes.
result<std::optional<stream_record>> load_reference(const io::handle& file) noexcept {
    const as_process now;
    return load_stream_record(file);
}

}  // namespace

result<stream_file> stream_file::of(const io::handle& file) noexcept {
    const auto status =
        io::status_of(file, io::stat_fields::inode | io::stat_fields::owner | io::stat_fields::born);
    if (not status) return failure(status.error());
    return stream_file{.device = status->device,
                       .inode = status->inode,
                       .born = status->born ? nanoseconds_of(*status->born) : 0,
                       .user_id = status->user_id,
                       .group_id = status->group_id};
}

bool stream_store::is_in_memory(std::uint64_t device) const noexcept {
    return tree_.root_is_in_memory and device == tree_.root_device;
}

// --- lookup

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

// The directories between the root and the file, the root's first; not the root itself, unless that
// is not the base of the store.
std::vector<std::string> stream_store::directories_of(const io::handle& file) const {
    std::vector<std::string> found;
    const auto path = tree_.present_path(file);
    if (not path) return found;
    if (tree_.has_outer_store()) found.emplace_back(".");
    for (std::size_t slash = path->find('/'); slash != path->npos; slash = path->find('/', slash + 1))
        found.emplace_back(path->substr(0, slash));
    // A directory has its streams, too, and may be the top of a file system.
    const auto type = io::status_of(file, io::stat_fields::type);
    if (type and type->type == io::file_type::directory and not path->empty()) found.push_back(*path);
    return found;
}

result<std::optional<stream_directory>> stream_store::find(const io::handle& file, const stream_file& facts,
                                                           const stream_id& id) const {
    const as_process now;
    auto best = find_in(tree_.store_base(), facts, id);
    if (best and *best and (*best)->is_on_file_system_of_file()) return best;
    for (const std::string& each : directories_of(file)) {
        const auto base =
            io::path_handle::open(tree_.root(), each, io::confinement::beneath_one_mount_no_symlinks);
        if (not base) continue;  // it was renamed in between
        auto found = find_in(*base, facts, id);
        if (found and *found) {
            // A snapshot contains the streams as they were at its time.
            if ((*found)->is_on_file_system_of_file()) return found;
            if (not best or not*best) best = std::move(found);
        } else if (best and not*best and not found and found.error().code() != EACCES) {
            // EACCES: a user has put something else there, where nothing of the server is expected.
            best = failure(found.error());
        }
    }
    return best;  // one to copy, none, or why it is not known
}

std::size_t stream_store::count(const io::handle& file, const stream_file& facts, const stream_id& id) const {
    const as_process now;
    std::size_t directories = 0;
    const auto count_in = [&](const io::path_handle& base) {
        const auto found = find_in(base, facts, id);
        if (found and *found and (*found)->is_on_file_system_of_file()) ++directories;
    };
    count_in(tree_.store_base());
    for (const std::string& each : directories_of(file)) {
        const auto base =
            io::path_handle::open(tree_.root(), each, io::confinement::beneath_one_mount_no_symlinks);
        if (base) count_in(*base);
    }
    return directories;
}

// The owner decides which copies may use the streams, and whose quota they count in.
void stream_store::follow_owner(stream_directory& streams, const stream_file& facts) const {
    if (tree_.options.read_only or not streams.is_own() or streams.mark().owner == facts.user_id) return;
    (void)streams.claim();  // otherwise the next lookup tries again
}

result<std::optional<stream_directory>> stream_store::find(const io::handle& file) const {
    const auto record = load_reference(file);
    if (not record) return failure(record.error());
    if (not*record or (*record)->kind != stream_record_kind::reference) return std::nullopt;
    const auto facts = stream_file::of(file);
    if (not facts) return failure(facts.error());
    auto found = find(file, *facts, (*record)->id);
    if (not found or not*found) return found;
    follow_owner(**found, *facts);
    // A file that refers to streams of another must have the same owner: a user who knows the
    // reference cannot read them by a file of their own.
    const bool may_use = (*found)->is_own() or (*found)->mark().owner == facts->user_id;
    if (not may_use) return std::nullopt;
    return found;
}

// --- creation

// The directory in which the store for new streams of a file is: the topmost on its file system.
result<io::path_handle> stream_store::base_of(const io::handle& file, const stream_file& facts) const {
    constexpr auto limit = io::confinement::beneath_one_mount_no_symlinks;
    const auto device_of_base = io::status_of(tree_.store_base(), io::stat_fields::inode);
    if (not device_of_base) return failure(device_of_base.error());
    if (facts.device == device_of_base->device) return io::path_handle::open(tree_.store_base(), ".", limit);
    for (const std::string& each : directories_of(file)) {
        auto base = io::path_handle::open(tree_.root(), each, limit);
        const auto status = base ? io::status_of(*base, io::stat_fields::inode)
                                 : result<io::file_status>(failure(base.error()));
        if (status and status->device == facts.device) return base;
    }
    // Such as a single file that is mounted. In the store of another file system, its streams would
    // not be its own.
    return failure({EOPNOTSUPP, "create streams", file.descriptor()});
}

result<stream_directory> stream_store::create_for(const io::handle& file, const stream_file& facts,
                                                  const stream_id& id) const {
    const as_process now;
    const auto base = base_of(file, facts);
    if (not base) return failure(base.error());
    auto store = make_store(*base);
    if (not store) return failure(store.error());
    auto group =
        make_store_directory(*store, stream_group_of(id), stream_record{.kind = stream_record_kind::mark});
    if (not group) return failure(group.error());
    const stream_record mark = facts.record(stream_record_kind::mark, id);
    auto made = make_store_directory(*group, id.text(), mark);
    if (not made) return failure(made.error());
    const auto present = load_stream_record(*made);
    if (not present) return failure(present.error());
    // Not if it belongs to another file, which has created it in between.
    const bool is_own = *present and (*present)->id == id and facts.is_described_by(**present);
    if (not is_own) return failure({EAGAIN, "create streams"});
    return stream_directory({.store = std::move(*store),
                             .above = std::move(*group),
                             .itself = std::move(*made),
                             .name = id.text(),
                             .device = facts.device},
                            **present, facts, is_in_memory(facts.device));
}

result<stream_directory> stream_store::separate(const io::handle& file, const stream_file& facts,
                                                const stream_record& replaced,
                                                const copied_streams& copied) const {
    const stream_id id = stream_id::create(tree_.random());
    auto fresh = create_for(file, facts, id);
    if (not fresh) return fresh;
    const auto refuse = [&](const error& why) {
        fresh->remove_all();
        return failure(why);
    };
    // One at a time, in all servers. A lock of the whole store suffices, because copied files are
    // rare.
    std::optional<io::directory_handle> locked;
    {
        const as_process now;
        const auto base = base_of(file, facts);
        auto store = base ? io::directory_handle::open(*base, stream_store_name)
                          : result<io::directory_handle>(failure(base.error()));
        if (not store) return refuse(store.error());
        locked = std::move(*store);
        lock_streams(*locked);
    }
    const auto present = load_reference(file);
    if (not present) return refuse(present.error());
    if (*present != replaced) return refuse({EAGAIN, "separate streams"});
    if (copied.from != nullptr) {
        const auto done = fresh->copy_from(*copied.from, copied.except);
        if (not done) return refuse(done.error());
    }
    const stream_record reference = facts.record(stream_record_kind::reference, id);
    if (const auto stored = store_stream_record(file, reference, record_storing::replace); not stored)
        return refuse(stored.error());
    return fresh;
}

// The directory of a file that has a reference already.
result<stream_directory> stream_store::open_or_separate(const io::handle& file, const stream_file& facts,
                                                        const stream_record& reference,
                                                        std::string_view removed) const {
    auto found = find(file, facts, reference.id);
    if (not found) return failure(found.error());
    if (*found and (*found)->is_own()) {
        follow_owner(**found, facts);
        return std::move(**found);
    }
    if (not*found and facts.is_described_by(reference)) return create_for(file, facts, reference.id);
    const bool may_use = *found and (*found)->mark().owner == facts.user_id;
    return separate(file, facts, reference, {.from = may_use ? &**found : nullptr, .except = removed});
}

result<stream_directory> stream_store::find_or_create(const io::handle& file,
                                                      std::string_view removed) const {
    const auto facts = stream_file::of(file);
    if (not facts) return failure(facts.error());
    result<stream_directory> made = failure({EAGAIN, "create streams"});
    for (unsigned attempt = 0; attempt != limits::lookup_attempts_max; ++attempt) {
        const auto record = load_reference(file);
        if (not record) return failure(record.error());
        if (not*record) {
            const stream_record fresh =
                facts->record(stream_record_kind::reference, stream_id::create(tree_.random()));
            const auto stored = store_stream_record(file, fresh, record_storing::only_if_none);
            if (not stored and stored.error().code() != EEXIST) return failure(stored.error());
            made = stored ? create_for(file, *facts, fresh.id)
                          : result<stream_directory>(failure({EIO, "read the reference to streams"}));
        } else if ((*record)->kind != stream_record_kind::reference) {
            return failure({EACCES, "create streams", file.descriptor()});
        } else {
            made = open_or_separate(file, *facts, **record, removed);
        }
        if (made) return made;
        const int code = made.error().code();
        // Removed in between, or changed by another server.
        if (code != ENOENT and code != EAGAIN and code != EIO) return made;
    }
    return made;
}

result<void> stream_store::forget_copied(const io::handle& file) const {
    const auto found = find(file);
    if (not found) return failure(found.error());
    if (not*found or (*found)->is_own()) return {};
    const auto reference = load_reference(file);
    const auto facts = stream_file::of(file);
    if (not reference or not*reference or not facts) return failure({EIO, "forget streams"});
    const auto own = separate(file, *facts, **reference, {});
    if (own) own->remove_if_empty();
    return own ? result<void>() : failure(own.error());
}

// --- removal

bool stream_store::remove_empty(const io::path_handle& directory) const noexcept {
    const as_process now;
    const auto store = open_store(directory);
    if (not store) return false;
    const auto listed = io::directory_handle::open(*store, ".");
    if (not listed) return false;
    if (const auto lost = io::directory_handle::open(*store, lost_streams_name)) move_lost_from(*lost);
    (void)for_each_entry(*listed, io::stat_fields::none, [&](const io::directory_entry& group) {
        (void)::unlinkat(store->descriptor(), group.name.data(), AT_REMOVEDIR);
    });
    return ::unlinkat(directory.descriptor(), std::string(stream_store_name).c_str(), AT_REMOVEDIR) == 0;
}

// Lost streams must not keep a directory that clients see as empty.
void stream_store::move_lost_from(const io::directory_handle& lost) const noexcept {
    const auto root = make_root();
    const auto to = root ? make_store_directory(*root, lost_streams_name, {.kind = stream_record_kind::mark})
                         : result<io::directory_handle>(failure(root.error()));
    if (not to) return;
    std::vector<std::string> names;
    (void)for_each_entry(lost, io::stat_fields::none,
                         [&](const io::directory_entry& each) { names.emplace_back(each.name); });
    for (const std::string& each : names)
        (void)::renameat(lost.descriptor(), each.c_str(), to->descriptor(), each.c_str());
}

std::optional<error> stream_store::problem() const {
    const as_process now;
    const auto store = open_store(tree_.store_base());
    if (store) return std::nullopt;
    if (not is_missing(store.error())) return store.error();
    const bool may_create =
        tree_.options.read_only or ::faccessat(tree_.store_base().descriptor(), ".", W_OK, AT_EACCESS) == 0;
    if (may_create) return std::nullopt;
    return error::with_path(errno, "create", stream_store_name);
}

result<io::path_handle> stream_store::open_root() const {
    const as_process now;
    return open_store(tree_.store_base());
}

result<io::path_handle> stream_store::open_nested(const io::path_handle& directory) {
    const as_process now;
    return open_store(directory);
}

result<io::path_handle> stream_store::make_root() const {
    const as_process now;
    return make_store(tree_.store_base());
}

outlived_streams::outlived_streams(const host_tree& tree, const io::handle& file) noexcept : file_(file) {
    if (not tree.keeps_attributes) return;
    const as_process now;  // a user who may remove a file may perhaps not read its attributes
    auto found = stream_store(tree).find(file);
    if (found and *found and (*found)->is_own()) found_ = std::move(*found);
}

void outlived_streams::retire_if_unused() noexcept {
    if (not found_) return;
    const auto status = io::status_of(file_, io::stat_fields::links);
    if (status and status->links == 0) found_->retire();
}

}  // namespace sluice::vfs

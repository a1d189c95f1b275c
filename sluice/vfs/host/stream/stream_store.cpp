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
    auto found = find_in_base(file, *facts, (*record)->id);
    if (not found or not*found) return found;
    follow_owner(**found, *facts);
    // A file that refers to streams of another must have the same owner: a user who knows the
    // reference cannot read them by a file of their own.
    const auto may_use = (*found)->may_be_used();
    if (not may_use) return failure(may_use.error());
    if (not*may_use) return std::nullopt;
    return found;
}

// --- creation

result<stream_directory> stream_store::create_for(const io::handle& file, const stream_file& facts,
                                                  const stream_id& id) const {
    const as_process now;
    const auto base = base_of(file, facts);
    if (not base) return failure(base.error());
    auto store = make_store(*base);
    if (not store) return failure(store.error());
    const auto of_store = io::status_of(*store, io::stat_fields::inode);
    if (not of_store) return failure(of_store.error());
    // Such as a subvolume: the streams would never be the file's own.
    if (of_store->device != facts.device) return failure({EOPNOTSUPP, "create streams", file.descriptor()});
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
        (void)fresh->remove_streams();  // otherwise, the check finds them
        return failure(why);
    };
    // Before the lock, because others wait for it, also on event loops.
    if (copied.from != nullptr) {
        const auto done = fresh->copy_from(*copied.from, copied.except);
        if (not done) return refuse(done.error());
    }
    // One at a time, in all servers. A lock of the whole store suffices, because it is short.
    const auto store = [&] {
        const as_process now;
        return io::directory_handle::open(fresh->store(), ".");
    }();
    if (not store) return refuse(store.error());
    lock_streams(*store);
    const auto present = load_reference(file);
    if (not present) return refuse(present.error());
    if (*present != replaced) return refuse({EAGAIN, "separate streams"});
    const stream_record reference = facts.record(stream_record_kind::reference, id);
    if (const auto stored = store_stream_record(file, reference, record_storing::replace); not stored)
        return refuse(stored.error());
    return fresh;
}

// The directory of a file that has a reference already.
result<stream_directory> stream_store::open_or_separate(const io::handle& file, const stream_file& facts,
                                                        const stream_record& reference,
                                                        std::string_view removed) const {
    auto found = find_in_base(file, facts, reference.id);
    if (not found) return failure(found.error());
    if (*found and (*found)->is_own()) {
        follow_owner(**found, facts);
        return std::move(**found);
    }
    if (not*found and facts.is_described_by(reference)) return create_for(file, facts, reference.id);
    const auto may_use = *found ? (*found)->may_be_used() : result<bool>(false);
    if (not may_use) return failure(may_use.error());
    return separate(file, facts, reference, {.from = *may_use ? &**found : nullptr, .except = removed});
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

// Gives a copied file a new reference, without the streams of the original.
result<void> stream_store::forget_copied(const io::handle& file) const {
    const auto reference = load_reference(file);
    const auto facts = stream_file::of(file);
    if (not reference or not*reference or not facts) return failure({EIO, "forget streams"});
    const auto own = separate(file, *facts, **reference, {});
    if (own) own->remove_if_empty();
    return own ? result<void>() : failure(own.error());
}

// --- removal

result<void> stream_store::remove_all_large(const io::handle& file) const {
    const auto found = find(file);
    if (not found) return failure(found.error());
    if (not*found) return {};
    return (*found)->is_own() ? (*found)->remove_streams() : forget_copied(file);
}

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
    if (store) {
        const auto status = io::status_of(*store, io::stat_fields::inode);
        if (not status) return status.error();
        if (status->device == tree_.root_device) return std::nullopt;
        return error::with_path(EOPNOTSUPP, "use streams of another file system in", stream_store_name);
    }
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

#include "sluice/vfs/host/host_node.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/symlink_handle.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/domain/domain_table.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_compression.hpp"
#include "sluice/vfs/host/host_listing.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/host_place.hpp"
#include "sluice/vfs/host/lost_name.hpp"
#include "sluice/vfs/host/new_object.hpp"
#include "sluice/vfs/host/recycle_bin.hpp"
#include "sluice/vfs/host/stream/host_stream.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr std::size_t attribute_names_bytes = 1024;  // more are asked for one by one

std::string_view last_component(std::string_view path) noexcept {
    return split_path(path).name;
}

}  // namespace

host_node::host_node(host_tree& tree, io::handle held, const io::file_status& status, std::string_view path)
    : node(tree.domain_of_found()),
      tree_(tree),
      is_root_(tree.is_root(status)),
      found_as_(kind_of(status.type)),
      kind_(found_as_),
      held_(std::move(held)),
      named_by_(&held_),
      key_(key_of(status)),
      path_(path, &node_memory()) {}

host_node::host_node(host_tree& tree, host_tree::opened_file opened, std::string_view path)
    : node(tree.domain_of_found()),
      tree_(tree),
      is_root_(tree.is_root(opened.status)),
      found_as_(kind_of(opened.status.type)),
      kind_(found_as_),
      named_by_(opened.file.native().writable ? &writing_ : &reading_),
      key_(key_of(opened.status)),
      path_(path, &node_memory()) {
    io::file_handle& data = opened.file.native().writable ? writing_ : reading_;
    data = std::move(opened.file);
    asked_by_.store(&data, std::memory_order_relaxed);
    if (opened.is_nonblocking) nonblocking_.store(&data, std::memory_order_relaxed);
}

result<node_ptr> make_host_node(host_tree& tree, io::handle held, std::string_view path) noexcept {
    const auto status =
        io::status_of(held, io::stat_fields::type | io::stat_fields::inode | io::stat_fields::permissions);
    if (not status) return failure(status.error());
    if (tree.is_excluded(held, *status)) return failure(error::with_path(ENOENT, "find", path));
    return std::make_unique<host_node>(tree, std::move(held), *status, path);
}

// Outside of a call, a file system that may hang is not asked whether a name is still there.
std::string host_node::present_path() const {
    return tree_.present_path(held(), domain().may_call_here()).value_or(known_path());
}

std::string host_node::path() const {
    return shown_path(present_path());
}

std::string host_node::location() const {
    return link_of(held());
}

const io::handle& host_node::asked() const noexcept {
    // acquire: pairs with the release in open_data().
    const io::handle* const data = asked_by_.load(std::memory_order_acquire);
    return data != nullptr ? *data : held();
}

bool host_node::can_have_attributes() const noexcept {
    return tree_.keeps_attributes and (kind() == node_kind::file or kind() == node_kind::directory);
}

// The names first: most files have none, and that is all then.
result<private_attributes> host_node::ask_private_attributes() const noexcept {
    private_attributes own{.has_security = true, .has_streams = true};
    std::array<char, attribute_names_bytes> storage;
    const auto names = io::list_xattrs(asked(), storage);
    bool has_metadata = true;
    if (names) {
        has_metadata = own.has_security = own.has_streams = false;
        for (std::string_view rest = *names; not rest.empty();) {
            const std::string_view name = io::take_xattr_name(rest);
            has_metadata = has_metadata or name == metadata_attribute;
            own.has_security = own.has_security or name == security_attribute;
            own.has_streams = own.has_streams or name == streams_attribute;
        }
    }
    if (not has_metadata) return own;
    auto stored = load_metadata(asked());
    if (not stored) return failure(stored.error());
    own.metadata = *std::move(stored);
    return own;
}

result<private_attributes> host_node::private_attributes_at(time_point change_time) noexcept {
    if (not can_have_attributes()) return private_attributes{};
    const file_key itself = key();
    if (const auto known = tree_.attributes.find(itself, change_time)) return *known;
    const result<private_attributes> own = ask_private_attributes();
    constexpr auto unambiguous_after = std::chrono::milliseconds(100);
    const bool is_unambiguous = std::chrono::system_clock::now() - change_time > unambiguous_after;
    if (own and is_unambiguous) tree_.attributes.record(itself, change_time, *own);
    return own;
}

result<metadata> host_node::status() noexcept {
    const auto found = io::status_of(held(), node_fields);
    if (not found) return failure(found.error());
    return status_from(*found);
}

result<metadata> host_node::status_from(const io::file_status& found) noexcept {
    const auto own = private_attributes_at(time_of(found.changed));
    if (not own) return failure(own.error());
    return status_from(found, *own);
}

metadata host_node::status_from(const io::file_status& found, const private_attributes& own) noexcept {
    // relaxed: nothing is published with it.
    if (not own.has_streams) without_streams_at_.store(time_of(found.changed), std::memory_order_relaxed);
    const std::scoped_lock guard(name_mutex_);
    metadata shown = metadata_of(found, own.metadata, last_component(path_), tree_.dots());
    tree_.add_implied_attributes(shown, last_component(path_));
    shown.has_security = own.has_security;
    return shown;
}

void host_node::go_by(std::string_view path) {
    const std::scoped_lock guard(name_mutex_);
    path_ = path;
}

result<void> host_node::change(const metadata_change& wanted) noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    const auto before = status();
    if (not before) return failure(before.error());
    if (wanted.is_compressed and *wanted.is_compressed != before->is_compressed) {
        if (const auto done = mark_compressed(asked(), *wanted.is_compressed); not done) return done;
    }
    return apply_change(held(), wanted, *before);
}

result<void> host_node::may_move() const noexcept {
    if (is_root_) return failure({EBUSY, "change the root's name"});
    if (tree_.is_recycle_bin(key(), held())) return failure({EACCES, "change the name of the recycle bin"});
    return tree_.may_change();
}

// The creation of the first large stream changes the change time, except within the tick of the
// kernel's clock in which the attributes were read. Streams that are missed then are found by
// `sluice streams check`.
bool host_node::may_have_large_streams() const noexcept {
    if (not tree_.keeps_attributes) return false;
    const auto status = io::status_of(held(), io::stat_fields::changed);
    return not status or time_of(status->changed) != without_streams_at_.load(std::memory_order_relaxed);
}

// Large streams in the store of a directory that once was a share of its own would not be found
// elsewhere: finding them moves them to the store of this share. Without them, the file still
// moves.
result<void> host_node::bring_streams() noexcept {
    if (not may_have_large_streams()) return {};
    const auto found = stream_store(tree_).find(held());
    if (not found and found.error() != std::errc::no_such_file_or_directory) return failure(found.error());
    return {};
}

result<void> host_node::rename(std::string_view path, when_taken taken) noexcept {
    return tree_.as_crossing(rename_within(path, taken));
}

result<void> host_node::rename_within(std::string_view path, when_taken taken) noexcept {
    if (const auto may = may_move(); not may) return may;
    (void)bring_streams();
    for (unsigned attempt = 0;; ++attempt) {
        const auto there = tree_.place(path);
        if (not there) return failure(there.error());
        const auto done = there->taken ? rename_over(*there, taken)
                                       : io::relink(held(), tree_.root(), there->path, io::replace::no);
        if (done) {
            go_by(there->path);
            return {};
        }
        // Taken, or free, since we looked.
        const int code = done.error().code();
        const bool has_changed =
            there->taken ? code == ENOENT : code == EEXIST and taken == when_taken::replace;
        if (not has_changed or attempt + 1 == limits::lookup_attempts_max) return done;
    }
}

// The name is taken: by another file, by another name of this one, or by this name in other case.
result<void> host_node::rename_over(const host_place& there, when_taken taken) {
    const auto itself = io::status_of(held(), io::stat_fields::inode);
    if (not itself) return failure(itself.error());
    const auto other = io::status_at(tree_.root(), *there.taken, io::follow::no, io::stat_fields::inode);
    if (not other) return failure(other.error());
    const bool is_own = other->is_same_inode(*itself) and present_path() == *there.taken;
    if (not is_own) {
        if (taken == when_taken::refuse) return failure(error::with_path(EEXIST, "rename", there.path));
        // Between two names of one file rename(2) does nothing, where Windows takes the old one
        // away.
        const auto done =
            other->is_same_inode(*itself) ? io::unlink(held()) : replace_by(held(), *there.taken);
        if (not done) return done;
        if (other->is_same_inode(*itself)) return hold_again(*there.taken);
    }
    if (there.path == *there.taken) return {};
    return io::relink(held(), tree_.root(), there.path, io::replace::no);
}

// Renames a file to a name that is taken. The one that had it goes to the recycle bin, if there is
// one; otherwise its large streams are lost.
result<void> host_node::replace_by(const io::handle& renamed, const std::string& taken) noexcept {
    const auto replaced = tree_.open_exactly(taken, follow_links::no);
    std::optional<outlived_streams> streams;
    if (replaced) streams.emplace(tree_, *replaced);
    std::optional<recycle_bin::kept_name> recycled;
    if (replaced and tree_.options.recycle) {
        auto kept = recycle_bin(tree_).keep(*replaced, taken);
        const bool has_moved = not kept and kept.error() == std::errc::resource_unavailable_try_again;
        if (not kept) return failure(has_moved ? error(ENOENT, "rename") : kept.error());
        recycled = *std::move(kept);
    }
    const auto done = io::relink(renamed, tree_.root(), taken, io::replace::yes);
    if (not done and recycled) recycle_bin(tree_).forget(*replaced, *recycled);
    if (done and streams) streams->retire_if_unused();
    return done;
}

result<void> host_node::link(std::string_view path, when_taken taken) noexcept {
    return tree_.as_crossing(link_within(path, taken));
}

result<void> host_node::link_within(std::string_view path, when_taken taken) noexcept {
    if (const auto may = may_move(); not may) return may;
    if (kind() == node_kind::directory) return failure({EPERM, "link a directory"});
    const auto there = tree_.place(path);
    if (not there) return failure(there.error());
    if (not there->taken) return io::link(held(), tree_.root(), there->path);
    if (taken == when_taken::refuse) return failure(error::with_path(EEXIST, "link", path));

    // First under a random name, so that the wanted name refers to a file at any time.
    const io::temporary_name unknown;
    const std::string beside = join_path(split_path(there->path).parent, unknown.c_str());
    if (const auto linked = io::link(held(), tree_.root(), beside); not linked) return linked;
    const auto fresh = tree_.open_exactly(beside, follow_links::no);
    auto done = fresh ? replace_by(*fresh, *there->taken) : result<void>(failure(fresh.error()));
    // Left behind by a failure, and by rename(2) between two names of one file.
    if (io::status_at(tree_.root(), beside)) (void)io::remove(tree_.root(), beside);
    return done;
}

result<short_name> host_node::alternate_name() noexcept {
    if (is_root_) return short_name{};
    const auto where = tree_.present_path(held());
    if (not where) return failure({ENOENT, "get short name", held().descriptor()});
    return tree_.as_crossing(tree_.short_name_at(*where));
}

result<void> host_node::set_alternate_name(const short_name& name) noexcept {
    if (const auto may = may_move(); not may) return may;
    const auto where = tree_.present_path(held());
    if (not where) return failure({ENOENT, "set short name", held().descriptor()});
    return tree_.as_crossing(tree_.set_short_name_at(*where, name));
}

result<name_place> host_node::place() noexcept {
    if (is_root_) return failure({EBUSY, "find the name", held().descriptor()});
    return place_on_host(held(), asked());
}

result<name_identity> host_node::identity_of(std::string_view name) noexcept {
    std::string storage;
    const io::descriptor_path itself(held().descriptor());
    const auto directory =
        io::path_handle::open({}, itself.c_str(), io::confinement::beneath_one_mount_no_symlinks);
    if (not directory) return failure(directory.error());
    const auto found =
        io::status_at(*directory, host_name(name, storage), io::follow::no, identifying_fields);
    if (not found) return failure(found.error());
    return identity_in(*found);
}

result<void> host_node::recycle() noexcept {
    if (not tree_.options.recycle or kind() != node_kind::file) return remove();
    if (const auto may = may_move(); not may) return may;
    if (const auto brought = bring_streams(); not brought)
        tree_.bin_state.problem.set(known_path() + ": streams: " + brought.error().reason());
    const recycle_bin bin(tree_);
    for (unsigned attempt = 1;; ++attempt) {
        // Another open of the file has moved it: its name is gone, and the file in the bin stays.
        const auto where = tree_.present_path(held());
        if (bin.has_taken(tree_, held(), known_path(), where))
            return failure({ENOENT, "recycle", held().descriptor()});
        // The kernel does not report all names: not those that seem to be deleted, or are too long.
        const auto taken = bin.take(held(), where.value_or(known_path()));
        if (taken) return *taken ? result<void>() : remove();
        const bool has_moved = taken.error() == std::errc::resource_unavailable_try_again;
        if (not has_moved or attempt == limits::lookup_attempts_max)
            return tree_.as_crossing(result<void>(failure(taken.error())));
    }
}

bool host_node::has_lost_name() noexcept {
    return not is_root_ and vfs::has_lost_name(tree_, held(), known_path());
}

result<void> host_node::remove() noexcept {
    if (const auto may = may_move(); not may) return may;
    const std::string where = known_path();
    std::optional<outlived_streams> streams;
    if (may_have_large_streams()) streams.emplace(tree_, asked());
    auto done = io::unlink(held(), tree_.root(), std::string_view(where));
    // The root of another share, perhaps. What no client sees must not keep it.
    const bool is_full = not done and (done.error().code() == ENOTEMPTY or done.error().code() == EEXIST);
    if (is_full and kind() == node_kind::directory and remove_empty_store())
        done = io::unlink(held(), tree_.root(), std::string_view(where));
    if (done and streams) streams->retire_if_unused();
    return done;
}

bool host_node::remove_empty_store() const noexcept {
    const io::descriptor_path itself(held().descriptor());
    const auto directory =
        io::path_handle::open({}, itself.c_str(), io::confinement::beneath_one_mount_no_symlinks);
    return directory and stream_store(tree_).remove_empty(*directory);
}

result<std::string> host_node::read_link() noexcept {
    if (kind() != node_kind::symlink) return failure({EINVAL, "read link", held().descriptor()});
    io::symlink_handle itself(
        io::native_handle{.descriptor = held().descriptor(), .kind = io::handle_kind::symlink});
    std::array<char, io::limits::path_bytes_max> storage;
    const auto target = itself.target(storage);
    (void)itself.release();  // the descriptor is that of the node
    if (not target) return failure(target.error());
    return std::string(*target);
}

// Opens the file that `where` names now, and holds it instead of the present one.
result<void> host_node::hold_again(const std::string& where) {
    auto fresh = tree_.open_exactly(where, follow_links::no);
    if (not fresh) return failure(fresh.error());
    const auto status = io::status_of(*fresh, io::stat_fields::type | io::stat_fields::inode);
    if (not status) return failure(status.error());
    if (held_.is_valid()) {
        // The number stays: another thread may be about to use it.
        if (::dup3(fresh->descriptor(), held_.descriptor(), O_CLOEXEC) < 0)
            return failure(error::last("hold", held_.descriptor()));
    } else {
        held_ = std::move(*fresh);
        named_by_.store(&held_, std::memory_order_release);  // pairs with the acquire in held()
    }
    granted_.revoke();  // to what was held
    asked_by_.store(nullptr, std::memory_order_relaxed);
    kind_.store(kind_of(status->type), std::memory_order_relaxed);
    const std::scoped_lock guard(name_mutex_);
    key_ = key_of(*status);
    path_ = where;
    return {};
}

result<void> host_node::become_link(std::string_view target) noexcept {
    if (const auto may = may_move(); not may) return may;
    const auto where = tree_.present_path(held());
    if (not where) return failure({ENOENT, "become a link", held().descriptor()});
    const node_kind before = kind();
    if (before == node_kind::symlink and target.empty()) return become_file(*where);
    const auto itself = io::status_of(held(), io::stat_fields::size | io::stat_fields::links);
    if (not itself) return failure(itself.error());
    if (before == node_kind::file and itself->size_bytes != 0)
        return failure(error::with_path(ENOTEMPTY, "become a link", *where));
    if (before == node_kind::file and itself->links > 1)
        return failure(error::with_path(EMLINK, "become a link", *where));
    if (target.empty() or before == node_kind::other) return failure({EINVAL, "become a link"});

    outlived_streams streams(tree_, held());
    // A directory cannot be replaced by a link in one step.
    if (before == node_kind::directory) {
        if (const auto gone = io::unlink(held()); not gone) return gone;
    }
    const auto made = io::symlink_handle::create(
        tree_.root(), *where, target,
        before == node_kind::directory ? io::creation::only_if_not_exist : io::creation::always_new);
    if (not made) return failure(made.error());
    streams.retire_if_unused();
    return hold_again(*where);
}

result<void> host_node::become_file(const std::string& where) {
    const auto parent = tree_.open_exactly(split_path(where).parent, follow_links::yes);
    if (not parent) return failure(parent.error());
    const new_object begun(tree_.options.created, *parent,
                           {.usual_bits = tree_.options.file_permission_bits});
    // First under a random name: the link stays if the file cannot get its owner and mode.
    const io::temporary_name unknown;
    const std::string beside = join_path(split_path(where).parent, unknown.c_str());
    const auto made =
        io::file_handle::open(tree_.root(), beside, io::mode::write, io::creation::only_if_not_exist,
                              io::caching::all, io::open_flag::none, begun.initial_bits());
    if (not made) return failure(made.error());
    auto status = io::status_of(*made, node_fields);
    auto done = status ? begun.complete(*made, *status) : result<void>(failure(status.error()));
    if (done) done = io::relink(*made, tree_.root(), where, io::replace::yes);
    if (done) return hold_again(where);
    const account_identity::pause as_process;
    (void)io::unlink(*made);
    return done;
}

result<std::vector<stream_info>> host_node::streams() noexcept {
    if (not tree_.keeps_attributes) return failure({EOPNOTSUPP, "list streams"});
    return list_host_streams(tree_, held());
}

bool host_node::streams_may_wait() noexcept {
    if (not tree_.keeps_attributes) return false;
    const account_identity::pause as_process;
    return io::xattr_bytes(held(), streams_attribute).has_value();
}

result<void> host_node::remove_streams() noexcept {
    if (tree_.keeps_attributes) {
        if (const auto may = tree_.may_change(); not may) return may;
        if (const auto done = stream_store(tree_).remove_all_large(held()); not done) return done;
    }
    return node_attached::remove_streams();
}

result<node_ptr> host_node::open_stream(const stream_request& wanted) noexcept {
    if (not can_have_attributes()) return failure({EOPNOTSUPP, "open stream"});
    return open_host_stream(tree_, held(), key(), known_path(), wanted);
}

result<std::vector<extended_attribute>> host_node::extended_attributes() noexcept {
    if (not tree_.keeps_attributes) return failure({EOPNOTSUPP, "list EAs"});
    return list_extended_attributes(held());
}

result<void> host_node::set_extended_attribute(std::string_view name,
                                               std::span<const std::byte> value) noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    return change_extended_attribute(held(), name, value);
}

result<std::vector<std::byte>> host_node::security() noexcept {
    if (not tree_.keeps_attributes) return failure({EOPNOTSUPP, "get security"});
    const auto changed = io::status_of(held(), io::stat_fields::changed);
    if (not changed) return failure(changed.error());
    return security_if_any(private_attributes_at(time_of(changed->changed)));
}

result<std::vector<std::byte>> host_node::security_as_of(const metadata& status) noexcept {
    if (not tree_.keeps_attributes) return failure({EOPNOTSUPP, "get security"});
    // The change time of the status may be one that a client has set: nothing is remembered for it.
    if (not status.has_security) return security();
    return security_if_any(private_attributes{.has_security = *status.has_security});
}

result<std::vector<std::byte>> host_node::security_if_any(
    const result<private_attributes>& own) const noexcept {
    if (not own) return failure(own.error());
    if (not own->has_security) return std::vector<std::byte>{};
    return load_security(asked());
}

result<void> host_node::set_security(std::span<const std::byte> descriptor) noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    return store_security(held(), descriptor);
}

result<std::unique_ptr<directory_listing>> host_node::list() noexcept {
    if (kind() != node_kind::directory) return failure({ENOTDIR, "list", held().descriptor()});
    // The status of a mount point is that of the other file system.
    if (not tree_.may_cross() and tree_.options.domains->has_mounts_in(link_of(held())))
        return failure({limits::crosses_mount, "list", held().descriptor()});
    return list_host_directory(tree_, held());
}

}  // namespace sluice::vfs

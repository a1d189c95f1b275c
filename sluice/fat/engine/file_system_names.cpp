#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/engine/file_system.hpp"
#include "sluice/vfs/path.hpp"

// Creating, moving and removing names.

namespace sluice::fat {

result<void> file_system::may_change() const noexcept {
    if (options_.is_read_only) return failure({EROFS, "change volume"});
    return {};
}

result<file_system::place> file_system::place_of(std::string_view path) {
    if (path.empty()) return failure({EEXIST, "name"});
    if (const auto valid = vfs::check_path(path); not valid) return failure(valid.error());
    const vfs::path_parts parts = vfs::split_path(path);
    // Windows strips a trailing dot or space, so a Windows client could never open the file.
    if (parts.name.ends_with('.') or parts.name.ends_with(' '))
        return failure(error::with_path(EILSEQ, "name", path));
    auto parent = walk(parts.parent);
    if (not parent)
        return failure(parent.error().code() == ENOENT ? error::with_path(ENOTDIR, "find", path)
                                                       : parent.error());
    place there{.parent = std::move(*parent), .name = parts.name};
    const auto content = content_of(there.parent);
    if (not content) return failure(content.error());
    there.in = *content;
    there.taken = there.in->find(there.name);
    return there;
}

void file_system::touch(const inode_ptr& which) {
    ENSURE(which->is_directory and not options_.is_read_only);
    dirty_directories_.insert(which);
}

// Allocates one cluster, if necessary after a commit that makes released clusters available.
result<cluster_extent> file_system::take_cluster(const allocation_request& wanted, reservation& own) {
    allocator& from = *clusters_.load();
    ENSURE(wanted.wanted == 1, "one cluster at a time");
    std::vector<cluster_extent> taken;
    auto done = from.allocate(wanted, own, taken);
    if (not done and done.error().code() == EAGAIN) {
        done = commit_locked();
        if (done) done = from.allocate(wanted, own, taken);
    }
    if (not done)
        return failure(done.error().code() == EAGAIN ? error(ENOSPC, "allocate cluster") : done.error());
    ENSURE(taken.size() == 1 and taken.front().length == 1, "as many as were wanted");
    return taken.front();
}

result<void> file_system::grow_directory(inode& which, directory& in) {
    if (in.is_full()) return failure({ENOSPC, "grow directory"});
    const auto count = which.chain.count();
    if (not count) return failure(count.error());
    run_list::hint hint;
    const auto last = which.chain.locate(*count - 1, hint);
    if (not last) return failure(last.error());
    const auto from = clusters();
    if (not from) return failure(from.error());
    if (not which.reserved) {
        const std::unique_lock guard(which.mutex);
        which.reserved.emplace(**from);
    }
    // Reserves as many clusters as the directory has, so that a large directory has few runs.
    const auto taken = take_cluster({.goal = last->disk_cluster + 1, .ahead = *count}, *which.reserved);
    if (not taken) return failure(taken.error());
    const std::uint64_t offset = shape_.cluster_offset(taken->first);
    // Zeros first: a linked cluster can be read.
    auto done = device_.punch_hole({.offset = offset, .length = shape_.cluster_bytes});
    const std::unique_lock guard(which.mutex);
    if (done) done = which.chain.append(std::span(&*taken, 1));
    if (not done) {
        put_back({*taken});
        return done;
    }
    in.grow(offset);
    recent_bytes_ += shape_.cluster_bytes;
    return {};
}

result<void> file_system::make_room(const place& there) {
    ENSURE(there.parent->content.get() == there.in,
           "the content of a directory stays while its names change");
    if (there.in->is_damaged()) return failure({EIO, "add to a damaged directory"});
    while (not there.in->has_room_for(there.name))
        if (const auto grown = grow_directory(*there.parent, *there.in); not grown) return grown;
    return {};
}

directory_entry file_system::new_entry(bool is_directory, attributes bits) const noexcept {
    directory_entry raw;
    const attributes kept =
        bits & (attributes::read_only | attributes::hidden | attributes::system | attributes::archive);
    raw.attribute_bits = le8(static_cast<std::uint8_t>(is_directory ? kept | attributes::directory : kept));
    const packed_time now = pack(clock_.utc_now(), options_.zone);
    raw.created_10ms = le8(now.hundredths);
    raw.created_time = raw.modified_time = le16(now.time);
    raw.created_date = raw.modified_date = raw.accessed_date = le16(now.date);
    return raw;
}

// Creates a cluster with `.` and `..`, and zeros.
result<std::uint32_t> file_system::make_directory_cluster(const inode& parent) {
    const auto from = clusters();
    if (not from) return failure(from.error());
    reservation none(**from);
    const auto taken = take_cluster({}, none);
    if (not taken) return failure(taken.error());
    ENSURE(parent.parent == nullptr or shape_.is_cluster(parent.chain.first()),
           "the parent is the root or begins at a cluster");
    const std::uint32_t cluster = taken->first;
    std::vector<std::byte> bytes(shape_.cluster_bytes);
    directory_entry dots = new_entry(true, attributes::none);
    dots.name.fill(' ');
    dots.name[0] = '.';
    set_first_cluster(dots, cluster, width());
    std::ranges::copy(bytes_of(dots), bytes.begin());
    dots.name[1] = '.';
    set_first_cluster(dots, parent.parent == nullptr ? 0 : parent.chain.first(), width());
    std::ranges::copy(bytes_of(dots), bytes.begin() + slot_bytes);
    const auto written = device_.write_at(shape_.cluster_offset(cluster), bytes);
    const auto ended = written ? table_.chain_up(*taken, end_entry(shape_.type)) : failure(written.error());
    if (ended) return cluster;
    put_back({*taken});
    return failure(ended.error());
}

result<inode_handle> file_system::create(std::string_view path, bool is_directory, attributes bits) noexcept {
    if (const auto may = may_change(); not may) return failure(may.error());
    const std::scoped_lock change_guard(changes_);
    const std::scoped_lock guard(names_);
    trim();
    auto there = place_of(path);
    if (not there) return failure(there.error());
    if (there->taken != nullptr) return failure(error::with_path(EEXIST, "create", path));
    // Otherwise two entries with the same name would be on the disk until the removal is written.
    if (there->in->is_leaving(there->name))
        if (const auto done = commit_locked(); not done) return failure(done.error());
    if (const auto room = make_room(*there); not room) return failure(room.error());
    directory_entry raw = new_entry(is_directory, bits);
    if (is_directory) {
        const auto cluster = make_directory_cluster(*there->parent);
        if (not cluster) return failure(cluster.error());
        set_first_cluster(raw, *cluster, width());
    }
    const auto entry = there->in->add(there->name, raw);
    touch(there->parent);
    if (not entry) return failure(entry.error());
    (*entry)->use.id = next_id_++;
    inode_ptr made = inode_at(there->parent, **entry);
    if (const auto done = after_change(); not done) return failure(done.error());
    return hold(std::move(made));
}

result<void> file_system::remove(inode& what) noexcept {
    if (const auto may = may_change(); not may) return may;
    const std::scoped_lock change_guard(changes_);
    const std::scoped_lock guard(names_);
    const inode_ptr self = what.shared_from_this();
    if (self == root_) return failure({EBUSY, "remove"});
    if (what.is_removed) return failure({ENOENT, "remove"});
    const auto in = content_of(what.parent);
    if (not in) return failure(in.error());
    if (what.is_directory) {
        // A directory that is unreadable or belongs to another inode is not removed, because its
        // content is unknown.
        const auto content = content_of(self);
        if (not content) return failure(content.error());
        if ((*content)->is_damaged()) return failure({EIO, "remove a damaged directory"});
        if ((*content)->name_count() != 0) return failure({ENOTEMPTY, "remove"});
    }
    (*in)->remove(what.slot);
    touch(what.parent);
    ENSURE((*in)->is_leaving(what.name.view()), "a removed name is on the disk until a commit");
    what.is_removed = true;
    dirty_directories_.erase(self);
    if (what.handles == 0) drop(what);
    return after_change();
}

result<void> file_system::may_replace(const inode_ptr& what, const inode_ptr& other) {
    if (other->is_directory and not what->is_directory) return failure({EISDIR, "rename"});
    if (what->is_directory and not other->is_directory) return failure({ENOTDIR, "rename"});
    if (not other->is_directory) return {};
    const auto content = content_of(other);
    if (not content) return failure(content.error());
    if ((*content)->is_damaged()) return failure({EIO, "replace a damaged directory"});
    if ((*content)->name_count() != 0) return failure({ENOTEMPTY, "rename"});
    return {};
}

result<void> file_system::rename(inode& what, std::string_view path, if_taken taken) noexcept {
    if (const auto may = may_change(); not may) return may;
    const std::scoped_lock change_guard(changes_);
    const std::scoped_lock guard(names_);
    trim();
    const inode_ptr self = what.shared_from_this();
    if (self == root_) return failure({EBUSY, "rename"});
    if (what.is_removed) return failure({ENOENT, "rename"});
    auto there = place_of(path);
    if (not there) return failure(there.error());
    const inode_ptr other = there->taken != nullptr ? inode_at(there->parent, *there->taken) : nullptr;
    if (other != nullptr and other != self and taken == if_taken::refuse)
        return failure(error::with_path(EEXIST, "rename", path));
    for (const inode* above = there->parent.get(); above != nullptr; above = above->parent.get())
        if (above == self.get()) return failure({EINVAL, "rename"});
    if (const auto in = content_of(what.parent); not in) return failure(in.error());
    if (other == self) {
        if (what.name == there->name) return {};
        if (const auto done = change_case(self, *there); not done) return done;
        return after_change();
    }
    if (other != nullptr) {
        if (const auto may = may_replace(self, other); not may) return may;
        const auto done = move_over(self, *there);
        if (not done) return done;
        if (self->name != there->name) {
            there->taken = there->in->at(self->slot);
            if (const auto spelled = change_case(self, *there); not spelled) return spelled;
        }
        return after_change();
    }
    if (there->in->is_leaving(there->name))
        if (const auto done = commit_locked(); not done) return done;
    if (const auto done = move_to(self, *there); not done) return done;
    return after_change();
}

// Updates an inode that is in a new location.
void file_system::update_location(const inode_ptr& what, const place& there, const name_entry& entry) {
    ENSURE(there.parent->content->at(entry.slot) == &entry, "an inode is where its directory has its entry");
    if (what->is_directory and what->parent != there.parent and what->content != nullptr) {
        what->content->set_parent(there.parent->parent == nullptr ? 0 : there.parent->chain.first(), width());
        touch(what);
    }
    what->parent = there.parent;
    what->slot = entry.slot;
    what->name = entry.name;
    entry.use = {.id = what->id, .held = what};
}

result<void> file_system::move_to(const inode_ptr& what, const place& there) {
    // The entry `..` of a directory may have to change.
    if (what->is_directory)
        if (const auto content = content_of(what); not content) return failure(content.error());
    if (const auto room = make_room(there); not room) return room;
    ENSURE(there.parent->content.get() == there.in,
           "the content of a directory stays while its names change");
    const inode_ptr from = what->parent;
    const std::uint32_t slot = what->slot;
    const auto entry = there.in->add(there.name, entry_of(*what));
    touch(there.parent);
    if (not entry) return failure(entry.error());
    from->content->remove(slot);
    touch(from);
    if (from == there.parent) from->content->join(slot, **entry);
    update_location(what, there, **entry);
    return {};
}

// Replaces another file: its entry is changed in place, so that the name never disappears.
result<void> file_system::move_over(const inode_ptr& what, const place& there) {
    if (what->is_directory)
        if (const auto content = content_of(what); not content) return failure(content.error());
    const inode_ptr other = inode_at(there.parent, *there.taken);
    ENSURE(other != what and not other->is_removed, "a file takes the place of another");
    const name_entry& entry = *there.taken;
    const inode_ptr from = what->parent;
    const std::uint32_t slot = what->slot;
    directory_entry raw = entry_of(*what);
    raw.case_bits = there.in->read(entry.slot).case_bits;
    other->is_removed = true;
    dirty_directories_.erase(other);
    there.in->update(entry.slot, raw);
    from->content->remove(slot);
    touch(from);
    touch(there.parent);
    if (from == there.parent) from->content->join(slot, entry);
    update_location(what, there, entry);
    if (other->handles == 0) drop(*other);
    return {};
}

result<void> file_system::change_case(const inode_ptr& what, const place& there) {
    ENSURE(what->parent == there.parent, "a name changes its case where it is");
    if (const auto slot = there.in->change_case(what->slot, there.name)) {
        touch(there.parent);
        update_location(what, there, *there.in->at(*slot));
        return {};
    }
    return move_to(what, there);
}

result<void> file_system::after_change() {
    if (options_.mode == write_mode::sync or is_commit_due()) return commit_locked();
    return {};
}

result<void> file_system::change(inode& of, const inode_change& wanted) noexcept {
    if (const auto may = may_change(); not may) return may;
    {
        const std::unique_lock guard(of.mutex);
        directory_entry& raw = of.entry;
        stamp(raw, of);
        of.written.reset();
        if (wanted.created) {
            const packed_time packed = pack(*wanted.created, options_.zone);
            raw.created_date = le16(packed.date);
            raw.created_time = le16(packed.time);
            raw.created_10ms = le8(packed.hundredths);
        }
        if (wanted.accessed) raw.accessed_date = le16(pack(*wanted.accessed, options_.zone).date);
        if (wanted.modified) {
            const packed_time packed = pack(*wanted.modified, options_.zone);
            raw.modified_date = le16(packed.date);
            raw.modified_time = le16(packed.time);
        }
        if (wanted.bits) {
            const attributes kept = *wanted.bits & (attributes::read_only | attributes::hidden |
                                                    attributes::system | attributes::archive);
            raw.attribute_bits =
                le8(static_cast<std::uint8_t>(of.is_directory ? kept | attributes::directory : kept));
        }
        mark_changed(of, false);
    }
    return options_.mode == write_mode::sync ? commit() : result<void>();
}

}  // namespace sluice::fat

#include "sluice/fat/engine/file_system.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/io/file/page_cache.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/path.hpp"

// Mounting, and finding inodes by name.

namespace sluice::fat {
namespace {

constexpr std::uint64_t root_id = 1;
constexpr std::size_t contents_max = 1024;            // directories kept in memory
constexpr std::size_t content_bytes_max = 64U << 20;  // their total size
constexpr std::uint32_t root_key = 0;                 // key in by_cluster_: no
                                                      // directory begins at cluster 0

std::uint32_t key_of(const inode& of) noexcept {
    return of.parent == nullptr ? root_key : of.chain.first();
}

// If the volume can change, no page may contain two clusters: one may be pinned while the other is
// written.
bool can_pin(device& on, const geometry& shape, const mount_options& options) noexcept {
    if (shape.cluster_count == 0) return false;
    const auto place = on.location_of(shape.data_offset);
    if (not place or options.is_read_only) return place.has_value();
    const std::uint64_t page_bytes = io::page_bytes();
    return options.discards and place->forgets and place->offset % page_bytes == 0 and
           shape.cluster_bytes % page_bytes == 0;
}

}  // namespace

inode_handle::~inode_handle() {
    if (system_ != nullptr) system_->closed(inode_);
}

file_system::file_system(device& on, const geometry& shape, const clock_source& clock,
                         const mount_options& options)
    : device_(on),
      shape_(shape),
      clock_(clock),
      options_(options),
      zone_(options.zone),
      table_(on, shape_),
      pins_extents_(can_pin(on, shape, options)),
      writes_at_once_(on.location_of(shape.data_offset).has_value()) {
    const std::uint32_t first = shape_.type == fat_type::fat32 ? shape_.root_cluster : 0;
    root_ = std::make_shared<inode>(root_id, true, cluster_chain(table_, shape_, options_.strategy, first));
    root_->entry.attribute_bits = le8(static_cast<std::uint8_t>(attributes::directory));
}

result<std::unique_ptr<file_system>> file_system::mount(device& on, const geometry& shape,
                                                        const clock_source& clock,
                                                        const mount_options& options) {
    mount_options chosen = options;
    chosen.is_read_only = options.is_read_only or not on.is_writable();
    std::unique_ptr<file_system> made(new file_system(on, shape, clock, chosen));
    made->was_dirty_ = shape.is_dirty;
    if (clean_bit(shape.type) != 0) {
        const auto flags = made->table_.reserved_entry(1);
        if (not flags) return failure(flags.error());
        if ((*flags & clean_bit(shape.type)) == 0) made->was_dirty_ = true;
    }
    // Then unmounting counts the free clusters and clears the mark, even without changes.
    made->is_marked_ = made->was_dirty_ and options.is_known_consistent and not chosen.is_read_only;
    if (made->is_marked_)
        if (const auto counted = made->clusters(); not counted) return failure(counted.error());
    const std::scoped_lock guard(made->names_);
    const auto content = made->content_of(made->root_);
    if (not content) return failure(content.error());
    return made;
}

file_system::~file_system() {
    (void)unmount();
    const std::scoped_lock guard(names_);
    ENSURE(handles_ == 0, "handles go before their file system");
}

cluster_width file_system::width() const noexcept {
    return shape_.type == fat_type::fat32 ? cluster_width::four_bytes : cluster_width::two_bytes;
}

// The slot has 16 bits: a directory has 65,536 slots.
file_system::location file_system::location_of(const inode& parent, std::uint32_t slot) noexcept {
    ENSURE(slot <= 0xffffU, "a directory has at most 65,536 slots");
    return (std::uint64_t{parent.parent == nullptr ? 1U : parent.chain.first()} << 16 | (slot & 0xffffU)) +
           root_id + 1;
}

std::uint64_t file_system::id_of(const inode& parent, const name_entry& entry) const noexcept {
    return entry.use.id != 0 ? entry.use.id : location_of(parent, entry.slot);
}

inode_ptr file_system::inode_at(const inode_ptr& parent, const name_entry& entry) {
    if (inode_ptr held = entry.use.held.lock()) return held;
    ENSURE(parent->content->at(entry.slot) == &entry, "an entry is one of its directory's");
    const directory_entry raw = parent->content->read(entry.slot);
    const bool is_directory = kind_of(raw) == slot_kind::directory;
    // Not make_shared: the control block lives as long as the entry has a weak pointer.
    inode_ptr made(new inode(id_of(*parent, entry), is_directory,
                             cluster_chain(table_, shape_, options_.strategy, first_cluster(raw, width()))));
    made->parent = parent;
    made->slot = entry.slot;
    made->name = entry.name;
    made->entry = raw;
    const std::uint64_t bytes = is_directory ? 0 : raw.size_bytes.value();
    made->set({.size = bytes, .valid = bytes});
    entry.use.held = made;
    return made;
}

result<directory*> file_system::content_of(const inode_ptr& of) {
    if (not of->is_directory) return failure({ENOTDIR, "find"});
    if (of->content == nullptr) {
        const std::uint32_t key = key_of(*of);
        const auto claimed = by_cluster_.find(key);
        if (claimed != by_cluster_.end() and claimed->second != of.get()) return failure({ELOOP, "find"});
        if (key == root_key and of->parent != nullptr) return failure({EIO, "find"});
        // The root may also be reached by its cluster.
        if (of->parent != nullptr and shape_.type == fat_type::fat32 and key == shape_.root_cluster)
            return failure({ELOOP, "find"});
        const bool is_fixed = of->parent == nullptr and shape_.type != fat_type::fat32;
        const std::unique_lock guard(of->mutex);
        auto loaded = directory::load({.on = device_, .shape = shape_, .page = options_.page},
                                      is_fixed ? nullptr : &of->chain);
        if (not loaded) return failure(loaded.error());
        of->content = std::move(*loaded);
        restore_uses(*of);
        by_cluster_[key] = of.get();
        ENSURE(recent_.size() + 1 == by_cluster_.size(), "each loaded directory has its own cluster");
        recent_.push_front(of);
        recent_bytes_ += of->content->bytes();
        if (of->content->has_removals() and not options_.is_read_only) touch(of);
    }
    return of->content.get();
}

// The uses of names outlive the content of the directory in memory: ids are valid until the volume
// is unmounted, and two lookups of a file return the same inode.
void file_system::save_uses(const inode& of) {
    for (const name_entry* each = of.content->next(0); each != nullptr;
         each = of.content->next(each->slot + 1))
        if (each->use.id != 0 or not each->use.held.expired())
            uses_.emplace(location_of(of, each->slot), std::move(each->use));
}

void file_system::restore_uses(const inode& of) {
    if (uses_.empty()) return;
    for (const name_entry* each = of.content->next(0); each != nullptr;
         each = of.content->next(each->slot + 1))
        if (auto known = uses_.extract(location_of(of, each->slot))) each->use = std::move(known.mapped());
}

void file_system::drop_content(inode& of) noexcept {
    if (of.content == nullptr) return;
    save_uses(of);
    {
        const std::unique_lock guard(of.mutex);
        of.reserved.reset();
    }
    const std::size_t erased = by_cluster_.erase(key_of(of));
    ENSURE(erased == 1, "invariant 2");
    ENSURE(recent_bytes_ >= of.content->bytes(), "the bytes of contents in memory are counted");
    recent_bytes_ -= of.content->bytes();
    of.content.reset();
}

// Evicts the least recently used contents. Called only between operations, because contents must
// not be destroyed while another function, for example a commit, uses them.
void file_system::trim() noexcept {
    ENSURE(recent_.size() == by_cluster_.size(), "each loaded directory is listed once");
    if (recent_.size() <= contents_max and recent_bytes_ <= content_bytes_max) return;
    if (dirty_directories_.size() > contents_max / 2) (void)commit_locked();
    for (auto each = recent_.end(); each != recent_.begin();) {
        if (recent_.size() <= contents_max / 2 and recent_bytes_ <= content_bytes_max / 2) return;
        --each;
        inode& one = **each;
        if (one.parent == nullptr or dirty_directories_.contains(*each)) continue;
        drop_content(one);
        each = recent_.erase(each);
    }
}

// A lookup does not wait for changes_; it leaves the eviction to a later call.
void file_system::try_to_trim() noexcept {
    const std::unique_lock change_guard(changes_, std::try_to_lock);
    if (change_guard) trim();
}

// Finds an inode. Each component before the last must be a directory.
result<inode_ptr> file_system::walk(std::string_view path) {
    if (const auto valid = vfs::check_path(path); not valid) return failure(valid.error());
    inode_ptr here = root_;
    while (not path.empty()) {
        const std::size_t slash = path.find('/');
        const auto content = content_of(here);
        if (not content) return failure(content.error());
        const name_entry* const found = (*content)->find(path.substr(0, slash));
        if (found == nullptr)
            return failure(error::with_path(slash == path.npos ? ENOENT : ENOTDIR, "find", path));
        here = inode_at(here, *found);
        path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
    }
    return here;
}

// Requires names_. If only `last` refers to an inode that will be destroyed, also removes the weak
// pointer in its directory entry, so that the next lookup does not have to check it.
void file_system::forget_use(const inode_ptr& last) noexcept {
    if (last.use_count() != 1 or last->is_removed or last->parent == nullptr) return;
    const auto& content = last->parent->content;
    const name_entry* const entry = content != nullptr ? content->at(last->slot) : nullptr;
    if (entry != nullptr) entry->use.held.reset();
}

inode_handle file_system::hold(inode_ptr which) {
    ENSURE(not which->is_removed or which->handles != 0, "a removed inode has handles until it is destroyed");
    ++which->handles;
    ++handles_;
    ENSURE(handles_ >= which->handles, "the handles of all inodes are counted");
    return {*this, std::move(which)};
}

result<inode_handle> file_system::find(std::string_view path) noexcept {
    const std::scoped_lock guard(names_);
    try_to_trim();
    auto found = walk(path);
    if (not found) return failure(found.error());
    return hold(std::move(*found));
}

bool file_system::is_last(const inode& held) noexcept {
    const std::scoped_lock guard(names_);
    ENSURE(held.handles != 0 and handles_ >= held.handles, "the caller holds a handle");
    return held.handles == 1 and not held.is_removed;
}

void file_system::closed(inode_ptr& which) noexcept {
    // Zeros may have to be written; do it before other threads would have to wait. If that fails,
    // the file on the disk ends where its data ends.
    if (not which->is_removed and has_unwritten_zeros(*which) and is_last(*which)) (void)write_zeros(*which);
    const std::scoped_lock guard(names_);
    ENSURE(which->handles != 0 and handles_ >= which->handles, "a handle is closed once");
    --handles_;
    if (--which->handles != 0) return;
    if (which->is_removed) {
        drop(*which);
    } else {
        const std::unique_lock alone(which->mutex);
        if (which->reserved) which->reserved->release();
    }
    forget_use(which);
}

std::string file_system::path_locked(const inode& of) const {
    if (of.parent == nullptr) return {};
    std::string path(of.name.view());
    for (const inode* above = of.parent.get(); above->parent != nullptr; above = above->parent.get())
        path = std::string(above->name.view()) + '/' + path;
    return path;
}

std::string file_system::path_of(const inode& of) noexcept {
    const std::scoped_lock guard(names_);
    return path_locked(of);
}

result<std::string> file_system::alias_of(inode& of) noexcept {
    const std::scoped_lock guard(names_);
    ENSURE(of.handles != 0 and handles_ >= of.handles, "the caller holds a handle");
    if (of.parent == nullptr or of.is_removed) return {};
    const auto content = content_of(of.parent);
    if (not content) return failure(content.error());
    // The content may have been read again, from a medium that has changed in the meantime.
    const name_entry* const entry = (*content)->at(of.slot);
    if (entry == nullptr) return failure({EIO, "find"});
    return entry->alias;
}

inode_status file_system::status_of(const directory_entry& entry) const noexcept {
    const time_point modified =
        unpack({.date = entry.modified_date.value(), .time = entry.modified_time.value()}, zone_);
    return {
        .bits = static_cast<attributes>(entry.attribute_bits.value()),
        .created = unpack({.date = entry.created_date.value(),
                           .time = entry.created_time.value(),
                           .hundredths = entry.created_10ms.value()},
                          zone_),
        .accessed = unpack({.date = entry.accessed_date.value()}, zone_),
        .modified = modified,
        .changed = modified,
        .is_directory = has(static_cast<attributes>(entry.attribute_bits.value()), attributes::directory)};
}

// Requires the inode's mutex.
inode_status file_system::status_locked(const inode& of) const noexcept {
    ENSURE(of.valid() <= of.size(), "invariant 3 of inode");
    directory_entry raw = of.entry;
    stamp(raw, of);
    inode_status found = status_of(raw);
    found.id = of.id;
    found.size_bytes = of.size();
    if (of.changed) found.changed = *of.changed;
    found.is_directory = of.is_directory;
    found.is_removed = of.is_removed;
    const std::uint64_t clusters = (of.size() + shape_.cluster_bytes - 1) / shape_.cluster_bytes;
    found.allocated_bytes = clusters * shape_.cluster_bytes;
    return found;
}

// Does not need names_, which a commit holds except while it waits for the disk.
inode_status file_system::status(inode& of) noexcept {
    const std::shared_lock guard(of.mutex);
    return status_locked(of);
}

// Requires names_, and a directory whose content is in memory.
file_system::listed file_system::listed_of(const inode& directory, const name_entry& entry) const {
    listed one{
        .name = std::string(entry.name.view()), .alias = entry.alias, .status = {}, .slot = entry.slot};
    // The inode in use has newer values than the disk.
    if (const inode_ptr held = entry.use.held.lock()) {
        const std::shared_lock reading(held->mutex);
        one.status = status_locked(*held);
        return one;
    }
    const directory_entry raw = directory.content->read(entry.slot);
    one.status = status_of(raw);
    one.status.id = id_of(directory, entry);
    one.status.size_bytes = one.status.is_directory ? 0 : raw.size_bytes.value();
    const std::uint64_t clusters = (one.status.size_bytes + shape_.cluster_bytes - 1) / shape_.cluster_bytes;
    one.status.allocated_bytes = clusters * shape_.cluster_bytes;
    return one;
}

result<std::optional<file_system::listed>> file_system::list(inode& of, std::uint32_t from_slot) noexcept {
    std::vector<listed> found;
    if (const auto done = list(of, from_slot, 1, found); not done) return failure(done.error());
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
}

result<void> file_system::list(inode& of, std::uint32_t from_slot, std::size_t most,
                               std::vector<listed>& found) noexcept {
    const std::scoped_lock guard(names_);
    if (of.is_removed) return {};
    try_to_trim();
    const auto content = content_of(of.shared_from_this());
    if (not content) return failure(content.error());
    while (found.size() < most) {
        const name_entry* const next = (*content)->next(from_slot);
        if (next == nullptr) return {};
        found.push_back(listed_of(of, *next));
        from_slot = next->slot + 1;
    }
    return {};
}

result<file_system::directory_state> file_system::state_of(inode& of) noexcept {
    const std::scoped_lock guard(names_);
    const auto content = content_of(of.shared_from_this());
    if (not content) return failure(content.error());
    return directory_state{.first_cluster = of.chain.first(), .is_cut_off = (*content)->is_damaged()};
}

inode_handle file_system::again(inode& of) noexcept {
    const std::scoped_lock guard(names_);
    return hold(of.shared_from_this());
}

std::string file_system::label() {
    const std::scoped_lock guard(names_);
    short_name_bytes bytes;
    std::copy(shape_.label.begin(), shape_.label.end(), bytes.begin());
    const auto content = content_of(root_);
    if (content and (*content)->label_slot()) bytes = (*content)->read(*(*content)->label_slot()).name;
    return text_of_label(bytes, options_.page);
}

result<std::uint32_t> file_system::free_clusters() noexcept {
    // The program that left the volume clean has counted the free clusters; the number is valid as
    // long as nothing changes.
    if (clusters_.load() == nullptr and not was_dirty_ and shape_.info_offset) {
        info_sector raw;
        if (device_.read_at(*shape_.info_offset, std::as_writable_bytes(std::span(&raw, 1))))
            if (const auto info = decode_info(raw, shape_); info and info->free_count)
                return *info->free_count;
    }
    const auto from = clusters();
    if (not from) return failure(from.error());
    return (*from)->free_count();
}

}  // namespace sluice::fat

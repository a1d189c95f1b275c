#include "sluice/vfs/host/recycle_sweep.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/recycle_directory.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"

namespace sluice::vfs {
namespace {

constexpr io::stat_fields swept_fields =
    io::stat_fields::type | io::stat_fields::inode | io::stat_fields::changed | io::stat_fields::allocated |
    io::stat_fields::size | io::stat_fields::links | io::stat_fields::owner;

result<io::directory_handle> open_listed(const io::path_handle& base, std::string_view name) {
    const auto opened =
        io::open_at(io::anchor_directory{.descriptor = base.descriptor(), .limit = recycle_confinement},
                    io::terminated_path(name),
                    {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW, .operation = "list the recycle bin"});
    if (not opened) return failure(opened.error());
    return io::directory_handle({.descriptor = *opened, .kind = io::handle_kind::directory, .readable = true},
                                recycle_confinement);
}

// As in the size of the bin: a file with holes is not as large as it seems, and one with several
// names is there once.
std::uint64_t bytes_of(const io::file_status& file) noexcept {
    return std::min<std::uint64_t>(file.size_bytes, file.allocated_bytes) /
           std::max<std::uint64_t>(file.links, 1);
}

void add_to(std::uint64_t& sum, std::uint64_t bytes) noexcept {
    sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
}

bool rename_if_free(const io::path_handle& from, const char* name, const io::path_handle& to,
                    const char* new_name) noexcept {
    if (::renameat2(from.descriptor(), name, to.descriptor(), new_name, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL and errno != ENOSYS) return false;
    // The file system does not know the flag.
    return ::linkat(from.descriptor(), name, to.descriptor(), new_name, 0) == 0 and
           ::unlinkat(from.descriptor(), name, 0) == 0;
}

}  // namespace

recycle_sweep::recycle_sweep(const host_tree& tree, std::optional<std::chrono::system_clock::time_point> now)
    : tree_(tree), knows_time_(now.has_value()), now_(now.value_or(std::chrono::system_clock::now())) {
    ENSURE(tree.options.recycle.has_value(), "a bin that is swept has rules");
}

// All directories of the bin, or that of one owner.
bool recycle_sweep::begin_pass() {
    auto bin = recycle_bin(tree_).open();
    auto listed = bin ? open_listed(*bin, ".") : result<io::directory_handle>(failure(bin.error()));
    if (not listed) {
        if (listed.error() != std::errc::no_such_file_or_directory)
            tree_.bin_state.problem.set(tree_.options.recycle->directory + ": " + listed.error().reason());
        return false;
    }
    bin_ = *std::move(bin);
    level& first = levels_.emplace_back(level{.open = *std::move(listed), .name = {}});
    if (pass_ == pass::of_all) return true;
    first.is_listed = true;
    first.unseen.push_back(std::to_string(large_.back().owner));
    return true;
}

bool recycle_sweep::step() {
    if (not is_begun_) {
        is_begun_ = true;
        return begin_pass();
    }
    if (levels_.empty()) return false;
    level& here = levels_.back();
    if (not here.unseen.empty()) {
        descend();
    } else if (here.is_listed) {
        leave();
    } else {
        visit(here);
    }
    return not levels_.empty() or begin_next_pass();
}

// After that of all files, there are two for each owner of too many bytes: one adds up the sizes of
// the files by age, and one removes the oldest of them.
bool recycle_sweep::begin_next_pass() {
    if (pass_ == pass::of_all) {
        choose_owners();
    } else if (pass_ == pass::sums) {
        pass_ = pass::oldest;
        if (choose_age()) return begin_pass();
        large_.pop_back();
    } else {
        large_.pop_back();
    }
    if (large_.empty()) return false;
    pass_ = pass::sums;
    bytes_by_age_.assign(ages_max, 0);
    return begin_pass();
}

// All owners keep the same number of bytes, if they have so many: so one of large files does not
// displace those of others.
void recycle_sweep::choose_owners() {
    const std::uint64_t bytes_max = tree_.options.recycle->bytes_max;
    if (bytes_max == 0) return;
    std::vector<owner_bytes> all;
    for (const auto& [owner, bytes] : bytes_by_owner_)
        all.push_back({.owner = owner, .bytes = bytes});
    std::ranges::sort(all, {}, &owner_bytes::bytes);
    std::uint64_t left = bytes_max;
    for (std::size_t i = 0; i != all.size(); ++i) {
        const std::uint64_t share = left / (all.size() - i);
        if (all[i].bytes > share) large_.push_back({.owner = all[i].owner, .bytes = share});
        left -= std::min(all[i].bytes, share);
    }
}

bool recycle_sweep::may_enter(const level& above, std::string_view name, std::uint32_t owner) const noexcept {
    if (not tree_.has_modes) return true;
    if (levels_.size() != 1) return owner == above.owner;
    const auto server = static_cast<std::uint32_t>(::geteuid());
    const auto user = owner_of_name(name);
    return owner == server or (user and owner == *user);
}

void recycle_sweep::descend() {
    ++entries_;
    level& above = levels_.back();
    std::string name = std::move(above.unseen.back());
    above.unseen.pop_back();
    // Deeper directories are not those of the server.
    if (levels_.size() > limits::recycled_depth_max + 2) return;
    const bool is_in_bin_itself = levels_.size() == 1;
    const auto user = is_in_bin_itself ? owner_of_name(name) : above.user;
    if (is_in_bin_itself and not user and name != removed_files_name) return;
    auto opened = open_listed(above.open, name);
    const auto owner = opened ? recycle_owner_of(*opened) : result<std::uint32_t>(failure(opened.error()));
    if (not owner or not may_enter(above, name, *owner)) return;
    levels_.push_back({.open = *std::move(opened), .name = std::move(name), .owner = *owner, .user = user});
}

// A directory in which files remain stays, because it is not empty.
void recycle_sweep::leave() {
    const std::string name = std::move(levels_.back().name);
    levels_.pop_back();
    if (levels_.empty() or not recycle_bin(tree_).has_directory(levels_.back().open)) return;
    (void)io::remove_directory(levels_.back().open, name);
}

void recycle_sweep::visit(level& here) {
    std::vector<io::directory_entry> entries(limits::listed_names_per_batch);
    std::vector<char> storage(limits::listing_storage_bytes);
    const auto batch = here.open.enumerate(
        {.entries = entries, .storage = storage, .position = here.position, .wanted = swept_fields});
    if (not batch or batch->entries.empty()) return leave();
    here.position = batch->next;
    entries_ += batch->entries.size();
    for (const io::directory_entry& each : batch->entries) {
        if (each.type == io::file_type::directory)
            here.unseen.emplace_back(each.name);
        else if (each.type == io::file_type::regular and each.status.knows(io::stat_fields::changed))
            visit_file(here, each);
    }
}

// Others may have come there with a directory, which its owner has moved.
bool recycle_sweep::is_swept(const level& here, const io::file_status& file) const noexcept {
    if (levels_.size() == 1) return false;  // in the bin itself
    if (not here.user or not tree_.has_modes) return true;
    return file.user_id == *here.user or file.user_id == static_cast<std::uint32_t>(::geteuid());
}

void recycle_sweep::visit_file(const level& here, const io::directory_entry& entry) {
    if (not is_swept(here, entry.status)) return;
    const recycle_rules& rules = *tree_.options.recycle;
    const std::chrono::seconds age = age_of(entry.status);
    const std::uint64_t bytes = bytes_of(entry.status);
    if (pass_ == pass::of_all) {
        const bool is_old = knows_time_ and rules.age_max.count() != 0 and age > rules.age_max;
        const bool is_gone = is_old and remove_file(here, entry);
        const bool counts = not is_gone and rules.bytes_max != 0 and here.user;
        if (counts and
            (bytes_by_owner_.size() < limits::swept_owners_max or bytes_by_owner_.contains(*here.user)))
            add_to(bytes_by_owner_[*here.user], bytes);
        return;
    }
    const std::size_t index = index_of(age);
    if (pass_ == pass::sums) return add_to(bytes_by_age_[index], bytes);
    const bool is_removed = index > removed_age_ or (index == removed_age_ and removed_bytes_ != 0);
    if (is_removed and remove_file(here, entry) and index == removed_age_)
        removed_bytes_ -= std::min(removed_bytes_, bytes);
}

// Its name may have been given to another file since it was listed.
bool recycle_sweep::remove_file(const level& here, const io::directory_entry& entry) const {
    const auto descriptor =
        io::open_at(io::anchor_directory{.descriptor = here.open.descriptor(), .limit = recycle_confinement},
                    io::terminated_path(entry.name), {.flags = O_PATH | O_NOFOLLOW, .operation = "remove"});
    if (not descriptor) return descriptor.error() == std::errc::no_such_file_or_directory;
    const io::handle file({.descriptor = *descriptor, .kind = io::handle_kind::path});
    const auto status = io::status_of(file, swept_fields);
    const bool is_it = status and status->type == io::file_type::regular and
                       status->inode == entry.status.inode and status->changed == entry.status.changed;
    if (not is_it) return false;
    outlived_streams streams(tree_, file);
    if (not remove_listed(here, entry)) return false;
    streams.retire_if_unused();
    return true;
}

// The directory is checked after the rename: until then, a client may move it out of the bin.
bool recycle_sweep::remove_listed(const level& here, const io::directory_entry& entry) const {
    const io::temporary_name moved;
    const io::terminated_path name(entry.name);
    if (not recycle_bin(tree_).has_directory(here.open)) return false;
    const auto server = static_cast<std::uint32_t>(::geteuid());
    const auto removed =
        make_recycle_directory(bin_, bin_, removed_files_name, {.wanted = server, .other = server});
    if (not removed) {
        tree_.bin_state.problem.set(tree_.options.recycle->directory + ": " + removed.error().reason());
        return false;
    }
    if (not rename_if_free(here.open, name.c_str(), *removed, moved.c_str())) return false;
    const auto status = io::status_at(*removed, moved.c_str(), io::follow::no, io::stat_fields::inode);
    const bool is_it = status and status->inode == entry.status.inode;
    if (is_it and recycle_bin(tree_).has_directory(here.open))
        return ::unlinkat(removed->descriptor(), moved.c_str(), 0) == 0;
    put_back(here, entry.name, *removed, moved.c_str());
    return false;
}

// A client may have given the name to another file in between.
void recycle_sweep::put_back(const level& here, std::string_view name, const io::path_handle& removed,
                             const char* moved) const {
    for (std::uint64_t version = 1; version <= limits::recycled_versions_tried_max; ++version) {
        const std::string chosen = recycle_bin::name_of_version(name, version);
        if (rename_if_free(removed, moved, here.open, chosen.c_str())) return;
        if (errno != EEXIST) break;
    }
    const error why = error::last("move back from the recycle bin");
    const std::string left =
        tree_.options.recycle->directory + '/' + std::string(removed_files_name) + '/' + moved;
    tree_.bin_state.problem.set(std::string(name) + " is " + left + ": " + why.reason());
}

// The oldest files go, and of those of about the same age only as many as needed. Files may have
// gone since they were counted for the first time.
bool recycle_sweep::choose_age() {
    removed_age_ = ages_max;
    // Clients may have removed files since the first pass.
    std::uint64_t present = 0;
    for (const std::uint64_t bytes : bytes_by_age_)
        add_to(present, bytes);
    if (present <= large_.back().bytes) return false;
    removed_bytes_ = present - large_.back().bytes;
    while (removed_age_ != 0 and bytes_by_age_[--removed_age_] < removed_bytes_)
        removed_bytes_ -= bytes_by_age_[removed_age_];
    return true;
}

std::chrono::seconds recycle_sweep::age_of(const io::file_status& status) const noexcept {
    const auto age = std::chrono::floor<std::chrono::seconds>(now_ - status.changed);
    return std::max(age, std::chrono::seconds(0));
}

std::size_t recycle_sweep::index_of(std::chrono::seconds age) noexcept {
    const auto seconds = static_cast<std::uint64_t>(age.count());
    if (seconds < 16) return seconds;
    const auto power = static_cast<unsigned>(std::bit_width(seconds)) - 1;  // at least 4
    const std::uint64_t sixteenth = (seconds >> (power - 4)) & 15U;
    return std::min<std::size_t>(16 * (power - 3) + sixteenth, ages_max - 1);
}

}  // namespace sluice::vfs

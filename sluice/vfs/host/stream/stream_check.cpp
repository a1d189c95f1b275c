#include "sluice/vfs/host/stream/stream_check.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/host/host_walk.hpp"

namespace sluice::vfs {
namespace {

constexpr std::string_view removed_suffix = ".removed";
constexpr io::confinement limit = io::confinement::beneath_one_mount_no_symlinks;

}  // namespace

stream_check::stream_check(host_volume& volume, const stream_check_options& options,
                           std::function<void(const std::string&)> report)
    : tree_(volume.tree()), options_(options), report_(std::move(report)) {}

result<stream_check_result> stream_check::run() {
    auto store = stream_store(tree_).open_root();
    if (not store and store.error() != std::errc::no_such_file_or_directory) return failure(store.error());
    if (store) {
        store_ = std::move(*store);
        // Before the references: the directory of a new one is created after the reference.
        if (const auto listed = list_directories(); not listed) return failure(listed.error());
    }
    find_references();
    check_references();
    check_directories();
    return result_;
}

result<void> stream_check::list_directories() {
    const auto listed = io::directory_handle::open(store_, ".");
    if (not listed) return failure(listed.error());
    std::vector<std::string> groups;
    const auto all = for_each_entry(*listed, io::stat_fields::none,
                                    [&](const io::directory_entry& each) { groups.emplace_back(each.name); });
    if (not all) return failure(all.error());
    for (const std::string& group : groups) {
        const bool is_lost = group == lost_streams_name;
        const auto in_group = io::directory_handle::open(store_, group);
        if (not in_group) return failure(in_group.error());
        const auto done =
            for_each_entry(*in_group, io::stat_fields::modified, [&](const io::directory_entry& each) {
                const bool is_being_removed = is_lost and each.name.ends_with(removed_suffix);
                const std::size_t suffix = is_being_removed ? removed_suffix.size() : 0;
                const auto id = stream_id::parse(each.name.substr(0, each.name.size() - suffix));
                if (not id) return;
                stored_.push_back({.id = *id,
                                   .modified = time_of(each.status.modified),
                                   .is_lost = is_lost,
                                   .is_being_removed = is_being_removed});
            });
        if (not done) return failure(done.error());
    }
    return {};
}

void stream_check::find_references() {
    const auto visit = [&](const walked_entry& at) {
        std::array<std::byte, stream_record_bytes> storage;
        const auto bytes = io::fetch_xattr_at(at.directory, at.entry.name.data(), streams_attribute, storage);
        if (not bytes) {
            const int code = bytes.error().code();
            if (code == EACCES or code == EIO) ++result_.unreadable;
            return;
        }
        const auto record = decode_stream_record(*bytes);
        if (not record or record->kind != stream_record_kind::reference) return;
        auto& files = references_[record->id];
        // A file with several names counts once.
        const io::file_status& status = at.entry.status;
        const auto is_known = std::ranges::any_of(files, [&](const referring_file& each) {
            return each.inode == status.inode and each.device == status.device;
        });
        if (is_known) return;
        files.push_back({.path = at.path, .inode = status.inode, .device = status.device});
        ++result_.referring_files;
    };
    // The streams of a nested store are found by way of the files that refer to them.
    const walk_errors errors = walk(tree_, visit, [](const std::string&) {});
    result_.unreadable += errors.directories;
    result_.first_unreadable = errors.first;
}

void stream_check::record(bool is_repaired, const std::string& what) {
    report_(what);
    if (not options_.repairs) return;
    ++(is_repaired ? result_.repaired : result_.failed);
}

void stream_check::check_references() {
    for (const auto& [id, files] : references_)
        for (const referring_file& file : files) {
            // Those on other file systems have stores of their own.
            if (file.device != tree_.root_device) continue;
            // The original may be in a directory that could not be searched.
            check_file(id, file, files.size() == 1 and result_.unreadable == 0);
        }
}

void stream_check::check_file(const stream_id& id, const referring_file& file, bool is_claimable) {
    const auto open = tree_.open_exactly(file.path, follow_links::no);
    if (not open) return;  // renamed or removed in between
    const auto reference = load_stream_record(*open);
    if (not reference or not*reference or (*reference)->id != id) return;
    const auto facts = stream_file::of(*open);
    if (not facts) return;
    const stream_store store(tree_);
    auto found = store.find(*open, *facts, id);
    if (not found or not*found) return;  // its last large stream was removed, or is not readable
    stream_directory& streams = **found;
    if (not streams.is_own() and streams.mark().owner != facts->user_id) {
        ++result_.foreign;
        report_(file.path + ": refers to streams of another owner");
        return;
    }
    if (not streams.is_own()) {
        ++result_.copies;
        bool is_repaired = false;
        if (options_.repairs)
            is_repaired = is_claimable and streams.is_on_file_system_of_file()
                              ? claim(*open, **reference, streams)
                              : store.separate(*open, *facts, **reference, {.from = &streams}).has_value();
        return record(is_repaired, file.path + ": copied or restored");
    }
    if (store.count(*open, *facts, id) > 1) {
        ++result_.split;
        return report_(file.path + ": has streams in two stores");
    }
    const auto root = io::status_of(store_, io::stat_fields::inode);
    const auto here = io::status_of(streams.store(), io::stat_fields::inode);
    if (not here or (root and here->is_same_inode(*root))) return;
    ++result_.nested;
    const bool is_repaired = options_.repairs and move_to_root(streams);
    record(is_repaired, file.path + ": streams are in another store");
}

// A restored file: the only one with this reference, but with another inode.
bool stream_check::claim(const io::handle& file, const stream_record& reference, stream_directory& streams) {
    const auto locked = io::directory_handle::open(streams.store(), ".");
    if (not locked) return false;
    lock_streams(*locked);
    const auto present = load_stream_record(file);
    if (not present or *present != reference) return true;  // a server was faster
    if (not streams.claim()) return false;
    stream_record own = streams.mark();
    own.kind = stream_record_kind::reference;
    return store_stream_record(file, own, record_storing::replace).has_value();
}

bool stream_check::move_to_root(const stream_directory& streams) {
    if (not store_.is_valid()) {
        auto made = stream_store(tree_).make_root();
        if (not made) return false;
        store_ = std::move(*made);
    }
    const stream_id& id = streams.mark().id;
    const std::string name = id.text();
    const auto group = make_store_directory(store_, stream_group_of(id), {.kind = stream_record_kind::mark});
    return group and
           ::renameat(streams.above().descriptor(), name.c_str(), group->descriptor(), name.c_str()) == 0;
}

// Under another name first, so that no server moves it back while it is being removed.
bool stream_check::remove_lost(const stored_directory& which) {
    const std::string name = which.id.text();
    const std::string removed = name + std::string(removed_suffix);
    const auto lost = io::path_handle::open(store_, lost_streams_name, limit);
    if (not lost) return false;
    if (not which.is_being_removed and
        ::renameat(lost->descriptor(), name.c_str(), lost->descriptor(), removed.c_str()) != 0)
        return false;
    const auto directory = io::directory_handle::open(*lost, removed);
    if (not directory) return false;
    std::vector<std::string> names;
    (void)for_each_entry(*directory, io::stat_fields::none,
                         [&](const io::directory_entry& each) { names.emplace_back(each.name); });
    for (const std::string& each : names)
        (void)::unlinkat(directory->descriptor(), each.c_str(), 0);
    return ::unlinkat(lost->descriptor(), removed.c_str(), AT_REMOVEDIR) == 0;
}

void stream_check::check_directories() {
    for (const stored_directory& each : stored_) {
        if (not each.is_lost) ++result_.directories;
        const std::string name = each.id.text();
        // A lost one that is used has been moved back by its lookup.
        if (references_.contains(each.id) and not each.is_being_removed) continue;
        if (each.is_lost) {
            ++result_.lost;
            const bool is_old = options_.now - each.modified >= options_.lost_kept;
            if (options_.repairs and is_old and result_.unreadable == 0)
                record(remove_lost(each), "lost/" + name + ": without a file for too long");
            continue;
        }
        ++result_.unreferenced;
        // A file in a directory that could not be searched may refer to it.
        const bool may_move = options_.repairs and result_.unreadable == 0;
        record(may_move and move_to_lost(store_, each.id), name + ": streams without a file");
    }
}

}  // namespace sluice::vfs

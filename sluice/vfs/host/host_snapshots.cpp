#include "sluice/vfs/host/host_snapshots.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <functional>

#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/domain/domain_table.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/limits.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

// The latest times of those that are added.
class latest_times {
public:
    void add(snapshot_time when) {
        if (times_.size() == limits::snapshots_listed_max) {
            if (when <= times_.front()) return;
            std::ranges::pop_heap(times_, std::greater{});
            times_.pop_back();
        }
        times_.push_back(when);
        std::ranges::push_heap(times_, std::greater{});
        ENSURE(times_.size() <= limits::snapshots_listed_max, "the list of snapshots is bounded");
    }
    // Latest first.
    [[nodiscard]] std::vector<snapshot_time> take() && {
        std::ranges::sort(times_, std::greater{});
        return std::move(times_);
    }

private:
    std::vector<snapshot_time> times_;  // a heap with the earliest in front
};

[[nodiscard]] bool may_be_directory(const io::directory_entry& entry) noexcept {
    return entry.type == io::file_type::directory or entry.type == io::file_type::unknown;
}

// How far paths in a snapshot may lead.
[[nodiscard]] io::confinement limit_within(const host_volume_options& options) noexcept {
    return options.follow_links ? io::confinement::beneath_one_mount
                                : io::confinement::beneath_one_mount_no_symlinks;
}

// A volume that is destroyed where its calls run: its last user may be on a loop, and closing its
// descriptors may block, or unmount its file system.
class open_snapshot {
public:
    open_snapshot(std::unique_ptr<host_volume> opened, std::shared_ptr<fs_domain> domain)
        : contents_(std::make_unique<contents>(std::move(opened))), domain_(std::move(domain)) {}
    open_snapshot(const open_snapshot&) = delete;
    open_snapshot& operator=(const open_snapshot&) = delete;
    ~open_snapshot() {
        ENSURE(contents_ != nullptr, "a volume is discarded once");
        fs_domain& where = *domain_;
        where.discard(std::move(contents_), std::move(domain_));
    }
    [[nodiscard]] host_volume& volume() const noexcept { return *contents_->opened; }

private:
    struct contents final : discardable {
        explicit contents(std::unique_ptr<host_volume> volume) noexcept : opened(std::move(volume)) {}
        const std::unique_ptr<host_volume> opened;
    };
    std::unique_ptr<contents> contents_;
    std::shared_ptr<fs_domain> domain_;
};

// The domain of the snapshots in a directory.
[[nodiscard]] result<std::shared_ptr<fs_domain>> domain_for(const std::string& directory,
                                                            domain_table* domains) {
    const std::string name = "snapshots in " + directory;
    if (domains != nullptr) return domains->make_crossing_domain(name);
    return std::make_shared<fs_domain>(fs_domain_options{.name = name});
}

}  // namespace

std::string directory_of_snapshots(const std::string& root, const snapshot_pattern& pattern) {
    if (pattern.is_absolute()) return pattern.directory();
    return pattern.directory().empty() ? root : join_path(root, pattern.directory());
}

result<io::path_handle> open_directory_of_snapshots(const std::string& root,
                                                    const snapshot_pattern& pattern) {
    constexpr auto limit = io::confinement::beneath_no_symlinks;
    std::string_view inside = pattern.directory();
    auto base = io::path_handle::open(pattern.is_absolute() ? std::string("/") : root, limit);
    if (not base) return failure(base.error());
    if (pattern.is_absolute()) inside.remove_prefix(1);
    ENSURE(not inside.starts_with('/'), "the limit applies to a path that is relative to the base");
    return inside.empty() ? std::move(base) : io::path_handle::open(*base, inside, limit);
}

std::string_view remedy_for_snapshots(const error& why) noexcept {
    const bool is_link = why == std::errc::too_many_symbolic_link_levels;
    return is_link ? "; the pattern must name a path without symbolic links" : "";
}

result<std::shared_ptr<host_snapshots>> host_snapshots::open(io::io_multiplexer& multiplexer,
                                                             const std::string& root,
                                                             snapshot_pattern pattern,
                                                             const host_volume_options& options) {
    auto directory = open_directory_of_snapshots(root, pattern);
    if (not directory) return failure(directory.error());
    ENSURE(directory->confined() == io::confinement::beneath_no_symlinks, "snapshots are not links");
    auto domain = domain_for(directory_of_snapshots(root, pattern), options.domains);
    if (not domain) return failure(domain.error());
    host_volume_options of_snapshot = options;
    of_snapshot.domains = nullptr;  // all have the domain that was made
    of_snapshot.read_only = true;
    of_snapshot.watched = false;
    of_snapshot.recycle.reset();
    of_snapshot.streams_root.clear();
    return std::shared_ptr<host_snapshots>(new host_snapshots(
        multiplexer, *std::move(directory), std::move(pattern), of_snapshot, *std::move(domain)));
}

result<std::vector<snapshot_time>> host_snapshots::read_times(bool& has_unknown) const {
    const auto listed = io::directory_handle::open(directory_, ".");
    if (not listed) return failure(listed.error());
    std::array<io::directory_entry, limits::listed_names_per_batch> entries;
    std::vector<char> storage(limits::listing_storage_bytes);
    latest_times latest;
    std::size_t names = 0;
    for (std::uint64_t position = 0;;) {
        const auto batch = listed->enumerate({.entries = entries, .storage = storage, .position = position});
        if (not batch) return failure(batch.error());
        if (batch->entries.empty()) break;
        names += batch->entries.size();
        if (names > limits::snapshot_names_max) return failure({E2BIG, "list snapshots"});
        for (const io::directory_entry& each : batch->entries) {
            if (not may_be_directory(each)) continue;
            if (const auto when = pattern_.time_of(each.name)) latest.add(*when);
            has_unknown |= each.type == io::file_type::unknown;
        }
        position = batch->next;
    }
    return std::move(latest).take();
}

result<io::path_handle> host_snapshots::open_root(snapshot_time when) const {
    const auto name = pattern_.name_of(when);
    if (not name) return failure({ENOENT, "open snapshot"});
    ENSURE(name->find('/') == std::string::npos, "a snapshot's name is one component");
    return io::path_handle::open(directory_,
                                 pattern_.subpath().empty() ? *name : join_path(*name, pattern_.subpath()));
}

result<std::vector<snapshot_time>> host_snapshots::list() noexcept {
    bool has_unknown = false;
    auto times = read_times(has_unknown);
    // A directory is a snapshot. Opening all of them would mount them (ZFS).
    if (not times or (pattern_.subpath().empty() and not has_unknown)) return times;
    std::erase_if(*times, [&](snapshot_time each) { return not open_root(each).has_value(); });
    return times;
}

result<std::shared_ptr<volume>> host_snapshots::open(snapshot_time when) noexcept {
    auto root = open_root(when);
    if (not root) {
        // A link, or a file, with the name of a snapshot is none.
        const bool is_none = root.error() == std::errc::too_many_symbolic_link_levels or
                             root.error() == std::errc::not_a_directory;
        return failure(is_none ? error(ENOENT, "open snapshot") : root.error());
    }
    auto opened =
        host_volume::open(multiplexer_, io::path_handle(root->release(), limit_within(options_)), options_);
    if (not opened) return failure(opened.error());
    (*opened)->set_domain(domain_);
    ENSURE((*opened)->features().is_read_only and (*opened)->changes() == nullptr,
           "the volume of a snapshot changes nothing and watches nothing");
    const auto made = std::make_shared<open_snapshot>(*std::move(opened), domain_);
    return std::shared_ptr<volume>(made, &made->volume());
}

}  // namespace sluice::vfs

#include "sluice/cli/smb/local_tree.hpp"

#include <algorithm>
#include <utility>

#include "sluice/cli/smb/remote_tree.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/vfs/host/host_name.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

class lister {
public:
    lister(const fs::path& root, link_policy links, mount_policy mounts)
        : root_(root), links_(links), mounts_(mounts), root_device_(identity_of(root).first) {}

    local_tree list() {
        enter(root_, "", "");
        return std::move(made_);
    }

private:
    using identity = std::pair<std::uint64_t, std::uint64_t>;  // device and inode

    void enter(const fs::path& directory, const std::string& shown, const std::string& below) {
        struct above_guard {
            std::vector<identity>& above;
            ~above_guard() { above.pop_back(); }
        };
        const auto here = identity_of(directory);
        if (std::ranges::find(above_, here) != above_.end())
            return problem(directory, "a link leads back to a directory above it");
        if (above_.size() > remote_depth_max)
            return problem(directory, "the directories are nested too deeply");
        above_.push_back(here);
        const above_guard leaving{above_};
        std::error_code why;
        std::vector<std::string> names;
        for (fs::directory_iterator each(directory, why), end; not why and each != end; each.increment(why))
            names.push_back(each->path().filename().string());
        if (why) return problem(directory, why.message());
        std::ranges::sort(names);
        for (const std::string& name : names)
            add(directory / name, shown, joined_path(below, name), name);
    }

    void add(const fs::path& path, const std::string& shown, const std::string& below,
             const std::string& name) {
        if (made_.entries.size() == remote_entries_max) {
            if (not std::exchange(is_full_, true)) problem(path, "the tree has too many entries");
            return;
        }
        std::error_code why;
        fs::file_status status = fs::symlink_status(path, why);
        if (fs::is_symlink(status) and links_ == link_policy::follow) status = fs::status(path, why);
        if (why) return problem(path, why.message());
        std::string storage;
        sync_entry made{.path = joined_path(shown, std::string(vfs::shown_name(name, storage)))};
        if (fs::is_directory(status)) {
            const bool is_kept_out = mounts_ == mount_policy::keep_out and is_mount(path);
            made.is = is_kept_out ? sync_entry::kind::other : sync_entry::kind::directory;
        } else if (fs::is_regular_file(status)) {
            const std::uint64_t bytes = fs::file_size(path, why);
            if (why) return problem(path, why.message());
            const auto written = fs::last_write_time(path, why);
            if (why) return problem(path, why.message());
            made.bytes = bytes;
            made.modified =
                smb::wire::filetime_of(std::chrono::time_point_cast<std::chrono::system_clock::duration>(
                                           std::chrono::file_clock::to_sys(written)))
                    .ticks;
        } else {
            made.is = sync_entry::kind::other;
        }
        const bool is_directory = made.is == sync_entry::kind::directory;
        const std::string shown_path = made.path;
        made_.entries.push_back(std::move(made));
        made_.below.push_back(below);
        if (is_directory) enter(path, shown_path, below);
    }

    // Returns whether another file system is mounted on a directory. A subvolume is not a mount,
    // although it may have a device number of its own.
    [[nodiscard]] bool is_mount(const fs::path& directory) const {
        const auto open = io::path_handle::open(directory.string());
        if (not open) return false;  // its contents cannot be listed either
        const auto status = io::status_of(*open);
        if (not status) return true;
        if (io::has(status->supported_attributes, io::file_attributes::mount_root))
            return io::has(status->attributes, io::file_attributes::mount_root);
        return status->device != root_device_;
    }

    // Returns the identity of a directory, also if the path is a link to it.
    [[nodiscard]] static identity identity_of(const fs::path& directory) {
        const auto open = io::path_handle::open(directory.string());
        if (not open) return {0, 0};
        const auto status = io::status_of(*open);
        return status ? identity(status->device, status->inode) : identity(0, 0);
    }

    void problem(const fs::path& path, const std::string& why) {
        made_.problems.push_back(path.string() + ": list: " + why);
    }

    const fs::path& root_;
    link_policy links_;
    mount_policy mounts_;
    std::uint64_t root_device_;
    std::vector<identity> above_;
    bool is_full_ = false;
    local_tree made_;
};

}  // namespace

local_tree list_local_tree(const fs::path& root, link_policy links, mount_policy mounts) {
    return lister(root, links, mounts).list();
}

}  // namespace sluice::cli

#include "sluice/vfs/host/host_walk.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "sluice/io/path/confined_open.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr auto within_mount = io::confinement::beneath_one_mount_no_symlinks;
constexpr auto across_mounts = io::confinement::beneath_no_symlinks;

// Paths relative to the opened directory are confined by `limit_of_opened`.
result<io::directory_handle> open_at(int base, std::string_view name, io::confinement limit,
                                     io::confinement limit_of_opened) {
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    const auto opened = io::open_at(io::anchor_directory{.descriptor = base, .limit = limit},
                                    io::terminated_path(name), {.flags = flags, .operation = "list"});
    if (not opened) return failure(opened.error());
    return io::directory_handle({.descriptor = *opened, .kind = io::handle_kind::directory, .readable = true},
                                limit_of_opened);
}

// Removed, or replaced by something else, since its name was read.
bool is_gone(const error& why) noexcept {
    return why.code() == ENOENT or why.code() == ENOTDIR or why.code() == ELOOP;
}

class tree_walk {
public:
    tree_walk(const host_tree& tree, const walk_visitor& visitor) : tree_(tree), visitor_(visitor) {}

    void run() {
        enter_root();
        while (not levels_.empty()) {
            level& here = levels_.back();
            if (here.unseen.empty()) {
                leave();
            } else if (here.open.is_valid() or reopen_from_root()) {
                enter(take_name(here.unseen));
            } else {
                here.unseen.clear();
            }
        }
    }

private:
    [[nodiscard]] result<io::directory_handle> open_directory(int base, std::string_view name,
                                                              io::confinement limit) const {
        return open_at(base, name, limit, visitor_.crosses_mounts ? across_mounts : within_mount);
    }

    // A directory of the present path.
    struct level {
        io::directory_handle open;  // only in the last levels_open_max, so that the limit of
                                    // descriptors does not limit the depth
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        std::string unseen;  // names of directories in it, each followed by a zero
        std::size_t path_bytes = 0;
        bool is_beyond_mount = false;
    };
    static constexpr std::size_t levels_open_max = 32;

    static std::string take_name(std::string& names) {
        const std::size_t last = names.size() - 1;
        const std::size_t before = last == 0 ? names.npos : names.rfind('\0', last - 1);
        const std::size_t start = before == names.npos ? 0 : before + 1;
        std::string name = names.substr(start, last - start);
        names.resize(start);
        return name;
    }

    void enter_root() {
        auto root = open_directory(tree_.root().descriptor(), ".", within_mount);
        const auto status =
            root ? io::status_of(*root, walked_fields) : result<io::file_status>(failure(root.error()));
        if (not status) return visitor_.failed(path_, status.error());
        const io::directory_entry entry{
            .name = ".", .inode = status->inode, .type = status->type, .status = *status};
        visitor_.file({.directory = *root, .entry = entry, .path = path_});
        push(std::move(*root), *status, false);
    }

    void enter(const std::string& name) {
        const level& above = levels_.back();
        bool is_beyond_mount = above.is_beyond_mount;
        auto opened = open_directory(above.open.descriptor(), name, within_mount);
        if (not opened and opened.error().code() == EXDEV) {
            if (not visitor_.crosses_mounts) return;
            is_beyond_mount = true;
            opened = open_directory(above.open.descriptor(), name, across_mounts);
        }
        const auto status =
            opened ? io::status_of(*opened, walked_fields) : result<io::file_status>(failure(opened.error()));
        if (not status) {
            if (not is_gone(status.error())) visitor_.failed(join_path(path_, name), status.error());
            return;
        }
        if (not path_.empty()) path_ += '/';
        path_ += name;
        push(std::move(*opened), *status, is_beyond_mount);
    }

    void push(io::directory_handle open, const io::file_status& status, bool is_beyond_mount) {
        levels_.push_back({.open = std::move(open),
                           .device = status.device,
                           .inode = status.inode,
                           .unseen = {},
                           .path_bytes = path_.size(),
                           .is_beyond_mount = is_beyond_mount});
        if (levels_.size() > levels_open_max) levels_[levels_.size() - levels_open_max - 1].open = {};
        list(levels_.back());
    }

    void list(level& here) {
        const std::size_t own_bytes = path_.size();
        bool is_searched = true;
        const auto done = for_each_entry(here.open, walked_fields, [&](const io::directory_entry& each) {
            if (not each.status.knows(io::stat_fields::type)) {  // no right to search
                is_searched = false;
                return;
            }
            if (own_bytes != 0) path_ += '/';
            path_ += each.name;
            const bool is_directory = each.type == io::file_type::directory;
            const walked_entry entry{.directory = here.open,
                                     .entry = each,
                                     .path = path_,
                                     .is_beyond_mount = here.is_beyond_mount};
            if (is_stream_store(each.name)) {
                visitor_.store(entry);
            } else if (is_directory or each.type == io::file_type::regular) {
                visitor_.file(entry);
                if (is_directory) here.unseen.append(each.name).push_back('\0');
            }
            path_.resize(own_bytes);
        });
        path_.resize(own_bytes);
        const bool is_removed = not done and is_gone(done.error());
        if (not done and not is_removed) return visitor_.failed(path_, done.error());
        if (not is_searched) visitor_.failed(path_, {EACCES, "search"});
    }

    // The directory above is opened by way of this one, which takes one call at any depth.
    void leave() {
        const io::directory_handle left = std::move(levels_.back().open);
        levels_.pop_back();
        if (levels_.empty()) return;
        level& above = levels_.back();
        path_.resize(above.path_bytes);
        if (above.open.is_valid() or not left.is_valid()) return;
        auto opened = open_directory(left.descriptor(), "..", io::confinement::none);
        if (opened and is_it(*opened, above)) above.open = std::move(*opened);
    }

    static bool is_it(const io::directory_handle& opened, const level& expected) {
        const auto status = io::status_of(opened, io::stat_fields::inode);
        return status and status->device == expected.device and status->inode == expected.inode;
    }

    // For a directory that had been closed, if the one beneath it was moved in the meantime.
    bool reopen_from_root() {
        level& here = levels_.back();
        auto opened = open_directory(tree_.root().descriptor(), ".", within_mount);
        for (std::size_t at = 0; opened and at < path_.size();) {
            const std::size_t end = std::min(path_.find('/', at), path_.size());
            opened = open_directory(opened->descriptor(), std::string_view(path_).substr(at, end - at),
                                    across_mounts);
            at = end + 1;
        }
        if (opened and is_it(*opened, here)) {
            here.open = std::move(*opened);
            return true;
        }
        visitor_.failed(path_, opened ? error(ESTALE, "list") : opened.error());
        return false;
    }

    const host_tree& tree_;
    const walk_visitor& visitor_;
    std::deque<level> levels_;
    std::string path_;  // that leads to the last level
};

}  // namespace

void walk(const host_tree& tree, const walk_visitor& visitor) {
    tree_walk(tree, visitor).run();
}

}  // namespace sluice::vfs

#include "sluice/vfs/host_tree.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/vfs/host_name.hpp"
#include "sluice/vfs/lent_file.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

// The kernel's own name for what is open; empty if there is none.
std::string link_of(const io::handle& open) {
    std::array<char, io::limits::path_bytes_max> text;
    const ssize_t length =
        ::readlink(io::descriptor_path(open.descriptor()).c_str(), text.data(), text.size());
    return length < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(length));
}

bool is_missing(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory;
}

}  // namespace

std::string join_path(std::string_view directory, std::string_view name) {
    std::string path;
    path.reserve(directory.size() + 1 + name.size());
    path += directory;
    if (not directory.empty() and not name.empty()) path += '/';
    path += name;
    return path;
}

result<void> host_tree::may_change() const noexcept {
    if (options.read_only) return failure({EROFS, "change volume"});
    return {};
}

result<io::handle> host_tree::open_exactly(std::string_view path, follow_links links) const noexcept {
    const int no_follow = links == follow_links::no ? O_NOFOLLOW : 0;
    const io::terminated_path text(path.empty() ? std::string_view(".") : path);
    const auto descriptor = io::open_at(root, text, {.flags = O_PATH | no_follow, .operation = "find"});
    if (not descriptor) return failure(descriptor.error());
    return io::handle({.descriptor = *descriptor, .kind = io::handle_kind::path});
}

result<io::handle> host_tree::open(std::string_view shown, follow_links links) {
    std::string storage;
    const auto path = host_path(shown, storage);
    if (not path) return failure(path.error());
    for (unsigned attempt = 0;; ++attempt) {
        auto exact = open_exactly(*path, links);
        if (exact or not is_missing(exact.error())) return exact;
        const auto corrected = correct_case(*path);
        if (not corrected) return failure(corrected.error());
        auto found = open_exactly(*corrected, links);
        // Missing after all: renamed or removed in between. Or a link that leads nowhere, and stays one.
        if (found or not is_missing(found.error()) or attempt + 1 == limits::lookup_attempts_max)
            return found;
    }
}

result<host_place> host_tree::place(std::string_view shown) {
    std::string storage;
    const auto path = host_path(shown, storage);
    if (not path) return failure(path.error());
    if (path->empty()) return failure(error(EEXIST, "name"));
    const path_parts parts = split_path(*path);
    const auto parent = open_parent(parts.parent);
    if (not parent) return failure(parent.error());
    const io::handle& directory = parts.parent.empty() ? root : parent->open;
    auto found = index.find(directory, parts.name);
    if (not found) return failure(found.error());
    host_place there{.path = join_path(parent->path, parts.name)};
    if (*found) there.taken = join_path(parent->path, **found);
    return there;
}

// The directory at `path`, in whatever case; for the root nothing is opened.
result<host_tree::parent_directory> host_tree::open_parent(std::string_view path) {
    if (path.empty()) return parent_directory{};
    auto exact = io::path_handle::open(root, path);
    if (exact) return parent_directory{.path = std::string(path), .open = std::move(*exact)};
    if (not is_missing(exact.error())) return failure(exact.error());
    auto corrected = correct_every_component(path);
    // What is missing is not what was asked for, but a directory on the way there.
    if (not corrected)
        return failure(is_missing(corrected.error()) ? error::with_path(ENOTDIR, "find", path)
                                                     : corrected.error());
    auto opened = io::path_handle::open(root, *corrected);
    if (not opened) return failure(opened.error());
    return parent_directory{.path = std::move(*corrected), .open = std::move(*opened)};
}

// Most misses are of the last component: the rest of the path is then opened by one call, as it is spelled.
result<std::string> host_tree::correct_case(std::string_view path) {
    const path_parts parts = split_path(path);
    const auto parent = open_parent(parts.parent);
    if (not parent) return failure(parent.error());
    const io::handle& directory = parts.parent.empty() ? root : parent->open;
    auto found = index.find(directory, parts.name);
    if (not found) return failure(found.error());
    if (not*found) return failure(error::with_path(ENOENT, "find", path));
    return join_path(parent->path, **found);
}

result<std::string> host_tree::correct_every_component(std::string_view path) {
    std::string corrected;
    io::path_handle opened;
    const io::handle* here = &root;
    while (not path.empty()) {
        const std::string_view name = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        auto next = io::path_handle::open(root, join_path(corrected, name));
        if (next) {
            corrected = join_path(corrected, name);
        } else {
            if (not is_missing(next.error())) return failure(next.error());
            const auto found = index.find(*here, name);
            if (not found) return failure(found.error());
            if (not*found) return failure(next.error());
            corrected = join_path(corrected, **found);
            next = io::path_handle::open(root, corrected);
            if (not next) return failure(next.error());
        }
        opened = std::move(*next);
        here = &opened;
    }
    return corrected;
}

io::io_multiplexer& host_tree::multiplexer_here() const noexcept {
    return loop_here(loops);
}

std::optional<std::string> host_tree::present_path(const io::handle& open) const {
    const std::string base = link_of(root);
    std::string path = link_of(open);
    if (base.empty() or not path.starts_with(base)) return std::nullopt;
    constexpr std::string_view remark = " (deleted)";
    if (path.ends_with(remark)) {
        const auto status = io::status_of(open, io::stat_fields::links);
        // Also a name may end like that.
        if (not status or status->links == 0) return std::nullopt;
        const auto there = io::status_at({}, path, io::follow::no, io::stat_fields::inode);
        if (not there or not there->is_same_inode(*status)) return std::nullopt;
    }
    path.erase(0, base.size());
    if (path.empty() or base == "/") return path;
    if (not path.starts_with('/')) return std::nullopt;  // beside the root, with a longer name
    path.erase(0, 1);
    return path;
}

}  // namespace sluice::vfs

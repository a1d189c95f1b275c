#include "sluice/vfs/host/host_tree.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/host_place.hpp"
#include "sluice/vfs/host/name/directory_names.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/loop_bound_file.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

bool is_missing(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory;
}

// Maps the error of a creation in an open directory: ENOENT means that the directory itself was
// removed.
error as_of_parent(const error& why) noexcept {
    return is_missing(why) ? error(ENOTDIR, "create") : why;
}

// Does not query the properties of the new file, because they are known.
result<io::file_handle> make_on_root_device(const io::path_handle& base, std::string_view name,
                                            unsigned permission_bits, bool is_in_memory) noexcept {
    const auto descriptor = io::open_at(base, io::terminated_path(name),
                                        {.flags = O_RDWR | O_CREAT | O_EXCL | O_NOCTTY,
                                         .permission_bits = permission_bits,
                                         .operation = "create"});
    if (not descriptor) return failure(descriptor.error());
    return io::file_handle(io::native_handle{.descriptor = *descriptor,
                                             .kind = io::handle_kind::file,
                                             .readable = true,
                                             .writable = true,
                                             .in_memory = is_in_memory});
}

}  // namespace

bool host_tree::is_excluded(std::string_view host_name) const {
    return is_stream_store(host_name) or options.rejected_names.match(host_name);
}

bool host_tree::leads_to_excluded(std::string_view host_path) const {
    return leads_into_stream_store(host_path) or options.rejected_names.match_component(host_path);
}

// A name in a rejected directory is like one in a directory that is missing.
error host_tree::error_of_excluded(std::string_view host_path) const {
    const bool is_parent = leads_to_excluded(split_path(host_path).parent);
    return error::with_path(is_parent ? ENOTDIR : ENOENT, "find", host_path);
}

// A symbolic link may lead to a rejected name. A client can make a path longer than the kernel
// reports, so a file without a path is excluded.
bool host_tree::is_excluded(const io::handle& open, const io::file_status& status) const {
    if (is_in_stream_store(open, status)) return true;
    if (options.rejected_names.is_empty()) return false;
    const auto path = present_path(open, true);
    return not path or options.rejected_names.match_component(*path);
}

result<void> host_tree::may_change() const noexcept {
    if (options.read_only) return failure({EROFS, "change volume"});
    return {};
}

result<io::handle> host_tree::open_exactly(std::string_view path, follow_links links) const noexcept {
    const int no_follow = links == follow_links::no ? O_NOFOLLOW : 0;
    const io::terminated_path text(path.empty() ? std::string_view(".") : path);
    const auto descriptor = io::open_at(root(), text, {.flags = O_PATH | no_follow, .operation = "find"});
    if (not descriptor) return failure(descriptor.error());
    return io::handle({.descriptor = *descriptor, .kind = io::handle_kind::path});
}

bool host_tree::is_link(std::string_view path) const noexcept {
    const auto itself = open_exactly(path, follow_links::no);
    if (not itself) return false;
    const auto status = io::status_of(*itself, io::stat_fields::type);
    return status and status->type == io::file_type::symlink;
}

result<host_tree::found_path> host_tree::open(std::string_view shown, follow_links links, name_match match) {
    std::string storage;
    const auto path = host_path(shown, storage);
    if (not path) return failure(path.error());
    if (leads_to_excluded(*path)) return failure(error_of_excluded(*path));
    for (unsigned attempt = 0;; ++attempt) {
        auto exact = open_exactly(*path, links);
        if (exact) return found_path{.open = *std::move(exact), .is_as_spelled = true};
        if (match == name_match::exact or not is_missing(exact.error())) return failure(exact.error());
        const auto corrected = correct_case(*path);
        if (not corrected) return failure(corrected.error());
        // By a short name.
        if (leads_to_excluded(*corrected)) return failure(error_of_excluded(*corrected));
        auto found = open_exactly(*corrected, links);
        if (found) return found_path{.open = *std::move(found)};
        if (not is_missing(found.error())) return failure(found.error());
        if (links == follow_links::yes and is_link(*corrected))
            return failure(error::with_path(ENOLINK, "find", *corrected));
        // Renamed or removed in the meantime.
        if (attempt + 1 == limits::lookup_attempts_max) return failure(found.error());
    }
}

std::optional<host_tree::opened_file> host_tree::open_known_file(std::string_view shown, follow_links links,
                                                                 data_access wanted) noexcept {
    std::string storage;
    const auto path = host_path(shown, storage);
    const bool for_writing = wanted.write and not options.read_only;
    if (not(wanted.read or for_writing) or not path or not seen.has(*path)) return std::nullopt;
    if (leads_to_excluded(*path)) return std::nullopt;
    // O_NONBLOCK: fail instead of waiting for a process that has a lease on the file.
    const int flags = (for_writing ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_NOCTTY |
                      (links == follow_links::no ? O_NOFOLLOW : 0);
    const auto descriptor =
        io::open_at(root(), io::terminated_path(*path), {.flags = flags, .operation = "find"});
    if (not descriptor) {
        seen.forget(*path);
        return std::nullopt;
    }
    io::file_handle file(io::native_handle{.descriptor = *descriptor,
                                           .kind = io::handle_kind::file,
                                           .readable = true,
                                           .writable = for_writing,
                                           .in_memory = root_is_in_memory});
    const auto status = io::status_of(file, node_fields);
    const bool is_it = status and status->type == io::file_type::regular and status->device == root_device and
                       not is_excluded(file, *status);
    if (not is_it) {
        seen.forget(*path);
        return std::nullopt;
    }
    return opened_file{.file = std::move(file), .status = *status, .is_nonblocking = true};
}

result<host_place> host_tree::place(std::string_view shown) {
    std::string storage;
    const auto path = host_path(shown, storage);
    if (not path) return failure(path.error());
    if (path->empty()) return failure(error(EEXIST, "name"));
    const path_parts parts = split_path(*path);
    if (leads_to_excluded(parts.parent)) return failure(error::with_path(ENOTDIR, "find", *path));
    const auto parent = open_parent(parts.parent);
    if (not parent) return failure(parent.error());
    const io::handle& directory = parts.parent.empty() ? root() : parent->open;
    // A symbolic link may lead there, too.
    const auto status = io::status_of(directory, io::stat_fields::type | io::stat_fields::permissions);
    if (not status) return failure(status.error());
    if (is_excluded(directory, *status)) return failure(error::with_path(ENOTDIR, "find", *path));
    return place_of(directory, parent->path, parts.name);
}

result<host_place> host_tree::place_in(const io::handle& directory, std::string_view path,
                                       std::string_view shown_name) {
    if (shown_name.empty()) return failure(error(EEXIST, "name"));
    if (const auto valid = check_name(shown_name); not valid) return failure(valid.error());
    std::string storage;
    return place_of(directory, path, host_name(shown_name, storage));
}

// The name of the bin in the root, and all names in the bin itself.
bool host_tree::is_reserved_for_bin(const io::handle& directory, std::string_view name) const {
    if (not options.recycle or options.read_only) return false;
    const bool is_name = is_recycle_bin(name);
    const bool has_bin = bin_state.inode.load(std::memory_order_relaxed) != 0;
    if (not is_name and not has_bin) return false;
    const auto status = io::status_of(directory, io::stat_fields::inode);
    if (not status) return true;
    return (is_name and is_root(*status)) or is_recycle_bin(key_of(*status), directory);
}

result<host_place> host_tree::place_of(const io::handle& directory, std::string_view path,
                                       std::string_view name) {
    if (is_stream_store(name)) return failure(error::with_path(EACCES, "use the name of the streams", name));
    if (is_excluded(name)) return failure(error::with_path(EACCES, "use a rejected name", name));
    if (is_reserved_for_bin(directory, name))
        return failure(error::with_path(EACCES, "use the name of the recycle bin", name));
    const auto found = find_name(directory, name);
    if (not found) return failure(found.error());
    if (*found and is_excluded(**found))  // by a short name
        return failure(error::with_path(EACCES, "use a rejected name", name));
    host_place there{.path = join_path(path, name)};
    if (*found) there.taken = join_path(path, **found);
    return there;
}

result<io::handle> host_tree::open_directory(std::string_view shown) {
    std::string storage;
    const auto path = host_path(shown, storage);
    if (not path) return failure(path.error());
    if (leads_to_excluded(*path)) return failure(error_of_excluded(*path));
    const io::terminated_path text(path->empty() ? std::string_view(".") : *path);
    const auto descriptor = io::open_at(root(), text, {.flags = O_RDONLY | O_DIRECTORY, .operation = "find"});
    if (descriptor)
        return io::handle({.descriptor = *descriptor, .kind = io::handle_kind::directory, .readable = true});
    auto found = open(shown, follow_links::yes, name_match::any_case);
    if (not found) return failure(found.error());
    return std::move(found->open);
}

result<host_tree::opened_file> host_tree::make_file(const io::handle& directory, std::uint64_t device,
                                                    std::string_view name,
                                                    unsigned permission_bits) const noexcept {
    const borrowed_directory base(directory, root().confined());
    auto made =
        device == root_device
            ? make_on_root_device(base.get(), name, permission_bits, root_is_in_memory)
            : io::file_handle::open(base.get(), name, io::mode::write, io::creation::only_if_not_exist,
                                    io::caching::all, io::open_flag::none, permission_bits);
    if (not made) return failure(as_of_parent(made.error()));
    const auto status = io::status_of(*made, node_fields);
    if (not status) return failure(status.error());
    return opened_file{.file = std::move(*made), .status = *status};
}

result<host_tree::opened_directory> host_tree::make_directory(const io::handle& directory,
                                                              std::string_view name,
                                                              unsigned permission_bits) const noexcept {
    const borrowed_directory base(directory, root().confined());
    auto made = io::directory_handle::open(base.get(), name, io::mode::none, io::creation::only_if_not_exist,
                                           permission_bits);
    if (not made) return failure(as_of_parent(made.error()));
    const auto status = io::status_of(*made, node_fields);
    if (not status) return failure(status.error());
    return opened_directory{.directory = std::move(*made), .status = *status};
}

// Finds a name, ignoring case, or else a short name.
result<std::optional<std::string>> host_tree::find_name(const io::handle& directory,
                                                        std::string_view wanted) {
    auto found = index.find(directory, wanted, lookup_mode());
    if (not options.short_names or not found or *found) return found;
    return short_names.find(directory, wanted, short_name_caller());
}

short_name_tables::table_ptr host_tree::short_names_in(const io::handle& directory) {
    if (not options.short_names) return nullptr;
    auto found = short_names.of(directory, short_name_caller());
    return found ? *std::move(found) : nullptr;
}

short_name_tables::table_ptr host_tree::last_short_names_in(const io::handle& directory) {
    if (not options.short_names) return nullptr;
    auto found = short_names.last_of(directory, short_name_caller());
    return found ? *std::move(found) : nullptr;
}

result<short_name> host_tree::short_name_at(std::string_view path) {
    if (not options.short_names) return short_name{};
    const path_parts parts = split_path(path);
    const auto directory = open_exactly(parts.parent, follow_links::yes);
    if (not directory) return failure(directory.error());
    return short_names.of_file(*directory, parts.name, short_name_caller());
}

result<void> host_tree::set_short_name_at(std::string_view path, const short_name& wanted) {
    if (const auto may = may_change(); not may) return may;
    if (not options.short_names) return failure({EOPNOTSUPP, "set short name"});
    const path_parts parts = split_path(path);
    const auto directory = open_exactly(parts.parent, follow_links::yes);
    if (not directory) return failure(directory.error());
    return short_names.set(*directory, parts.name, wanted, reach_of_call());
}

// Opens the directory at `path`, ignoring case. For the root, opens nothing.
result<host_tree::parent_directory> host_tree::open_parent(std::string_view path) {
    if (path.empty()) return parent_directory{};
    auto exact = io::path_handle::open(root(), path);
    if (exact) return parent_directory{.path = std::string(path), .open = std::move(*exact)};
    if (not is_missing(exact.error())) return failure(exact.error());
    auto corrected = correct_every_component(path);
    // The missing name is not the requested one, but a directory of its path.
    if (not corrected)
        return failure(is_missing(corrected.error()) ? error::with_path(ENOTDIR, "find", path)
                                                     : corrected.error());
    auto opened = io::path_handle::open(root(), *corrected);
    if (not opened) return failure(opened.error());
    return parent_directory{.path = std::move(*corrected), .open = std::move(*opened)};
}

// Corrects the case of a path. Most misses concern the last component, so the rest of the path is
// first opened exactly, by one call.
result<std::string> host_tree::correct_case(std::string_view path) {
    const path_parts parts = split_path(path);
    const auto parent = open_parent(parts.parent);
    if (not parent) return failure(parent.error());
    const io::handle& directory = parts.parent.empty() ? root() : parent->open;
    auto found = find_name(directory, parts.name);
    if (not found) return failure(found.error());
    if (not*found) return failure(error::with_path(ENOENT, "find", path));
    return join_path(parent->path, **found);
}

result<std::string> host_tree::correct_every_component(std::string_view path) {
    std::string corrected;
    io::path_handle opened;
    const io::handle* here = &root();
    while (not path.empty()) {
        const std::string_view name = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        auto next = io::path_handle::open(root(), join_path(corrected, name));
        if (next) {
            corrected = join_path(corrected, name);
        } else {
            if (not is_missing(next.error())) return failure(next.error());
            const auto found = find_name(*here, name);
            if (not found) return failure(found.error());
            if (not*found) return failure(next.error());
            corrected = join_path(corrected, **found);
            next = io::path_handle::open(root(), corrected);
            if (not next) return failure(next.error());
        }
        opened = std::move(*next);
        here = &opened;
    }
    return corrected;
}

// Adds a directory if it is on the root's file system: on another one, streams would be charged to
// that.
result<void> host_tree::add_store_place(const io::path_handle& directory) {
    const auto status = io::status_of(directory, io::stat_fields::inode);
    if (not status) return failure(status.error());
    if (status->device != root_device) return {};
    auto place = io::path_handle::open(directory, ".", io::confinement::beneath_one_mount_no_symlinks);
    if (not place) return failure(place.error());
    store_places_.push_back(std::move(*place));
    return {};
}

result<void> host_tree::open_store_places() {
    if (not options.streams_root.empty()) {
        auto here = io::path_handle::open(options.streams_root, io::confinement::beneath_no_symlinks);
        if (not here) return failure(here.error());
        const std::string from = link_of(*here);
        const std::string to = link_of(root_);
        const bool contains = to.size() > from.size() and to.starts_with(from) and
                              (from.ends_with('/') or to[from.size()] == '/');
        std::string_view path = contains ? std::string_view(to).substr(from.size()) : std::string_view();
        while (path.starts_with('/'))
            path.remove_prefix(1);
        while (not path.empty()) {
            if (const auto added = add_store_place(*here); not added) return added;
            const std::string_view name = path.substr(0, path.find('/'));
            path.remove_prefix(std::min(path.size(), name.size() + 1));
            here = io::path_handle::open(*here, name);
            if (not here) return failure(here.error());
        }
    }
    return add_store_place(root_);
}

result<void> host_tree::set_crossing_domain(std::shared_ptr<fs_domain> workers) noexcept {
    const int again = ::fcntl(root_.descriptor(), F_DUPFD_CLOEXEC, 0);
    if (again < 0) return failure(error::last("fcntl", root_.descriptor()));
    const bool follows = root_.confined() == io::confinement::beneath;
    one_mount_root_ = io::path_handle(
        {.descriptor = again, .kind = io::handle_kind::path},
        follows ? io::confinement::beneath_one_mount : io::confinement::beneath_one_mount_no_symlinks);
    crossing_domain_ = std::move(workers);
    return {};
}

io::io_multiplexer& host_tree::multiplexer_here() const noexcept {
    return loop_here(loops);
}

std::string link_of(const io::handle& open) {
    std::array<char, io::limits::path_bytes_max> text;
    const ssize_t length =
        ::readlink(io::descriptor_path(open.descriptor()).c_str(), text.data(), text.size());
    return length < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(length));
}

std::optional<std::string> host_tree::present_path(const io::handle& open, bool may_ask) const {
    const std::string base = link_of(root());
    std::string path = link_of(open);
    if (base.empty() or not path.starts_with(base)) return std::nullopt;
    path.erase(0, base.size());
    if (not path.empty() and base != "/") {
        // A directory next to the root, with a longer name.
        if (not path.starts_with('/')) return std::nullopt;
        path.erase(0, 1);
    }
    constexpr std::string_view remark = " (deleted)";
    if (path.ends_with(remark)) {
        if (not may_ask) return std::nullopt;
        const auto status = io::status_of(open, io::stat_fields::links | io::stat_fields::inode);
        // A name may also end like that.
        if (not status or status->links == 0) return std::nullopt;
        const auto there = io::status_at(root(), path, io::follow::no, io::stat_fields::inode);
        if (not there or not there->is_same_inode(*status)) return std::nullopt;
    }
    return path;
}

}  // namespace sluice::vfs

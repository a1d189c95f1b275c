#include "sluice/io/path/fs_location.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/status_conversion.hpp"

namespace sluice::io {
namespace {

// The directory and the name of an open inode.
struct present_name {
    path_handle directory;
    std::array<char, limits::name_bytes_max + 1> text{};
    bool is_directory = false;
};

// Looks the name up once. EAGAIN: the name changed during the lookup. `itself` is the status of the
// open file.
result<void> look_up(const handle& open, const file_status& itself, present_name& found) noexcept {
    ENSURE(itself.links != 0, "an inode without links has no name");
    const int descriptor = open.descriptor();
    std::array<char, limits::path_bytes_max> path;
    const ssize_t length = ::readlink(descriptor_path(descriptor).c_str(), path.data(), path.size());
    if (length < 0) return failure(error::last("readlink /proc/self/fd", descriptor));
    const std::string_view text(path.data(), static_cast<std::size_t>(length));
    const std::size_t slash = text.rfind('/');
    // Pipes and sockets have no path; the path of a file outside our root begins with
    // "(unreachable)".
    if (slash == text.npos or text.front() != '/') return failure({ENOENT, "find the name", descriptor});
    const std::string_view name = text.substr(slash + 1);
    const bool looks_deleted = name.ends_with(" (deleted)");
    const int gone = looks_deleted ? ENOENT : EAGAIN;
    if (name.empty()) return failure({EBUSY, "find the name", descriptor});  // the root directory
    // Longer than a name can be: the kernel has appended its remark to a name of nearly full
    // length.
    if (name.size() > limits::name_bytes_max) return failure({gone, "find the name", descriptor});
    name.copy(found.text.data(), name.size());
    found.text[name.size()] = '\0';

    // The path may lead elsewhere by now, but only the check below matters: that name must be our
    // inode.
    auto directory = path_handle::open(text.substr(0, slash + 1));
    if (not directory) {
        const int code = directory.error().code();
        const bool changed = code == ENOENT or code == ENOTDIR or code == ELOOP;
        return failure({changed ? gone : code, "find the name", descriptor});
    }
    found.directory = std::move(*directory);
    file_status there;
    const int code = read_status(found.directory.descriptor(), found.text.data(), AT_SYMLINK_NOFOLLOW,
                                 stat_fields::inode, there);
    if (code != 0 and code != ENOENT) return failure({code, "find the name", descriptor});
    if (code == ENOENT or not there.is_same_inode(itself))
        return failure({gone, "find the name", descriptor});
    found.is_directory = itself.type == file_type::directory;
    return {};
}

result<void> find_present_name(const handle& open, present_name& found) noexcept {
    const auto itself = status_of(open, stat_fields::type | stat_fields::links | stat_fields::inode);
    if (not itself) return failure(itself.error());
    if (itself->links == 0) return failure({ENOENT, "find the name", open.descriptor()});
    result<void> seen;
    for (unsigned attempt = 0; attempt < limits::locate_attempts_max; ++attempt) {
        seen = look_up(open, *itself, found);
        if (seen or seen.error() != std::errc::resource_unavailable_try_again) break;
    }
    ENSURE(not seen or (found.directory.is_valid() and found.text[0] != '\0'),
           "a name without its directory, or without text, was found");
    return seen;
}

// Before Linux 6.10, linkat requires a privilege to link by descriptor (ENOENT otherwise), but not
// to link through /proc.
int link_inode(const handle& open, int directory, const char* name) noexcept {
    if (::linkat(open.descriptor(), "", directory, name, AT_EMPTY_PATH) == 0) return 0;
    if (errno != ENOENT and errno != EINVAL and errno != EPERM) return -1;
    return ::linkat(AT_FDCWD, descriptor_path(open.descriptor()).c_str(), directory, name, AT_SYMLINK_FOLLOW);
}

// Gives an inode without a name its first. Replacing requires a second name, which is renamed over
// the wanted one.
result<void> name_anonymous(const handle& open, const location& place, replace existing) noexcept {
    if (link_inode(open, place.directory(), place.name()) == 0) return {};
    if (errno != EEXIST or existing == replace::no) return failure(place.last("link"));
    for (unsigned attempt = 0; attempt < limits::temporary_name_attempts_max; ++attempt) {
        const temporary_name beside;
        if (link_inode(open, place.directory(), beside.c_str()) != 0) {
            if (errno == EEXIST) continue;
            return failure(place.last("link"));
        }
        if (::renameat(place.directory(), beside.c_str(), place.directory(), place.name()) == 0) return {};
        const error why = place.last("rename");
        (void)::unlinkat(place.directory(), beside.c_str(), 0);
        return failure(why);
    }
    return failure(error::with_path(EEXIST, "link", place.text()));
}

result<void> rename_over(const present_name& from, const location& to) noexcept {
    if (::renameat(from.directory.descriptor(), from.text.data(), to.directory(), to.name()) == 0) return {};
    return failure(to.last("rename"));
}

result<void> rename_no_replace(const handle& open, const present_name& from, const location& to) noexcept {
    if (::renameat2(from.directory.descriptor(), from.text.data(), to.directory(), to.name(),
                    RENAME_NOREPLACE) == 0)
        return {};
    if ((errno != EINVAL and errno != ENOSYS) or from.is_directory) return failure(to.last("rename"));
    if (link_inode(open, to.directory(), to.name()) != 0) return failure(to.last("link"));
    if (::unlinkat(from.directory.descriptor(), from.text.data(), 0) == 0) return {};
    const error why = error::with_path(errno, "remove", from.text.data());
    (void)::unlinkat(to.directory(), to.name(), 0);  // one name, as before
    return failure(why);
}

result<void> remove_name(const path_handle& base, path_view path, int flags) noexcept {
    ENSURE(flags == 0 or flags == AT_REMOVEDIR, "unlinkat knows no other flags");
    const location place(base, path, "remove");
    if (not place.reached()) return failure(place.reached().error());
    if (::unlinkat(place.directory(), place.name(), flags) != 0) return failure(place.last("remove"));
    return {};
}

}  // namespace

result<present_place> place_of(const handle& open) noexcept {
    present_name name;
    if (const auto found = find_present_name(open, name); not found) return failure(found.error());
    return present_place{.directory = std::move(name.directory), .name = name.text.data()};
}

// The kernel cannot remove a name on condition of its inode. A rename to a unique name, a check
// there, and the removal of that name would close the gap after the check, but does more harm than
// the gap: a wrong inode loses its name until it is renamed back, which fails if the name is taken
// by then; watches report a rename instead of a removal; and a crash leaves the file under the
// unique name. Programs that cooperate must exclude a rename to a name that is being removed, as
// the SMB server does for its clients.
result<void> unlink(const handle& open) noexcept {
    present_name name;
    if (const auto found = find_present_name(open, name); not found) return failure(found.error());
    if (::unlinkat(name.directory.descriptor(), name.text.data(), name.is_directory ? AT_REMOVEDIR : 0) != 0)
        return failure(error::with_path(errno, "remove", name.text.data()));
    return {};
}

result<void> unlink(const handle& open, const path_handle& base, path_view likely) noexcept {
    const auto itself = status_of(open, stat_fields::type | stat_fields::links | stat_fields::inode);
    // One of several names need not be the one it was opened by.
    if (not itself or itself->links != 1 or itself->type != file_type::regular) return unlink(open);
    const location place(base, likely, "remove");
    file_status there;
    const bool is_there =
        place.reached() and
        read_status(place.directory(), place.name(), AT_SYMLINK_NOFOLLOW, stat_fields::inode, there) == 0 and
        there.is_same_inode(*itself);
    if (not is_there) return unlink(open);
    if (::unlinkat(place.directory(), place.name(), 0) == 0) return {};
    return errno == ENOENT ? unlink(open) : failure(place.last("remove"));
}

result<void> relink(const handle& open, const path_handle& base, path_view path, replace existing) noexcept {
    // Opened even if the rename itself does not need it: the temporary name is in the same
    // directory.
    const location to(base, path, "rename", location::parent::opened);
    if (not to.reached()) return failure(to.reached().error());

    const auto itself = status_of(open, stat_fields::links | stat_fields::type);
    if (not itself) return failure(itself.error());
    // A removed directory also has no links; the kernel refuses to link it.
    if (itself->links == 0) return name_anonymous(open, to, existing);

    present_name from;
    if (const auto found = find_present_name(open, from); not found) return failure(found.error());
    return existing == replace::yes ? rename_over(from, to) : rename_no_replace(open, from, to);
}

result<void> link(const handle& open, const path_handle& base, path_view path) noexcept {
    const location place(base, path, "link");
    if (not place.reached()) return failure(place.reached().error());
    if (link_inode(open, place.directory(), place.name()) != 0) return failure(place.last("link"));
    return {};
}

result<void> remove(const path_handle& base, path_view path) noexcept {
    return remove_name(base, path, 0);
}

result<void> remove_directory(const path_handle& base, path_view path) noexcept {
    return remove_name(base, path, AT_REMOVEDIR);
}

}  // namespace sluice::io

#include "sluice/fsmutex/process/lock_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "sluice/fsmutex/limits.hpp"
#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"

namespace sluice::fsmutex {
namespace {

constexpr unsigned refusals_max = 10;  // with pauses up to 16 ms, about 30 ms

std::string_view directory_part(std::string_view path) noexcept {
    while (path.size() > 1 and path.ends_with('/'))
        path.remove_suffix(1);
    const auto slash = path.rfind('/');
    if (slash == path.npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

// A class of users that can read a directory can search it. Its files get its group.
unsigned of_directory(unsigned mode) noexcept {
    const unsigned inherits_group = (mode & 0020U) != 0 ? unsigned{S_ISGID} : 0U;
    return mode | (mode & 0444U) >> 2 | inherits_group;
}

}  // namespace

bool refused_opens::pause(const dependencies& from) noexcept {
    if (++count_ == refusals_max) return false;
    backoff(rounds_).sleep(*from.clock, *from.random, clock_source::steady_time::max());
    return true;
}

lock_directory::lock_directory(const struct stat& of) noexcept
    : mode_(of.st_mode & 07777U), owner_(of.st_uid), group_(of.st_gid) {}

result<lock_directory> lock_directory::of(const io::path_handle& base, io::path_view path) noexcept {
    const io::terminated_path directory(directory_part(path.text()));
    if (directory.problem() != 0) return failure(error::with_path(directory.problem(), "open", path.text()));
    struct stat status{};
    if (::fstatat(io::directory_of(base), directory.c_str(), &status, 0) != 0)
        return failure(error::with_path(errno, "open", path.text()));
    return lock_directory(status);
}

int lock_directory::problem_with(const struct stat& found, const file_access& access) const noexcept {
    if (not is_shared()) return 0;
    // It may be another name of a file that others must not write, or see removed.
    if (not S_ISDIR(found.st_mode) and found.st_nlink > 1) return EMLINK;
    const bool is_sticky = (mode_ & S_ISVTX) != 0;
    const bool is_trusted = found.st_uid == ::geteuid() or found.st_uid == 0 or found.st_uid == owner_;
    return is_sticky and not is_trusted and not access.is_shared() ? EPERM : 0;
}

result<void> lock_directory::apply_to(int created, const file_access& access,
                                      bool is_directory) const noexcept {
    const bool is_sticky = (mode_ & S_ISVTX) != 0;
    unsigned mode = 0600;
    if ((mode_ & S_IWGRP) != 0 and not is_sticky) mode |= 0060U;
    if ((mode_ & S_IWOTH) != 0 and not is_sticky) mode |= 0006U;
    if (access.group) mode |= 0060U;
    if (access.group and ::fchown(created, static_cast<uid_t>(-1), *access.group) != 0)
        return failure(error::last("set the group of a lock file", created));
    // Without membership of that group, another group would get the rights.
    const bool follows_group = not access.group and not access.mode and (mode & 0060U) != 0;
    if (follows_group and ::fchown(created, static_cast<uid_t>(-1), group_) != 0) mode &= ~0060U;
    mode = access.mode.value_or(mode);
    // Not by the call that created it: the umask would remove bits.
    if (::fchmod(created, is_directory ? of_directory(mode) : mode) != 0)
        return failure(error::last("set the permissions of a lock file", created));
    return {};
}

namespace {

result<io::file_handle> create_in(const lock_directory& directory, const io::path_handle& base,
                                  io::path_view path, const file_access& access) noexcept {
    auto created = io::file_handle::open(base, path, io::mode::write, io::creation::only_if_not_exist,
                                         io::caching::all, io::open_flag::none, 0600);
    if (not created) return created;
    if (const auto applied = directory.apply_to(created->descriptor(), access, false); not applied) {
        (void)io::unlink(*created);
        return failure(applied.error());
    }
    return created;
}

result<io::file_handle> open_existing_in(const lock_directory& directory, const io::path_handle& base,
                                         io::path_view path, const file_access& access) noexcept {
    const auto flags = directory.is_shared() ? io::open_flag::no_follow : io::open_flag::none;
    auto opened = io::file_handle::open(base, path, io::mode::write, io::creation::open_existing,
                                        io::caching::all, flags);
    if (not opened) return opened;
    struct stat status{};
    if (::fstat(opened->descriptor(), &status) != 0)
        return failure(error::last("get the status of a lock file", opened->descriptor()));
    if (not S_ISREG(status.st_mode))
        // As open(2) of some FIFOs and sockets.
        return failure(error::with_path(ENXIO, "open", path.text()));
    if (not directory.is_shared()) return opened;
    const int problem = directory.problem_with(status, access);
    if (problem != 0) return failure(error::with_path(problem, "open", path.text()));
    return opened;
}

}  // namespace

result<io::file_handle> create_lock_file(const io::path_handle& base, io::path_view path,
                                         const file_access& access) noexcept {
    const auto directory = lock_directory::of(base, path);
    if (not directory) return failure(directory.error());
    return create_in(*directory, base, path, access);
}

result<io::file_handle> open_lock_file(const io::path_handle& base, io::path_view path,
                                       const dependencies& from, const file_access& access) noexcept {
    const auto directory = lock_directory::of(base, path);
    if (not directory) return failure(directory.error());
    refused_opens refusals;
    for (unsigned attempt = 0; attempt != limits::vanished_mutex_attempts_max; ++attempt) {
        auto opened = open_existing_in(*directory, base, path, access);
        if (not opened and opened.error() == std::errc::permission_denied and refusals.pause(from)) continue;
        if (opened or opened.error() != std::errc::no_such_file_or_directory) return opened;
        auto created = create_in(*directory, base, path, access);
        if (created or created.error() != std::errc::file_exists) return created;
        // A link without a target can be neither opened nor created.
        struct stat status{};
        const io::terminated_path name(path);
        if (::fstatat(io::directory_of(base), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 and
            S_ISLNK(status.st_mode))
            return failure(error::with_path(ELOOP, "open", path.text()));
    }
    return failure(error::with_path(ESTALE, "open", path.text()));
}

}  // namespace sluice::fsmutex

#include "sluice/io/path/confined_open.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sluice/base/ensure.hpp"
#include "sluice/base/held_mutexes.hpp"
#include "sluice/io/call/limits.hpp"

namespace sluice::io {
namespace {

std::uint64_t resolve_flags(confinement limit) noexcept {
    switch (limit) {
        case confinement::none:
            ENSURE(false, "openat opens paths without confinement");
            break;
        case confinement::beneath:
            return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
        case confinement::beneath_no_symlinks:
            return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
        case confinement::beneath_one_mount:
            return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
        case confinement::beneath_one_mount_no_symlinks:
            break;
    }
    return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
}

int open_anywhere(int directory, const char* path, const open_how_at& how) noexcept {
    for (;;) {
        const int descriptor = ::openat(directory, path, how.flags | O_CLOEXEC, how.permission_bits);
        if (descriptor >= 0 or errno != EINTR) return descriptor;
    }
}

int open_confined(int directory, const char* path, const open_how_at& how, confinement limit) noexcept {
    open_how request{};
    request.flags = static_cast<unsigned>(how.flags | O_CLOEXEC);
    // Unlike openat, openat2 refuses a mode that would not be used.
    const bool creates = (how.flags & O_CREAT) != 0 or (how.flags & O_TMPFILE) == O_TMPFILE;
    request.mode = creates ? how.permission_bits : 0;
    request.resolve = resolve_flags(limit);
    unsigned attempts = 0;
    for (;;) {
        const long descriptor = ::syscall(SYS_openat2, directory, path, &request, sizeof request);
        if (descriptor >= 0) return static_cast<int>(descriptor);
        if (errno == EINTR) continue;
        // A rename anywhere in the system came between while `..` was being walked. Rarely twice.
        if (errno != EAGAIN or ++attempts == limits::confined_open_attempts_max) return -1;
    }
}

}  // namespace

int directory_of(const anchor_directory& base) noexcept {
    return base.descriptor >= 0 ? base.descriptor : AT_FDCWD;
}

result<int> open_at(const anchor_directory& base, const terminated_path& path, open_how_at how) noexcept {
    held_mutexes::ensure_none();
    if (path.problem() != 0) return failure(error::with_path(path.problem(), how.operation, path.text()));
    if (base.descriptor < 0 and base.limit != confinement::none)
        return failure(error::with_path(EBADF, how.operation, path.text()));
    const int descriptor = base.limit == confinement::none
                               ? open_anywhere(directory_of(base), path.c_str(), how)
                               : open_confined(base.descriptor, path.c_str(), how, base.limit);
    if (descriptor < 0) return failure(error::with_path(errno, how.operation, path.text()));
    return descriptor;
}

}  // namespace sluice::io

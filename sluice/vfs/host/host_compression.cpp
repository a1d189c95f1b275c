#include "sluice/vfs/host/host_compression.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/path_resolution.hpp"

namespace sluice::vfs {
namespace {

// The file system has no such attribute, or not for this file: btrfs refuses it for files that are
// not copied on write.
bool is_unsuitable(int code) noexcept {
    return code == ENOTTY or code == EOPNOTSUPP or code == ENOSYS or code == EINVAL;
}

// EBADF: the descriptor is for naming only.
result<void> mark_by(int descriptor, bool is_compressed) noexcept {
    int flags = 0;
    int done = ::ioctl(descriptor, FS_IOC_GETFLAGS, &flags);
    if (done == 0) {
        constexpr int never_compressed = FS_NOCOMP_FL;  // excludes the other
        const int wanted =
            is_compressed ? (flags & ~never_compressed) | FS_COMPR_FL : flags & ~int{FS_COMPR_FL};
        if (wanted == flags) return {};
        done = ::ioctl(descriptor, FS_IOC_SETFLAGS, &wanted);
    }
    if (done == 0) return {};
    return failure(error(is_unsuitable(errno) ? EOPNOTSUPP : errno, "mark compressed", descriptor));
}

// For reading, or for writing if the account may only write. Without waiting for a process that has
// a lease.
result<io::handle> open_again(const io::handle& named) noexcept {
    const io::descriptor_path itself(named.descriptor());
    constexpr int flags = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int descriptor = ::open(itself.c_str(), O_RDONLY | flags);
    if (descriptor < 0 and errno == EACCES) descriptor = ::open(itself.c_str(), O_WRONLY | flags);
    if (descriptor >= 0) return io::handle({.descriptor = descriptor, .kind = io::handle_kind::file});
    if (errno == EISDIR) errno = EACCES;  // a directory that the account may not list
    return failure(error(errno == EWOULDBLOCK ? EBUSY : errno, "mark compressed", named.descriptor()));
}

}  // namespace

bool can_mark_compressed(const io::path_handle& directory) noexcept {
    const auto file = io::file_handle::temp_inode(directory);
    if (not file or not mark_by(file->descriptor(), true)) return false;
    const auto status = io::status_of(*file, io::stat_fields::type);
    return status and has(status->supported_attributes, io::file_attributes::compressed) and
           has(status->attributes, io::file_attributes::compressed);
}

result<void> mark_compressed(const io::handle& open, bool is_compressed) noexcept {
    const auto marked = mark_by(open.descriptor(), is_compressed);
    if (marked or marked.error().code() != EBADF) return marked;
    const auto again = open_again(open);
    if (not again) return failure(again.error());
    return mark_by(again->descriptor(), is_compressed);
}

}  // namespace sluice::vfs

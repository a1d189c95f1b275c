#include "sluice/io/call/handle.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace sluice::io {
namespace {

// Returns whether the path refers to the open file.
bool refers_to(int descriptor, const std::string& path) noexcept {
    struct stat open{};
    struct stat named{};
    return ::fstat(descriptor, &open) == 0 and ::lstat(path.c_str(), &named) == 0 and
           open.st_dev == named.st_dev and open.st_ino == named.st_ino;
}

}  // namespace

result<void> handle::close() noexcept {
    if (not native_.is_valid()) return {};
    const int descriptor = std::exchange(native_, {}).descriptor;
    // Linux releases the descriptor even when close fails, EINTR included. A second close could
    // close the descriptor of another handle.
    if (::close(descriptor) != 0 and errno != EINTR) return failure(error::last("close", descriptor));
    return {};
}

void handle::close_ignoring_errors() noexcept {
    // Callers that need the errors of a write-back call barrier() or close().
    if (native_.is_valid()) (void)::close(native_.descriptor);
}

result<std::string> handle::current_path() const {
    std::array<char, 32> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", native_.descriptor);
    std::array<char, PATH_MAX + 1> target{};
    const ssize_t length = ::readlink(link.data(), target.data(), PATH_MAX);
    if (length < 0) return failure(error::last("readlink /proc/self/fd", native_.descriptor));
    std::string path(target.data(), static_cast<std::size_t>(length));
    // The kernel's remark, unless it is part of the name.
    if (path.ends_with(" (deleted)") and not refers_to(native_.descriptor, path))
        return failure({ENOENT, "current_path", native_.descriptor});
    return path;
}

}  // namespace sluice::io

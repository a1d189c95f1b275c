#include "sluice/io/file/reopen.hpp"

#include <fcntl.h>

#include <cerrno>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/path_resolution.hpp"

namespace sluice::io {
namespace {

int open_again(const char* path, int flags) noexcept {
    int descriptor = -1;
    do {
        descriptor = ::open(path, flags);
    } while (descriptor < 0 and errno == EINTR);
    return descriptor;
}

}  // namespace

result<file_handle> reopen(const handle& named, mode wanted, known_file known) noexcept {
    ENSURE(wanted == mode::read or wanted == mode::write);
    const descriptor_path itself(named.descriptor());
    const int flags = (wanted == mode::write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY;
    int descriptor = open_again(itself.c_str(), flags | O_NONBLOCK);
    // Another process has a lease on it; the kernel is breaking it, and open can wait for that.
    const bool has_waited = descriptor < 0 and errno == EAGAIN;
    if (has_waited) descriptor = open_again(itself.c_str(), flags);
    if (descriptor < 0) return failure(error::last("open", named.descriptor()));
    file_handle opened(native_handle{.descriptor = descriptor,
                                     .kind = handle_kind::file,
                                     .readable = true,
                                     .writable = wanted == mode::write,
                                     .in_memory = known.in_memory});
    // A ring would return EAGAIN instead of waiting for the disk. No other flag that F_SETFL
    // changes is set.
    if (not has_waited and ::fcntl(descriptor, F_SETFL, 0) != 0)
        return failure(error::last("open", named.descriptor()));
    return opened;
}

}  // namespace sluice::io

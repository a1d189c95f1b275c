#include "sluice/io/stream/pipe_handle.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

#include "sluice/io/call/socket_call.hpp"
#include "sluice/io/path/path_resolution.hpp"

namespace sluice::io {
namespace {

constexpr native_handle describe(int descriptor, bool readable, bool writable) noexcept {
    return {.descriptor = descriptor,
            .kind = handle_kind::pipe,
            .readable = readable,
            .writable = writable,
            .nonblocking = true,
            .stream = true};
}

void nap(std::chrono::nanoseconds length) noexcept {
    ENSURE(length > length.zero() and length < std::chrono::seconds(1), "beyond the field for nanoseconds");
    const timespec duration{.tv_sec = 0, .tv_nsec = length.count()};
    (void)::nanosleep(&duration, nullptr);
}

// Returns whether a FIFO, whose reading end is `reader`, has a writer: only then does an empty one
// make readers wait. Uses tee, which consumes no bytes, into a pipe created for this purpose. If a
// signal interrupts it, the result is false, and the caller asks again.
bool has_writer(int reader, const pipe_handle& scratch) noexcept {
    const ssize_t held = ::tee(reader, scratch.descriptor(), 1, SPLICE_F_NONBLOCK);
    return held > 0 or (held < 0 and errno != EINTR);
}

// Tries to open a writing end, repeatedly until there is a reader.
result<int> open_writer(const path_handle& base, const terminated_path& path, deadline within) noexcept {
    using namespace std::chrono_literals;
    ENSURE(not within.is_none(), "without a deadline the kernel waits");
    const auto started = deadline::steady_clock::now();
    std::chrono::nanoseconds pause = 100us;
    for (;;) {
        auto opened =
            open_at(base, path, {.flags = O_WRONLY | O_NONBLOCK | O_NOCTTY, .operation = "open a FIFO"});
        if (opened or opened.error().code() != ENXIO or within.is_zero()) return opened;
        const auto left =
            within.remaining(started, deadline::steady_clock::now(), deadline::system_clock::now());
        if (left == 0ns) return failure(error::with_path(ETIMEDOUT, "open a FIFO", path.text()));
        nap(std::min<std::chrono::nanoseconds>(pause, left));
        pause = std::min<std::chrono::nanoseconds>(pause * 2, 10ms);
    }
}

result<void> wait_for_writer(const pipe_handle& reader, const terminated_path& path,
                             deadline within) noexcept {
    using namespace std::chrono_literals;
    if (within.is_zero()) return {};
    ENSURE(not within.is_none(), "without a deadline the kernel waits");
    const auto started = deadline::steady_clock::now();
    auto scratch = pipe_handle::anonymous();
    if (not scratch) return failure(scratch.error());
    std::chrono::nanoseconds pause = 100us;
    while (not has_writer(reader.descriptor(), scratch->writer)) {
        const auto left =
            within.remaining(started, deadline::steady_clock::now(), deadline::system_clock::now());
        if (left == 0ns) return failure(error::with_path(ETIMEDOUT, "open a FIFO", path.text()));
        nap(std::min<std::chrono::nanoseconds>(pause, left));
        pause = std::min<std::chrono::nanoseconds>(pause * 2, 10ms);
    }
    return {};
}

}  // namespace

result<pipe_handle::pair> pipe_handle::anonymous(std::size_t capacity_bytes) noexcept {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return failure(error::last("pipe2"));
    pair made{.reader = pipe_handle(describe(ends[0], true, false)),
              .writer = pipe_handle(describe(ends[1], false, true))};
    if (capacity_bytes == 0) return made;
    if (auto set = made.writer.set_capacity(capacity_bytes); not set) return failure(set.error());
    return made;
}

result<void> pipe_handle::create(const path_handle& base, path_view path, unsigned permission_bits) noexcept {
    const location at(base, path, "make a FIFO");
    if (not at.reached()) return at.reached();
    if (::mkfifoat(at.directory(), at.name(), static_cast<mode_t>(permission_bits)) != 0) {
        return failure(at.last("make a FIFO"));
    }
    return {};
}

result<pipe_handle> pipe_handle::open(const path_handle& base, path_view path, mode end,
                                      deadline within) noexcept {
    const bool reads = end == mode::read;
    if (not reads and end != mode::write and end != mode::append) return failure({EINVAL, "open a FIFO"});
    const terminated_path text(path);
    result<int> opened = -1;
    if (within.is_none()) {  // the kernel waits
        opened = open_at(base, text,
                         {.flags = (reads ? O_RDONLY : O_WRONLY) | O_NOCTTY, .operation = "open a FIFO"});
    } else if (reads) {
        opened = open_at(base, text, {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY, .operation = "open a FIFO"});
    } else {
        opened = open_writer(base, text, within);
    }
    if (not opened) return failure(opened.error());

    native_handle native = describe(*opened, reads, not reads);
    native.nonblocking = not within.is_none();
    pipe_handle owner(native);
    struct stat found{};
    if (::fstat(*opened, &found) != 0 or not S_ISFIFO(found.st_mode)) {
        return failure(error::with_path(EINVAL, "open as a FIFO, which it is not", path.text()));
    }
    // The description is not shared, so no other process is affected by O_NONBLOCK.
    if (auto set = make_nonblocking(owner.native_); not set) return failure(set.error());
    if (reads and not within.is_none()) {
        if (auto waited = wait_for_writer(owner, text, within); not waited) return failure(waited.error());
    }
    return owner;
}

result<pipe_handle> pipe_handle::adopt(int descriptor) noexcept {
    struct stat found{};
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0 or ::fstat(descriptor, &found) != 0)
        return failure(error::last("adopt a pipe", descriptor));
    if (not S_ISFIFO(found.st_mode) and not S_ISCHR(found.st_mode)) {
        return failure({EINVAL, "adopt as a pipe what is neither pipe nor terminal", descriptor});
    }
    const int access = flags & O_ACCMODE;
    native_handle native = describe(-1, access != O_WRONLY, access != O_RDONLY);
    native.descriptor =
        ::open(descriptor_path(descriptor).c_str(), access | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (native.descriptor < 0) {
        native.descriptor = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        native.nonblocking = (flags & O_NONBLOCK) != 0;
    }
    if (native.descriptor < 0) return failure(error::last("adopt a pipe", descriptor));
    return pipe_handle(native);
}

result<std::size_t> pipe_handle::capacity() const noexcept {
    const int bytes = ::fcntl(native_.descriptor, F_GETPIPE_SZ);
    if (bytes < 0) return failure(error::last("ask for the pipe's capacity", native_.descriptor));
    return static_cast<std::size_t>(bytes);
}

result<void> pipe_handle::set_capacity(std::size_t bytes) noexcept {
    const int wanted = static_cast<int>(std::min<std::size_t>(bytes, INT_MAX));
    if (::fcntl(native_.descriptor, F_SETPIPE_SZ, wanted) < 0) {
        return failure(error::last("set the pipe's capacity", native_.descriptor));
    }
    return {};
}

}  // namespace sluice::io

#include "sluice/fsmutex/process/inherited_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/queue/queue_file.hpp"
#include "sluice/io/path/path_resolution.hpp"

namespace sluice::fsmutex {
namespace {

// mapped_file.cpp has the same byte: inherited_lock_test.cpp fails if one of them changes.
constexpr kernel_lock::range in_use = queue_bytes::in_use;

constexpr kernel_lock::range byte_of(entity one) noexcept {
    return {.first = one.number() % in_use.first, .length = 1};
}

constexpr kernel_lock::kind kind_of(entity one) noexcept {
    return one.is_exclusive() ? kernel_lock::kind::exclusive : kernel_lock::kind::shared;
}

bool is_queue(algorithm which) noexcept {
    return which == algorithm::memory_map or which == algorithm::atomic_append;
}

bool is_whole_file(std::span<const entity> wanted) noexcept {
    return wanted.size() == 1 and wanted.front().number() == entity::of_name("").number();
}

result<io::volume_reach> reach_of(int descriptor) noexcept {
    io::handle borrowed(io::native_handle{.descriptor = descriptor});
    const auto volume = io::volume_of(borrowed);
    (void)borrowed.release();
    if (not volume) return failure(volume.error());
    return volume->reach;
}

int flock_operation(lock_mode how) noexcept {
    return how == lock_mode::exclusive ? LOCK_EX : LOCK_SH;
}

}  // namespace

int try_lock_whole_file(int descriptor, lock_mode how) noexcept {
    while (::flock(descriptor, flock_operation(how) | LOCK_NB) != 0)
        if (errno != EINTR) return errno == EWOULDBLOCK ? EAGAIN : errno;
    return 0;
}

int lock_whole_file(int descriptor, lock_mode how) noexcept {
    while (::flock(descriptor, flock_operation(how)) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

result<inherited_lock> inherited_lock::beside(const shared_fs_mutex& mutex,
                                              std::span<const entity> wanted) noexcept {
    const int original = mutex.file_descriptor();
    ENSURE(original >= 0);
    const bool is_directory = mutex.which() == algorithm::lock_files;
    const int flags = O_CLOEXEC | (is_directory ? O_RDONLY | O_DIRECTORY : O_RDWR);
    // By its descriptor: its name may now lead to another file.
    const int opened = ::open(io::descriptor_path(original).c_str(), flags);
    if (opened < 0) return failure(error::last("reopen the lock file", original));
    inherited_lock made(opened);
    const auto reach = reach_of(opened);
    if (not reach) return failure(reach.error());
    made.has_flock_ = *reach == io::volume_reach::this_host;
    if (is_queue(mutex.which())) {
        const int code = kernel_lock::try_lock(opened, in_use, kernel_lock::kind::shared);
        if (code != 0) return failure({code, "keep the lock file", opened});
        made.keeps_file_ = true;
    }
    if (made.has_flock_ and is_whole_file(wanted)) {
        made.whole_file_ = wanted.front().is_exclusive() ? lock_mode::exclusive : lock_mode::shared;
    } else if (is_queue(mutex.which())) {
        // In order, and each once: the second lock of a byte would replace the first.
        auto in_order = entity_set::of(wanted);
        if (not in_order) return failure(in_order.error());
        made.bytes_ = std::move(*in_order);
    }
    return made;
}

inherited_lock inherited_lock::of_whole_file(int descriptor, lock_mode how) noexcept {
    ENSURE(descriptor >= 0);
    inherited_lock made(descriptor);
    made.whole_file_ = how;
    made.has_flock_ = true;
    return made;
}

inherited_lock::~inherited_lock() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

result<bool> inherited_lock::try_acquire() noexcept {
    int code = 0;
    if (whole_file_) {
        code = try_lock_whole_file(descriptor_, *whole_file_);
    } else {
        for (const entity one : bytes())
            if (code == 0) code = kernel_lock::try_lock(descriptor_, byte_of(one), kind_of(one));
    }
    if (code == 0) return true;
    release();  // hold nothing while waiting, or two could wait for each other
    if (code != EAGAIN) return failure({code, "lock the file for its inheritors", descriptor_});
    return false;
}

int inherited_lock::wait_in_kernel() noexcept {
    if (whole_file_) return lock_whole_file(descriptor_, *whole_file_);
    for (const entity one : bytes()) {
        int code = EINTR;
        while (code == EINTR)
            code = kernel_lock::lock(descriptor_, byte_of(one), kind_of(one));
        if (code != 0) return code;
    }
    return 0;
}

result<void> inherited_lock::acquire(deadline within, const dependencies& from) noexcept {
    const auto end = within.steady_end(from.clock->steady_now(), from.clock->utc_now());
    for (std::uint64_t rounds = 0;;) {
        const auto granted = try_acquire();
        if (not granted) return failure(granted.error());
        if (*granted) return {};
        if (within.is_none() and has_flock_) {
            const int code = wait_in_kernel();
            if (code != 0) return failure({code, "lock the file for its inheritors", descriptor_});
            return {};
        }
        // Neither call of the kernel has a deadline, and another host may not wake us.
        if (within.is_zero() or from.clock->steady_now() >= end)
            return failure({ETIMEDOUT, "lock the file for its inheritors", descriptor_});
        backoff(rounds).sleep(*from.clock, *from.random, end);
    }
}

void inherited_lock::release() noexcept {
    if (whole_file_) (void)::flock(descriptor_, LOCK_UN);
    for (const entity one : bytes())
        kernel_lock::unlock(descriptor_, byte_of(one));
}

void inherited_lock::allow_removal() noexcept {
    if (not keeps_file_) return;
    if (has_flock_ and try_lock_whole_file(descriptor_, lock_mode::exclusive) != 0) return;
    kernel_lock::unlock(descriptor_, in_use);
}

}  // namespace sluice::fsmutex

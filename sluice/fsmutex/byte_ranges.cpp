#include "sluice/fsmutex/byte_ranges.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <new>

#include "sluice/fsmutex/lock_threads.hpp"
#include "sluice/fsmutex/process/descriptor_pool.hpp"
#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::fsmutex {
namespace {

kernel_lock::kind kind_of(entity one) noexcept {
    return one.is_exclusive() ? kernel_lock::kind::exclusive : kernel_lock::kind::shared;
}
kernel_lock::range byte_of(entity one) noexcept {
    return {.first = one.number(), .length = 1};
}
constexpr kernel_lock::range everything{.first = 0, .length = 0};

}  // namespace

struct byte_ranges::files {
    files(io::file_handle opened, io::volume_reach reach) noexcept
        : original(std::move(opened)),
          wakes_waiters(kernel_lock::wakes_waiters(reach)),
          ends_waits(kernel_lock::is_interruptible(reach)),
          requests(original.descriptor(), O_RDWR) {}

    io::file_handle original;
    bool wakes_waiters;
    bool ends_waits;
    descriptor_pool requests;
    lock_threads threads;  // for requests that wait without a thread
};

byte_ranges::byte_ranges(std::unique_ptr<files> opened, const dependencies& from, fork_mark mark) noexcept
    : shared_fs_mutex(from, std::move(mark)), files_(std::move(opened)) {}
byte_ranges::~byte_ranges() {
    if (not is_ours()) files_->threads.leave_to_parent();
}

result<std::unique_ptr<shared_fs_mutex>> byte_ranges::open_with_access(const io::path_handle& base,
                                                                       io::path_view path,
                                                                       const dependencies& from,
                                                                       const file_access& access) noexcept {
    auto file = open_lock_file(base, path, from, access);
    if (not file) return failure(file.error());
    const auto volume = io::volume_of(*file);
    if (not volume) return failure(volume.error());
    auto mark = fork_mark::of_this_process();
    if (not mark) return failure(mark.error());
    std::unique_ptr<files> opened(new (std::nothrow) files(std::move(*file), volume->reach));
    if (opened == nullptr) return failure({ENOMEM, "open a mutex"});
    std::unique_ptr<shared_fs_mutex> made(new (std::nothrow)
                                              byte_ranges(std::move(opened), from, *std::move(mark)));
    if (made == nullptr) return failure({ENOMEM, "open a mutex"});
    return made;
}

// In a ticket, `place` is the index of the last contended entity, `mark` the number of pauses, and
// `state` the wait of a thread for that entity.

result<bool> byte_ranges::enter(std::span<const entity> wanted, ticket& mine, wait_policy) noexcept {
    const auto descriptor = files_->requests.take();
    if (not descriptor) return failure(descriptor.error());
    mine.descriptor = *descriptor;
    const auto granted = poll(wanted, mine);
    if (not granted) leave(mine);
    return granted;
}

result<bool> byte_ranges::poll(std::span<const entity> wanted, ticket& mine) noexcept {
    // Begins with the contended entity, for which the request may have slept, and continues in a
    // circle.
    std::size_t index = mine.place;
    for (std::size_t left = wanted.size(); left != 0; --left) {
        const int code =
            kernel_lock::try_lock(mine.descriptor, byte_of(wanted[index]), kind_of(wanted[index]));
        if (code != 0) {
            if (code != EAGAIN) return failure({code, "lock an entity's byte", mine.descriptor});
            // A waiter holds nothing; otherwise two could wait for each other.
            if (left != wanted.size()) kernel_lock::unlock(mine.descriptor, everything);
            mine.place = index;
            return false;
        }
        if (++index == wanted.size()) index = 0;
    }
    return true;
}

void byte_ranges::wait(std::span<const entity> wanted, ticket& mine, steady_time end) noexcept {
    const entity contended = wanted[mine.place];
    if (end == steady_time::max() and files_->wakes_waiters)
        // A failure recurs, and is reported, when polling.
        (void)kernel_lock::lock(mine.descriptor, byte_of(contended), kind_of(contended));
    else
        backoff(mine.mark).sleep(clock(), random(), end);
}

bool byte_ranges::begin_wait(std::span<const entity> wanted, ticket& mine,
                             const std::shared_ptr<wake_up>& waker) noexcept {
    if (not files_->ends_waits) return false;
    const entity contended = wanted[mine.place];
    mine.state = files_->threads.begin(mine.descriptor, byte_of(contended), kind_of(contended), waker);
    return mine.state != nullptr;
}

// A lock that it has acquired is unlocked when polling fails, or by leave(); a failure recurs
// there.
void byte_ranges::end_wait(ticket& mine) noexcept {
    (void)files_->threads.end(static_cast<lock_threads::wait*>(std::exchange(mine.state, nullptr)));
}

void byte_ranges::leave(ticket& mine) noexcept {
    kernel_lock::unlock(mine.descriptor, everything);
    files_->requests.release(mine.descriptor);
}

void byte_ranges::drop_copy(ticket& mine) noexcept {
    ::close(mine.descriptor);
}

void byte_ranges::add_descriptors(const ticket& mine, std::vector<int>& into) const {
    into.push_back(mine.descriptor);
}

int byte_ranges::file_descriptor() const noexcept {
    return files_->original.descriptor();
}

}  // namespace sluice::fsmutex

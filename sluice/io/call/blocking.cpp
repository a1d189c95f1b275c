#include "sluice/io/call/blocking.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/transfer_call.hpp"

namespace sluice::io {
namespace {

using steady = std::chrono::steady_clock;

const char* name_of(direction which) noexcept {
    return which == direction::in ? "read" : "write";
}

// The rest of a list of segments after some bytes have been transferred. A partly transferred first
// segment is copied; the others stay where they are.
class remaining_list {
public:
    explicit remaining_list(std::span<const buffer> pieces) noexcept : pieces_(pieces) {
        advance(0);  // a call with only empty segments moves no bytes, which looks like the end
    }

    void advance(std::size_t bytes) noexcept {
        while (not pieces_.empty() and begun_ + bytes >= pieces_.front().size()) {
            bytes -= pieces_.front().size() - begun_;
            begun_ = 0;
            pieces_ = pieces_.subspan(1);
        }
        ENSURE(bytes == 0 or not pieces_.empty(), "more was moved than the pieces hold");
        begun_ += bytes;
    }
    [[nodiscard]] bool empty() const noexcept { return pieces_.empty(); }
    [[nodiscard]] std::span<const buffer> next(buffer& single) const noexcept {
        if (begun_ == 0) return pieces_.first(std::min(pieces_.size(), limits::pieces_per_call_max));
        ENSURE(begun_ < pieces_.front().size(), "a piece that has gone is in the list");
        single = {pieces_.front().data() + begun_, pieces_.front().size() - begun_};
        return {&single, 1};
    }

private:
    std::span<const buffer> pieces_;
    std::size_t begun_ = 0;
};

timespec as_timespec(std::chrono::nanoseconds d) noexcept {
    ENSURE(d >= d.zero(), "waits for a time that has passed");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
    return {.tv_sec = static_cast<time_t>(seconds.count()),
            .tv_nsec = static_cast<long>((d - seconds).count())};
}

// Returns the remaining time of a deadline for an operation that began at `started`.
deadline::duration time_left(deadline within, steady::time_point started) noexcept {
    if (within.is_none()) return deadline::duration::max();
    return within.remaining(started, steady::now(), deadline::system_clock::now());
}

// The kernel has no wait with a limit for files: requests read-ahead once, then checks again at
// growing intervals.
void nap(const native_handle& native, extent_type offset, std::size_t bytes, std::chrono::nanoseconds& pause,
         deadline::duration left) noexcept {
    using namespace std::chrono_literals;
    if (pause == 0ns) {
        (void)::posix_fadvise(native.descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                              POSIX_FADV_WILLNEED);
        pause = 20us;
    }
    const timespec duration = as_timespec(std::min<std::chrono::nanoseconds>(pause, left));
    (void)::nanosleep(&duration, nullptr);
    pause = std::min<std::chrono::nanoseconds>(pause * 2, 1ms);
}

// Returns whether the descriptor is ready; false when the time is up or a signal interrupted the
// wait.
result<bool> wait_until_ready(const native_handle& native, direction which,
                              deadline::duration left) noexcept {
    const short events = which == direction::in ? POLLIN : POLLOUT;
    pollfd watched{.fd = native.descriptor, .events = events, .revents = 0};
    const bool forever = left == deadline::duration::max();
    const timespec limit = forever ? timespec{} : as_timespec(left);
    const int ready = ::ppoll(&watched, 1, forever ? nullptr : &limit, nullptr);
    if (ready < 0 and errno != EINTR) return failure(error::last("ppoll", native.descriptor));
    return ready > 0;
}

}  // namespace

result<void> wait_ready(const native_handle& native, direction which, deadline within) noexcept {
    const auto started = within.is_none() ? steady::time_point{} : steady::now();
    for (;;) {
        const auto left = time_left(within, started);
        const auto ready = wait_until_ready(native, which, left);
        if (not ready) return failure(ready.error());
        if (*ready) return {};
        if (left == deadline::duration::zero())
            return failure({ETIMEDOUT, "wait for readiness", native.descriptor});
    }
}

result<std::size_t> transfer_blocking(const native_handle& native, direction which,
                                      std::span<const buffer> pieces, extent_type offset, deadline within,
                                      amount wanted, std::size_t begun) noexcept {
    const bool is_file = native.kind == handle_kind::file;
    const bool is_message = native.kind == handle_kind::socket and not native.stream;
    if (is_message and pieces.size() > limits::pieces_per_call_max)
        return failure({EMSGSIZE, message_in_too_many_pieces(which), native.descriptor});
    const bool wants_all = wanted == amount::all and (is_file or which == direction::out);
    // A write that may wait returns only when the kernel has taken all of it.
    const bool kernel_waits =
        within.is_none() and (wanted == amount::all or which == direction::in or is_file);
    wait waits = kernel_waits ? wait::yes : wait::no;
    // Read only when there is a deadline to keep.
    const auto started = within.is_none() ? steady::time_point{} : steady::now();
    std::chrono::nanoseconds pause{};
    remaining_list rest(pieces);
    rest.advance(begun);
    std::size_t total = begun;
    buffer single;
    // A transfer of no bytes completes at once, even where the kernel would wait for bytes.
    if (rest.empty() and (native.stream or begun != 0)) return total;
    for (;;) {
        const ssize_t moved = transfer_call(native, which, rest.next(single), offset + total, waits);
        if (moved >= 0) [[likely]] {
            total += static_cast<std::size_t>(moved);
            if (moved == 0 or not wants_all) return total;
            rest.advance(static_cast<std::size_t>(moved));
            if (rest.empty()) return total;
            continue;
        }
        const int code = errno;
        if (code == EINTR) continue;
        if (code == EOPNOTSUPP and is_file and waits == wait::no) {
            waits = wait::yes;  // this file does not support calls that do not wait
            continue;
        }
        if (code != EAGAIN) {
            if (total != 0) return total;
            const bool lacks_offset = code == EINVAL and is_file and offset == no_offset;
            return failure({code, lacks_offset ? without_offset(which) : name_of(which), native.descriptor});
        }
        const auto left = time_left(within, started);
        if (left == deadline::duration::zero()) {
            if (total != 0) return total;
            return failure({ETIMEDOUT, name_of(which), native.descriptor});
        }
        if (is_file) {
            nap(native, offset + total, rest.next(single)[0].size(), pause, left);
        } else if (auto ready = wait_until_ready(native, which, left); not ready) {
            return failure(ready.error());
        }
    }
}

bool is_over(deadline within) noexcept {
    return not within.is_none() and time_left(within, steady::now()) == deadline::duration::zero();
}

result<void> barrier_blocking(const native_handle& native, barrier_kind kind, barrier_range range,
                              deadline within) noexcept {
    if (native.kind != handle_kind::file and native.kind != handle_kind::directory) return {};
    if (waits_for_device(kind) and is_over(within)) return failure({ETIMEDOUT, "barrier", native.descriptor});
    int failed = 0;
    switch (kind) {
        case barrier_kind::nowait_data_only:
        case barrier_kind::nowait_all:
            failed = ::sync_file_range(native.descriptor, static_cast<off64_t>(range.offset),
                                       static_cast<off64_t>(range.length), SYNC_FILE_RANGE_WRITE);
            break;
        case barrier_kind::wait_data_only:
            failed = ::fdatasync(native.descriptor);
            break;
        case barrier_kind::wait_all:
            failed = ::fsync(native.descriptor);
            break;
    }
    if (failed != 0) return failure(error::last("barrier", native.descriptor));
    return {};
}

}  // namespace sluice::io

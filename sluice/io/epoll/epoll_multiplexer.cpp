#include "sluice/io/epoll/epoll_multiplexer.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <span>

#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/worker_pool.hpp"

namespace sluice::io {

using detail::operation_record;
namespace {

// Level-triggered and lazy. Interest in a direction is added when an operation has to wait for it,
// and removed only when an event finds no waiting operation. A connection that always has a read
// pending therefore costs no epoll_ctl, and no read that returns EAGAIN.
//
// A registration's `backend_word` is the event mask epoll has for it, with `is_known` if epoll
// knows it at all.
constexpr std::uint32_t is_known = 1U << 26;  // not an event bit
static_assert((is_known & (EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP | EPOLLET | EPOLLONESHOT)) ==
              0);

constexpr std::uint32_t events_of(direction which) noexcept {
    return which == direction::in ? EPOLLIN : EPOLLOUT;
}

// An instance of epoll and its waker.
struct kernel_objects {
    handle poller;
    handle waker;
};

result<kernel_objects> make_kernel_objects() noexcept {
    kernel_objects made;
    made.poller = handle(native_handle{.descriptor = ::epoll_create1(EPOLL_CLOEXEC)});
    if (not made.poller.is_valid()) return failure(error::last("epoll_create1"));
    made.waker = handle(native_handle{.descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)});
    if (not made.waker.is_valid()) return failure(error::last("eventfd"));
    return made;
}

class epoll_multiplexer final : public io_multiplexer, private worker_pool::listener {
public:
    epoll_multiplexer(native_handle poller, native_handle waker) noexcept : poller_(poller), waker_(waker) {}
    ~epoll_multiplexer() override { let_finish(); }

    [[nodiscard]] std::string_view name() const noexcept override { return "epoll"; }
    [[nodiscard]] result<void> open(std::size_t file_threads, run_by threads) noexcept;

private:
    result<void> backend_attach(registration& attached) noexcept override;
    void backend_detach(registration& attached) noexcept override;
    void backend_submit(operation_record& op) noexcept override;
    void backend_cancel(operation_record& op) noexcept override;
    result<void> backend_complete(time_point until) noexcept override;
    void backend_flush() noexcept override {
        serve_dirty([this](registration::half& half) { serve_or_watch(half); });
    }
    void backend_wake() noexcept override;
    result<void> backend_renew() noexcept override;
    void work_done() noexcept override;
    [[nodiscard]] bool backend_has_news() const noexcept override {
        return workers_ != nullptr and workers_->has_done();
    }

    [[nodiscard]] result<void> watch_waker() noexcept;
    [[nodiscard]] result<void> start_workers() noexcept;
    void set_interest(registration& target, std::uint32_t events) noexcept;
    void arm(registration::half& half) noexcept;
    void disarm(registration::half& half) noexcept;
    void serve_or_watch(registration::half& half) noexcept;
    [[nodiscard]] result<void> take_events(time_point until) noexcept;
    [[nodiscard]] int wait_for_events(std::span<epoll_event> into, duration at_most) noexcept;
    void on_event(registration& target, std::uint32_t events) noexcept;
    void on_side(registration::half& half) noexcept;
    [[nodiscard]] bool has_files() const noexcept { return not unthreaded_.empty() or workers_ != nullptr; }
    bool finish_files() noexcept;

    static constexpr int events_per_wait = 256;

    handle poller_;
    handle waker_;
    std::size_t file_threads_ = 0;
    std::unique_ptr<worker_pool> workers_;
    operation_queue unthreaded_;  // files that the loop itself reads and writes
    std::size_t armed_ = 0;       // halves with waiting operations
    // True until the kernel refuses. Atomic for several threads; orders no other access.
    std::atomic<bool> waits_in_nanoseconds_ = true;
};

result<void> epoll_multiplexer::open(std::size_t file_threads, run_by threads) noexcept {
    if (threads == run_by::several) {
        if (auto shared = share(); not shared) return shared;
        // A thread must not read a file while it keeps the others out.
        file_threads = std::max<std::size_t>(file_threads, 1);
    }
    file_threads_ = file_threads;
    if (auto watched = watch_waker(); not watched) return watched;
    return start_workers();
}

result<void> epoll_multiplexer::watch_waker() noexcept {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
    if (::epoll_ctl(poller_.descriptor(), EPOLL_CTL_ADD, waker_.descriptor(), &event) != 0) {
        return failure(error::last("epoll_ctl", waker_.descriptor()));
    }
    return {};
}

result<void> epoll_multiplexer::start_workers() noexcept {
    if (file_threads_ == 0) return {};
    ENSURE(workers_ == nullptr, "operations of the first workers would be lost");
    auto pool = worker_pool::create(file_threads_, *this);
    if (not pool) return failure(pool.error());
    workers_ = std::move(*pool);
    return {};
}

result<void> epoll_multiplexer::backend_attach(registration&) noexcept {
    return {};  // a handle is added to epoll when an operation has to wait for it
}

void epoll_multiplexer::backend_detach(registration& attached) noexcept {
    for (auto& half : attached.halves) {
        disarm(half);
        ENSURE(half.queue.empty() and half.in_flight == 0, "detached while operations are pending");
    }
    if ((attached.backend_word & is_known) != 0) {
        (void)::epoll_ctl(poller_.descriptor(), EPOLL_CTL_DEL, attached.native.descriptor, nullptr);
    }
}

void epoll_multiplexer::set_interest(registration& target, std::uint32_t events) noexcept {
    const bool known = (target.backend_word & is_known) != 0;
    ENSURE(known or (events != 0 and target.backend_word == 0),
           "interest is withdrawn that epoll does not have");
    ENSURE((events & is_known) == 0, "a mark is not an event");
    epoll_event event{.events = events, .data = {.ptr = &target}};
    // With no interest left it is deleted, not masked: errors and hang-ups cannot be masked.
    const int what = not known ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (::epoll_ctl(poller_.descriptor(), what, target.native.descriptor, &event) != 0) {
        // ENOMEM, ENOSPC, EEXIST: the waiting operations fail with the error instead of waiting
        // indefinitely. The next operation tries again.
        const int code = errno;
        for (auto& half : target.halves) {
            disarm(half);
            // Another thread tries the first one, and calls this again.
            if (half.in_flight != 0) continue;
            while (operation_record* const op = half.queue.pop_front()) {
                op->error_code = code;
                finish(*op);
            }
        }
        return;
    }
    target.backend_word = events == 0 ? 0 : (events | is_known);
}

void epoll_multiplexer::disarm(registration::half& half) noexcept {
    if (not half.is_armed) return;
    ENSURE(armed_ != 0, "more halves are armed than were counted");
    half.is_armed = false;
    --armed_;
}

void epoll_multiplexer::arm(registration::half& half) noexcept {
    if (half.is_armed) return;
    ENSURE(not half.queue.empty(), "armed without a waiting operation");
    half.is_armed = true;
    ++armed_;
    set_interest(*half.owner, (half.owner->backend_word & ~is_known) | events_of(half.which));
}

// An armed half is left to epoll, which the loop calls next in any case, and which reports a half
// for as long as it is ready. A try before that is one system call more, and in a request-response
// protocol it fails every time, because the peer has not answered yet. A write is not left to
// epoll, which reports a socket as writable only when much space is free.
void epoll_multiplexer::serve_or_watch(registration::half& half) noexcept {
    ENSURE(not half.queue.empty(), "nothing waits on a half that is served");
    ENSURE(not half.is_armed or (half.owner->backend_word & events_of(half.which)) != 0,
           "a half is armed, but epoll does not watch for it");
    const bool epoll_reports = half.is_armed and half.which == direction::in and waits_for_one_piece(half);
    if (epoll_reports) return;
    if (serve_half(half)) arm(half);
}

void epoll_multiplexer::on_side(registration::half& half) noexcept {
    // With one in flight, another thread checks once its call has returned, and arms the half
    // again.
    if (not half.queue.empty() and half.in_flight == 0) {
        (void)serve_half(half);
    } else if (half.is_armed) {
        disarm(half);
        set_interest(*half.owner, half.owner->backend_word & ~is_known & ~events_of(half.which));
    }
}

void epoll_multiplexer::on_event(registration& target, std::uint32_t events) noexcept {
    const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
    for (auto& half : target.halves) {
        if (broken or (events & events_of(half.which)) != 0) on_side(half);
    }
}

// Returns the number of events. A kernel before 5.11, or a sandbox that does not know the call,
// waits in milliseconds. They are rounded up, because the remaining fraction of one would be spent
// in repeated calls.
int epoll_multiplexer::wait_for_events(std::span<epoll_event> into, duration at_most) noexcept {
    ENSURE(at_most >= duration::zero(), "waits for a time that has passed");
    const auto events_max = static_cast<int>(into.size());
    const bool forever = at_most == duration::max();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(at_most);
    const timespec limit{.tv_sec = static_cast<time_t>(seconds.count()),
                         .tv_nsec = static_cast<long>((at_most - seconds).count())};
    const timespec* const timeout = forever ? nullptr : &limit;
    if (waits_in_nanoseconds_.load(std::memory_order_relaxed)) [[likely]] {
        const int count = ::epoll_pwait2(poller_.descriptor(), into.data(), events_max, timeout, nullptr);
        if (count >= 0 or (errno != ENOSYS and errno != EPERM)) return count;
        waits_in_nanoseconds_.store(false, std::memory_order_relaxed);
    }
    constexpr std::int64_t milliseconds_max = std::numeric_limits<int>::max();
    std::int64_t milliseconds = -1;  // no limit
    if (timeout != nullptr) {
        milliseconds = timeout->tv_sec >= milliseconds_max / 1000
                           ? milliseconds_max
                           : timeout->tv_sec * 1000 + (timeout->tv_nsec + 999'999) / 1'000'000;
    }
    return ::epoll_wait(poller_.descriptor(), into.data(), events_max, static_cast<int>(milliseconds));
}

result<void> epoll_multiplexer::take_events(time_point until) noexcept {
    const bool may_sleep = until != time_point::min() and ready_.empty() and dirty_.empty();
    const bool forever = until == time_point::max();
    const duration left = forever ? duration::max() : may_sleep ? until - now() : duration::zero();
    const bool sleeps = may_sleep and left > duration::zero() and prepare_to_sleep();
    if (not sleeps and armed_ == 0) return {};
    std::array<epoll_event, events_per_wait> events;
    const int count = wait_for_events(events, sleeps ? left : duration::zero());
    const int code = count < 0 ? errno : 0;  // before woke_up() changes it
    if (sleeps) woke_up();
    if (code != 0 and code != EINTR) [[unlikely]]
        return failure({code, "epoll_wait", poller_.descriptor()});
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.ptr != nullptr) {
            on_event(*static_cast<registration*>(event.data.ptr), event.events);
        } else if (not another_sleeps()) {  // whose wake-up it would be
            std::uint64_t wakes = 0;
            (void)::read(waker_.descriptor(), &wakes, sizeof wakes);
        }
    }
    return {};
}

bool epoll_multiplexer::finish_files() noexcept {
    bool any = false;
    while (operation_record* const op = unthreaded_.pop_front()) {
        perform_blocking(*op);
        finish(*op);
        any = true;
    }
    while (operation_record* const op = workers_ != nullptr ? workers_->take_done() : nullptr) {
        finish(*op);
        any = true;
    }
    return any;
}

result<void> epoll_multiplexer::backend_complete(time_point until) noexcept {
    backend_flush();
    const bool any = has_files() and finish_files();
    const result<void> taken = take_events(any ? time_point::min() : until);
    if (has_files()) (void)finish_files();
    return taken;
}

void epoll_multiplexer::backend_submit(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::waiting and not op.target->is_stream(),
           "streams wait for readiness, files for a worker");
    if (workers_ == nullptr) {
        unthreaded_.push_back(op);
        return;
    }
    op.at = operation_record::stage::in_flight;
    workers_->submit(op);
}

void epoll_multiplexer::backend_cancel(operation_record& op) noexcept {
    if (op.at == operation_record::stage::in_flight) {
        ENSURE(workers_ != nullptr, "with a worker, where there is none");
        worker_pool::cancel(op, op.cancel_code);
    } else {
        ENSURE(op.at == operation_record::stage::waiting, "an operation is cancelled that is over");
        unthreaded_.erase(op);
        if (op.transferred == 0) op.error_code = op.cancel_code;
        finish(op);
    }
}

void epoll_multiplexer::work_done() noexcept {
    // As in post(): either the loop sees the pushed operation, or we see that it sleeps.
    wake_if_sleeping();
}

void epoll_multiplexer::backend_wake() noexcept {
    const std::uint64_t one = 1;
    (void)::write(waker_.descriptor(), &one, sizeof one);
}

// In a child after fork(2). The descriptors closed here stay open in the parent.
result<void> epoll_multiplexer::backend_renew() noexcept {
    ENSURE(unthreaded_.empty(), "operations on files are pending over a fork");
    // Its threads are the parent's, so it cannot be destroyed. This comes first, because this
    // object must be destructible even if the rest fails.
    (void)workers_.release();  // NOLINT: left behind
    auto fresh = make_kernel_objects();
    if (not fresh) return failure(fresh.error());
    poller_ = std::move(fresh->poller);
    waker_ = std::move(fresh->waker);
    if (auto watched = watch_waker(); not watched) return watched;
    for_each_attached([this](registration& each) {
        const std::uint32_t events = each.backend_word & ~is_known;
        each.backend_word = 0;
        if (events != 0) set_interest(each, events);
    });
    return start_workers();
}

}  // namespace

result<std::unique_ptr<io_multiplexer>> make_epoll_multiplexer(std::size_t file_threads,
                                                               run_by threads) noexcept {
    auto objects = make_kernel_objects();
    if (not objects) return failure(objects.error());
    std::unique_ptr<epoll_multiplexer> made(
        new (std::nothrow) epoll_multiplexer(objects->poller.release(), objects->waker.release()));
    if (made == nullptr) return failure({ENOMEM, "make an epoll multiplexer"});
    if (auto opened = made->open(file_threads, threads); not opened) return failure(opened.error());
    return made;
}

}  // namespace sluice::io

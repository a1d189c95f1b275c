// When the kernel has no memory for requests, io_uring_enter fails with ENOMEM or EAGAIN and
// takes nothing. The multiplexer then carries out the untaken requests without the ring, and
// tries the ring again in each pass. Requests that the kernel has taken complete once
// io_uring_enter works again.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "sluice/io/call/socket_call.hpp"
#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/loop/worker_pool.hpp"
#include "sluice/io/uring/backend.hpp"

namespace sluice::io::uring {

using detail::operation_record;
namespace {

// Between two attempts: repeated calls do not free memory faster.
constexpr std::chrono::nanoseconds pause_max = std::chrono::milliseconds(1);

}  // namespace

result<void> multiplexer::complete_by_calls(time_point until) noexcept {
    ENSURE(ring_.is_refusing(), "the kernel takes requests");
    // The kernel checks for completions only after it has taken all entries, and takes none of
    // these.
    ring_.fetch_completions();
    const result<void> submitted = ring_.submit();
    take_completions();
    if (not submitted or not ring_.is_refusing()) return submitted;
    take_back_refused();
    serve_by_calls();
    if (ready_.empty() and until != time_point::min()) pause_refused(until);
    return {};
}

void multiplexer::take_back_refused() noexcept {
    ring_.take_back_untaken([this](std::uint64_t user_data) { return take_back(user_data); });
}

// Returns whether the entry is dispensable. Its operations are then as if it had been interrupted.
bool multiplexer::take_back(std::uint64_t user_data) noexcept {
    constexpr int interrupted = -EINTR;
    void* const whose = addressed(user_data);
    switch (static_cast<completion_target>(user_data & completion_target_mask)) {
        case completion_target::nobody:  // cancellations stay in the queue: no entry of
                                         // theirs names an operation
            break;
        case completion_target::loop:
            return false;  // so does the wake-up
        case completion_target::file:
            perform_now(*static_cast<operation_record*>(whose));
            return true;
        case completion_target::transfer:
            on_transfer(*static_cast<half_state*>(whose), interrupted, 0);
            return true;
        case completion_target::zero_copy:
            on_zero_copy(*static_cast<operation_record*>(whose), interrupted, 0);
            return true;
        case completion_target::receive:
            on_receive(*static_cast<half_state*>(whose), interrupted, 0);
            return true;
        case completion_target::accept:
            on_accept(*static_cast<half_state*>(whose), interrupted, 0);
            return true;
        case completion_target::poll: {
            half_state& state = *static_cast<half_state*>(whose);
            ENSURE(state.is_polling, "an entry of a poll that is over");
            state.is_polling = state.half->is_armed = false;
            if (not state.half->queue.empty()) mark_dirty(*state.half);
            return true;
        }
    }
    ENSURE(false, "an entry that belongs to no request is not asked about");
    return false;
}

void multiplexer::perform_now(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::waiting or op.at == operation_record::stage::in_flight,
           "carried out twice");
    if (op.queue_link.is_linked()) cancelled_files_.erase(op);
    op.at = operation_record::stage::waiting;
    if (op.cancel_code != 0) {
        if (op.transferred == 0) op.error_code = op.cancel_code;
    } else if (op.kind != operation_kind::wait_word) {  // a waiter checks the word itself, so a
                                                        // wake-up too many is harmless
        perform_blocking(op);
    }
    finish(op);
}

void multiplexer::serve_by_calls() noexcept {
    while (operation_record* const op = files_.front()) {
        files_.erase(*op);
        perform_now(*op);
    }
    dirty_list now = std::move(dirty_);
    while (registration::half* const half = now.pop_front())
        serve_by_calls(*half);
}

void multiplexer::serve_by_calls(registration::half& half) noexcept {
    ENSURE(half.owner->is_stream(), "files wait in a list of their own");
    half_state& state = state_of(half);
    if (half.in_flight != 0 or half.queue.empty()) return;
    operation_record& front = *half.queue.front();
    const bool is_ahead = front.kind == operation_kind::accept_ahead;
    if (front.kind == operation_kind::receive) {
        (void)finish_receive(state);  // takes an arrived piece; only the ring brings more
    } else if (is_ahead) {
        accept_by_call(state);
    } else {
        (void)serve_half(half);
    }
    if (not half.queue.empty()) mark_dirty(half);
}

void multiplexer::accept_by_call(half_state& state) noexcept {
    ENSURE(state.half->in_flight == 0, "the kernel accepts for this operation");
    operation_record& front = *state.half->queue.front();
    if (finish_accept(state) or state.is_multishot) return;
    if (static_cast<const accept_request*>(front.argument)->stops) {
        state.has_ended = true;
        state.multishot_end = ECANCELED;
        (void)finish_accept(state);
    } else if (attempt(front)) {
        finish_front(*state.half);
    }
}

// Not in the ring, which would not wait: until the time, a wake-up, or the next attempt.
void multiplexer::pause_refused(time_point until) noexcept {
    const duration left = until == time_point::max() ? duration(pause_max) : until - now();
    if (left <= duration::zero() or not prepare_to_sleep()) return;
    const timespec pause{.tv_sec = 0, .tv_nsec = std::min<std::chrono::nanoseconds>(left, pause_max).count()};
    pollfd watched{.fd = waker_.descriptor(), .events = POLLIN, .revents = 0};
    if (::ppoll(&watched, 1, &pause, nullptr) > 0) {
        std::uint64_t wakes = 0;
        (void)::read(waker_.descriptor(), &wakes, sizeof wakes);
    }
    woke_up();
}

}  // namespace sluice::io::uring

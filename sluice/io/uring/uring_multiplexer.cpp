#include "sluice/io/uring/uring_multiplexer.hpp"

#include <algorithm>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sluice/io/uring/backend.hpp"

namespace sluice::io::uring {

using detail::operation_record;
// --- creating and attaching

result<void> multiplexer::open() noexcept {
    ENSURE(not is_enabled_, "opened once, before its first use");
    if (options_.threads == run_by::several) {
        options_.inline_file_writes = false;  // a call that waits would block all threads
        if (auto shared = share(); not shared) return shared;
    }
    if (auto opened = ring_.open(sizes()); not opened) return opened;
    has_zero_copy_ = ring_.supports(IORING_OP_SEND_ZC);
    if (auto made = make_waker_and_rows(); not made) return made;
    reserve_links();
    return {};
}

ring::sizes multiplexer::sizes() const noexcept {
    return {.submissions = options_.submission_entries,
            .completions = options_.completion_entries,
            .files = options_.fixed_files,
            .is_shared = options_.threads == run_by::several};
}

result<void> multiplexer::make_waker_and_rows() noexcept {
    ENSURE(not waker_is_armed_, "a poll of the last waker would outlive it");
    const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0) return failure(error::last("eventfd"));
    waker_ = handle(native_handle{.descriptor = descriptor});
    // Not initialised: a row occupies memory only after its first use.
    piece_rows_.reset(new (std::nothrow) piece_row[ring_.submission_entries()]);
    if (piece_rows_ == nullptr) return failure({ENOMEM, "make an io_uring multiplexer"});
    return {};
}

namespace {

bool is_tcp(const native_handle& native) noexcept {
    if (native.kind != handle_kind::socket or not native.stream) return false;
    int family = 0;
    socklen_t length = sizeof family;
    if (::getsockopt(native.descriptor, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0) return false;
    return family == AF_INET or family == AF_INET6;
}

}  // namespace

result<void> multiplexer::backend_attach(registration& attached) noexcept {
    if (not attached.is_stream()) return {};
    const std::size_t chunk = attached.slot / limits::registrations_per_chunk;
    try {
        if (chunk >= streams_.size()) streams_.resize(chunk + 1);
        if (streams_[chunk] == nullptr)
            streams_[chunk] = std::make_unique<stream_state[]>(limits::registrations_per_chunk);
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "attach to multiplexer", attached.native.descriptor});
    }
    const bool reports_more = is_tcp(attached.native);
    stream_state& stream = streams_[chunk][attached.slot % limits::registrations_per_chunk];
    for (std::size_t i = 0; i < stream.halves.size(); ++i) {
        half_state& state = stream.halves[i];
        ENSURE(not state.is_multishot and state.oldest_arrived == buffer_group::none and
                   state.kept_by_kernel == 0,
               "a slot is used again while the kernel has requests of its last handle");
        ENSURE(attached.halves[i].in_flight == 0 and attached.halves[i].queue.empty(),
               "a record is attached with operations of its last handle");
        state.half = &attached.halves[i];
        state.is_unready = state.polls_only = state.never_zero_copy = false;
        state.acceptor = nullptr;
        state.reports_more = reports_more;
        state.was_zero_copy = false;
        state.copied_in_a_row = 0;
        state.kept_by_kernel = 0;
        attached.halves[i].backend = &state;
    }
    return {};
}

void multiplexer::backend_detach(registration& attached) noexcept {
    for (auto& half : attached.halves) {
        if (half.backend != nullptr) end_stale_poll(state_of(half));
        ENSURE(half.in_flight == 0 and half.queue.empty(), "detached while operations are pending");
    }
    // Otherwise the table would keep the file open after its owner has closed it.
    if (attached.backend_word == is_fixed) ring_.clear_file(attached.slot);
}

// Ends a poll that no operation waits for any more. It would keep the file open, and its completion
// would reach the next user of this state.
void multiplexer::end_stale_poll(half_state& state) noexcept {
    state.is_stale = false;
    if (not state.is_polling) return;
    if (not ring_.is_owner()) {
        // The owner, if there still is one, settles it before it uses this state again.
        state.is_stale = true;
        return;
    }
    result<void> submitted;
    while (submitted and not queue_cancellation(address(completion_target::poll, &state)) and
           not ring_.is_refusing()) {
        submitted = ring_.submit();
        take_completions();
    }
    // The kernel ends a poll inside the call that requests it, unless another CPU is about to
    // complete it.
    constexpr int calls_max = 4;
    for (int calls = 0; submitted and state.is_polling and not ring_.is_refusing() and calls < calls_max;
         ++calls) {
        submitted = ring_.submit();
        take_completions();
    }
    if (ring_.is_refusing()) take_back_refused();
    // Otherwise, and if the kernel lacks memory to end it, the poll is settled later:
    // closing never waits.
    state.is_stale = state.is_polling;
}

// Returns whether it is in the table now.
bool multiplexer::put_in_table(registration& target) noexcept {
    ENSURE(target.backend_word <= never_fixed and target.backend_word != is_fixed,
           "a file is named by its slot");
    if (target.backend_word < fixed_from) {
        ++target.backend_word;
    } else if (target.backend_word == fixed_from) {
        const bool taken =
            target.slot < ring_.file_slots() and ring_.set_file(target.slot, target.native.descriptor);
        target.backend_word = taken ? is_fixed : never_fixed;
    }
    return target.backend_word == is_fixed;
}

std::optional<unsigned> multiplexer::backend_register(std::span<std::byte> memory) noexcept {
    const auto index = ring_.register_buffer(memory.data(), memory.size());
    if (not index) return std::nullopt;
    ENSURE(arenas_[*index].empty(), "two buffers have one index");
    arenas_[*index] = memory;
    arenas_end_ = std::max(arenas_end_, *index + 1);
    return *index;
}

void multiplexer::backend_unregister(unsigned index) noexcept {
    ENSURE(index < arenas_end_ and not arenas_[index].empty(), "no registered buffer has this index");
    ring_.unregister_buffer(index);
    arenas_[index] = {};
    while (arenas_end_ > 0 and arenas_[arenas_end_ - 1].empty())
        --arenas_end_;
}

// --- the loop

result<void> multiplexer::enable() noexcept {
    if (is_enabled_) [[likely]]
        return {};
    const result<void> enabled = ring_.enable();
    is_enabled_ = enabled.has_value();
    return enabled;
}

bool multiplexer::queue_wake_up() noexcept {
    if (waker_is_armed_) [[likely]]
        return true;
    ENSURE(is_enabled_, "requests are given to a ring that has no owner");
    io_uring_sqe* const entry = ring_.next();
    if (entry == nullptr) return false;
    // Each write to the counter completes it once more; the counter itself is never read, and would
    // take 2^64 wake-ups to fill.
    io_uring_prep_poll_multishot(entry, waker_.descriptor(), POLLIN);
    entry->user_data = address(completion_target::loop, nullptr);
    waker_is_armed_ = true;
    return true;
}

bool multiplexer::queue_cancellation(std::uint64_t of) noexcept {
    ENSURE(of != 0, "requests without an addressee would end");
    io_uring_sqe* const entry = ring_.next();
    if (entry == nullptr) return false;
    io_uring_prep_cancel64(entry, of, 0);
    // An operation that was faster than its cancellation has its own completion; this answer adds
    // nothing.
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
    entry->user_data = address(completion_target::nobody, nullptr);
    return true;
}

bool multiplexer::queue_cancellations() noexcept {
    while (half_state* const state = cancelled_.front()) {
        ENSURE(state->half->in_flight != 0 or state->is_multishot,
               "a cancellation of a request that is over");
        if (not queue_cancellation(state->in_flight_as)) return false;
        cancelled_.erase(*state);
    }
    while (operation_record* const op = cancelled_files_.front()) {
        ENSURE(op->at == operation_record::stage::in_flight, "a cancellation of a request that is over");
        if (not queue_cancellation(address(completion_target::file, op))) return false;
        cancelled_files_.erase(*op);
    }
    return true;
}

// Returns whether everything has been submitted to the ring. Cancellations come last, so that they
// find their targets.
bool multiplexer::queue_all() noexcept {
    const bool has_any = not(dirty_.empty() and files_.empty() and cancelled_.empty() and
                             cancelled_files_.empty() and waker_is_armed_);
    if (not has_any) return true;
    const bool all = queue_wake_up() and queue_dirty() and (files_.empty() or queue_files());
    const bool has_cancelled = not(cancelled_.empty() and cancelled_files_.empty());
    return (not has_cancelled or queue_cancellations()) and all;
}

[[gnu::always_inline]] inline result<void> multiplexer::submit(bool may_sleep, time_point until) noexcept {
    const bool forever = until == time_point::max();
    const duration left = forever ? duration::max() : may_sleep ? until - now() : duration::zero();
    may_sleep = may_sleep and left > duration::zero();
    if (is_for_threads()) return submit_shared(may_sleep, left);
    if (not(may_sleep and prepare_to_sleep())) return ring_.submit();
    const result<void> submitted = forever ? ring_.submit_and_wait() : ring_.submit_and_wait(left);
    woke_up();
    return submitted;
}

// Several threads use the queues, so only the waiting itself is done outside.
result<void> multiplexer::submit_shared(bool may_sleep, duration left) noexcept {
    const result<void> submitted = ring_.submit();
    const bool sleeps = may_sleep and submitted and not ring_.is_refusing() and
                        not ring_.has_completions() and prepare_to_sleep();
    if (not sleeps) return submitted;
    const result<void> waited = ring_.wait(left);
    woke_up();
    return waited;
}

void multiplexer::backend_flush() noexcept {
    // The woken thread submits the rest, and gets the error.
    const bool all_queued = queue_all();
    if (not all_queued or not ring_.submit() or ring_.is_refusing()) backend_wake();
}

void multiplexer::take_completions() noexcept {
    do {
        const unsigned count = ring_.completions();
        record_completions(count);
        ring_.reap(count, [this](std::uint64_t user_data, int outcome, unsigned flags) noexcept {
            // These two are handled without the switch: many completions of a file may come at
            // once, each of little work, and a transfer follows the call that has waited for it,
            // where an indirect jump is mispredicted.
            const auto whom = static_cast<completion_target>(user_data & completion_target_mask);
            if (whom == completion_target::file) {
                on_file(*static_cast<operation_record*>(addressed(user_data)), outcome);
            } else if (whom == completion_target::transfer) {
                on_transfer(*static_cast<half_state*>(addressed(user_data)), outcome, flags);
            } else {
                on_completion(user_data, outcome, flags);
            }
        });
    } while (ring_.has_overflowed() and ring_.submit() and ring_.has_completions());
}

void multiplexer::on_completion(std::uint64_t user_data, int outcome, unsigned flags) noexcept {
    void* const whose = addressed(user_data);
    switch (static_cast<completion_target>(user_data & completion_target_mask)) {
        case completion_target::nobody:
            break;
        case completion_target::loop:
            ENSURE(waker_is_armed_, "a wake-up without a request");
            waker_is_armed_ = (flags & IORING_CQE_F_MORE) != 0;
            if (another_sleeps()) backend_wake();  // this wake-up was for it
            break;
        case completion_target::poll:
            on_poll(*static_cast<half_state*>(whose), outcome);
            break;
        case completion_target::zero_copy:
            on_zero_copy(*static_cast<operation_record*>(whose), outcome, flags);
            break;
        case completion_target::receive:
            on_receive(*static_cast<half_state*>(whose), outcome, flags);
            break;
        case completion_target::accept:
            on_accept(*static_cast<half_state*>(whose), outcome, flags);
            break;
        case completion_target::file:
        case completion_target::transfer:
            ENSURE(false, "take_completions() has these two handled");
    }
}

result<void> multiplexer::backend_complete(time_point until) noexcept {
    if (const result<void> enabled = enable(); not enabled) [[unlikely]]
        return enabled;
    if (ring_.is_refusing()) [[unlikely]]
        return complete_by_calls(until);
    const bool all_queued = queue_all();
    const bool may_sleep = all_queued and until != time_point::min() and ready_.empty() and dirty_.empty() and
                           not ring_.has_completions();
    const result<void> submitted = submit(may_sleep, until);
    take_completions();
    return submitted;
}

void multiplexer::backend_poll(operation_record& op) noexcept {
    const bool is_stream = op.target->is_stream() and op.kind != operation_kind::sleep;
    registration::half& half = op.target->side(direction_of(op.kind));
    // With one of the half's operations in the kernel, or in progress there, another call would
    // overtake it.
    const bool is_kernels = half.in_flight != 0 or (is_stream and not half.queue.empty() and
                                                    half.queue.front()->kind == operation_kind::accept_ahead);
    if (is_stream and not is_kernels) {
        if (serve_half(half)) mark_dirty(half);
    } else {
        (void)backend_complete(time_point::min());  // an error is returned by complete_io
    }
}

void multiplexer::backend_cancel(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::waiting or op.at == operation_record::stage::in_flight,
           "an operation is cancelled that is over");
    if (op.target->is_stream()) {
        half_state& state = state_of(op.target->side(direction_of(op.kind)));
        ENSURE(op.at == operation_record::stage::in_flight and state.half->in_flight != 0,
               "what the kernel does not have is withdrawn");
        state.has_cancelled = true;
        if (not state.cancel_link.is_linked()) cancelled_.push_back(state);
    } else if (op.at == operation_record::stage::waiting or
               ring_.take_back(address(completion_target::file, &op))) {
        if (op.at == operation_record::stage::waiting) files_.erase(op);
        if (op.transferred == 0) op.error_code = op.cancel_code;
        finish(op);
    } else if (not op.queue_link.is_linked()) {
        cancelled_files_.push_back(op);
    }
}

void multiplexer::backend_wake() noexcept {
    const std::uint64_t one = 1;
    (void)::write(waker_.descriptor(), &one, sizeof one);
}

}  // namespace sluice::io::uring

namespace sluice::io {

result<void> try_uring() noexcept {
    uring::ring trial;
    if (auto opened = trial.open({.submissions = 4, .completions = 8, .files = 4, .is_shared = false});
        not opened)
        return opened;
    if (auto enabled = trial.enable(); not enabled) return enabled;
    io_uring_sqe* const entry = trial.next();
    ENSURE(entry != nullptr, "a fresh queue is empty");
    io_uring_prep_nop(entry);
    entry->user_data = 0;
    // A filter may allow the creation of a ring and still deny its use.
    if (not trial.submit_and_wait(std::chrono::seconds(1)) or not trial.has_completions())
        return failure({EPERM, "io_uring_enter, denied by seccomp"});
    return {};
}

result<std::unique_ptr<io_multiplexer>> make_uring_multiplexer(uring_options options) noexcept {
    std::unique_ptr<uring::multiplexer> made(new (std::nothrow) uring::multiplexer(options));
    if (made == nullptr) return failure({ENOMEM, "make an io_uring multiplexer"});
    if (auto opened = made->open(); not opened) return failure(opened.error());
    return made;
}

}  // namespace sluice::io

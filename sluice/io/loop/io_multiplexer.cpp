#include "sluice/io/loop/io_multiplexer.hpp"

#include <algorithm>
#include <thread>

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/system_call.hpp"
#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/loop/passes.hpp"
#include "sluice/io/loop/pinned_word.hpp"

namespace sluice::io {

using detail::operation_record;

using namespace passes;

io_multiplexer::io_multiplexer() noexcept : inline_left_(limits::inline_completions_max) {
    no_handle_.multiplexer = words_.multiplexer = this;
    words_.native.kind = handle_kind::file;
}

io_multiplexer::~io_multiplexer() {
    ENSURE(pending_ == 0,
           "a multiplexer is destroyed while operations are pending on it: cancel and complete them");
    ENSURE(registered_buffers_ == 0, "a registered buffer must go before its multiplexer");
    ENSURE(completing_.load(std::memory_order_relaxed) == 0,
           "a back end's destructor begins with let_finish()");
    while (posted_item* item = posted_.pop())
        item->invoke();
    std::size_t detached = 0;
    while (free_.pop_front() != nullptr)
        ++detached;
    ENSURE(detached == chunks_.size() * limits::registrations_per_chunk,
           "a multiplexer is destroyed while handles are attached to it: close or detach them");
}

// --- attaching
// --------------------------------------------------------------------------------------------------------

registration* io_multiplexer::take_registration() noexcept {
    if (free_.empty()) {
        std::unique_ptr<registration[]> chunk(new (std::nothrow)
                                                  registration[limits::registrations_per_chunk]);
        if (chunk == nullptr) return nullptr;
        const std::size_t first = chunks_.size() * limits::registrations_per_chunk;
        for (std::size_t i = 0; i < limits::registrations_per_chunk; ++i) {
            registration& fresh = chunk[i];
            fresh.multiplexer = this;
            fresh.slot = static_cast<std::uint32_t>(first + i);
            fresh.side(direction::out).which = direction::out;
            for (auto& half : fresh.halves)
                half.owner = &fresh;
            free_.push_back(fresh);
        }
        chunks_.push_back(std::move(chunk));
    }
    return free_.pop_front();
}

result<registration*> io_multiplexer::attach(const native_handle& native) noexcept {
    const entry in(*this);
    registration* const fresh = take_registration();
    if (fresh == nullptr) return failure({ENOMEM, "attach to multiplexer", native.descriptor});
    fresh->native = native;
    choose_calls(*fresh);
    if (auto attached = backend_attach(*fresh); not attached) {
        free_.push_front(*fresh);
        return failure(attached.error());
    }
    return fresh;
}

result<void> io_multiplexer::detach(registration& attached) noexcept {
    const entry in(*this);
    if (attached.pending != 0) return failure({EBUSY, "detach from multiplexer", attached.native.descriptor});
    backend_detach(attached);
    for (auto& half : attached.halves) {
        if (half.dirty_link.is_linked()) dirty_.erase(half);
        half.is_armed = half.never_speculate = false;
        half.pause = half.skipped = 0;
        half.backend = nullptr;
    }
    if (sharing_ != nullptr) settle_shared();
    attached.native = {};
    attached.backend_word = 0;
    free_.push_front(attached);
    return {};
}

// --- starting
// ---------------------------------------------------------------------------------------------------------

void io_multiplexer::become_owner() noexcept {
    // relaxed: others only compare it with a mark that is never theirs.
    ENSURE(owner_.load(std::memory_order_relaxed) == nullptr,
           "a multiplexer belongs to one thread: use post() or an atomic_ sender from another");
    owner_.store(&thread_mark_, std::memory_order_relaxed);
}

bool io_multiplexer::wants_attempt(const operation_record& op, initiation how) noexcept {
    if (how == initiation::automatic) how = initiation_;
    if (how == initiation::batched or op.kind >= operation_kind::barrier) return false;
    registration::half& half = op.target->side(direction_of(op.kind));
    // An older request on the stream goes first; it failed to go, so this one would too.
    if (not half.queue.empty() or not half.may_speculate()) return false;
    if (asks_before_speculating_ and not may_speculate(op)) return false;
    if (how == initiation::speculative) return true;
    if (is_crowded_ and op.target->native.kind == handle_kind::socket) return false;
    if (half.skipped >= half.pause) [[likely]]
        return true;
    ++half.skipped;
    return false;
}

// A file that does not know RWF_NOWAIT can only be asked to do it, however long that takes. So can a barrier
// that only starts something.
bool io_multiplexer::can_refuse_to_wait(const operation_record& op) noexcept {
    if (op.target->is_stream()) return true;
    if (op.kind == operation_kind::barrier) return waits_for_device(op.durability);
    return op.target->side(direction_of(op.kind)).may_speculate();
}

// Whether this is what nearly every operation is: a transfer of one piece, that says nothing about how to
// begin, on a handle that has lately been ready. One branch asks it all; see system_call.hpp.
bool io_multiplexer::is_usual(const operation_record& op, const registration::half& half,
                              initiation how) const noexcept {
    const auto word = [](auto of) { return static_cast<unsigned>(of); };
    const unsigned unusual = word(how) | word(initiation_) | word(asks_before_speculating_) |
                             word(is_crowded_) | word(half.never_speculate) | half.pause |
                             word(not half.queue.empty()) | word(not half.call.is_known()) |
                             word(op.kind > operation_kind::write) | (op.piece_count ^ 1U);
    static_assert(word(initiation::automatic) == 0);
    return unusual == 0;
}

bool io_multiplexer::begin_batched(operation_record& op) noexcept {
    reset(op);
    // What begin_slowly comes to for nearly all that is batched.
    const bool goes_straight = is_transfer(op.kind) and not op.target->is_stream() and op.limit.is_none();
    if (not goes_straight) [[unlikely]]
        return begin_slowly(op);
    ++queued_;
    op.at = operation_record::stage::waiting;
    backend_submit(op);
    return false;
}

// Returns whether the outcome is known.
bool io_multiplexer::begin(operation_record& op, initiation how) noexcept {
    reset(op);
    registration::half& half = op.target->side(direction_of(op.kind));
    if (not is_usual(op, half, how)) [[unlikely]]
        return begin_unusually(op, how);
    const auto enough = half.call.any_will_do ? 0 : static_cast<std::ptrdiff_t>(op.pieces->size());
    const std::ptrdiff_t moved = make_call(half.call, op.target->native.descriptor, *op.pieces, op.offset);
    if (moved < enough) [[unlikely]]
        return begin_on(op, moved);
    op.transferred = static_cast<std::size_t>(moved);
    op.at = operation_record::stage::ready;
    return true;
}

bool io_multiplexer::begin_unusually(operation_record& op, initiation how) noexcept {
    if (not wants_attempt(op, how)) return begin_slowly(op);
    return note_attempt(op, attempt(op));
}

// Goes on after a first call that did not do it all.
bool io_multiplexer::begin_on(operation_record& op, std::ptrdiff_t moved) noexcept {
    if (moved == -EAGAIN) return note_attempt(op, false);
    if (moved > 0) op.transferred = static_cast<std::size_t>(moved);
    const bool goes_on = moved > 0 or moved == -EINTR or moved == -EOPNOTSUPP;  // attempt() knows what to do
    if (goes_on) return note_attempt(op, attempt(op));
    op.error_code = static_cast<int>(-moved);
    return note_attempt(op, true);
}

bool io_multiplexer::note_attempt(operation_record& op, bool finished) noexcept {
    registration::half& half = op.target->side(direction_of(op.kind));
    half.skipped = 0;
    if (finished) {
        half.pause = 0;
        op.at = operation_record::stage::ready;
        return true;
    }
    constexpr std::uint8_t pause_max = 63;
    half.pause = std::min<std::uint8_t>(pause_max, static_cast<std::uint8_t>(half.pause * 2 + 1));
    return begin_slowly(op);
}

void io_multiplexer::enqueue(operation_record& op) noexcept {
    op.at = operation_record::stage::waiting;
    ++queued_;
    const bool timed =
        not op.limit.is_none() and (not op.limit.is_zero() or op.kind == operation_kind::sleep);
    if (timed) [[unlikely]]
        arm_timer(op);
    if (op.kind == operation_kind::sleep) return;
    if (op.target->is_stream()) {
        registration::half& half = op.target->side(direction_of(op.kind));
        half.queue.push_back(op);
        mark_dirty(half);
    } else {
        backend_submit(op);
    }
}

bool io_multiplexer::begin_external(operation_record& op) noexcept {
    external_work& work = *static_cast<external_work*>(op.argument);
    work.op_ = &op;
    if (sharing_ != nullptr) return begin_external_shared(op, work);
    // Before it begins, because it may be complete, on another thread, before begin() returns.
    op.at = operation_record::stage::in_flight;
    const std::optional<int> code = work.begin(not op.limit.is_zero());
    if (code) {
        op.error_code = *code;
        op.at = operation_record::stage::ready;
        return true;
    }
    ++queued_;
    if (not op.limit.is_none() and not op.limit.is_zero()) arm_timer(op);
    return false;
}

void io_multiplexer::complete_elsewhere(operation_record& op) noexcept {
    // Once it is pushed, the loop may end, and its owner destroy it: let_finish() waits for us. The increment
    // is visible to the thread that pops `op`; release: pairs with let_finish().
    completing_.fetch_add(1, std::memory_order_relaxed);
    (void)completed_elsewhere_.push(op);
    wake_if_sleeping();
    completing_.fetch_sub(1, std::memory_order_release);
}

void io_multiplexer::post_last(posted_item& item) noexcept {
    completing_.fetch_add(1, std::memory_order_relaxed);  // as above
    post(item);
    completing_.fetch_sub(1, std::memory_order_release);
}

void io_multiplexer::poll_external(operation_record& op) noexcept {
    external_work& work = *static_cast<external_work*>(op.argument);
    if (sharing_ != nullptr) return call_pinned(op, &external_work::poll);
    work.poll();
    take_completed_elsewhere();
    // In a simulation, only the back end lets time pass.
    if (op.at == operation_record::stage::in_flight and not waits_for_threads()) backend_poll(op);
}

void io_multiplexer::take_completed_elsewhere() noexcept {
    while (operation_record* const op = completed_elsewhere_.pop()) {
        if (op->at == operation_record::stage::trying) [[unlikely]] {
            pinned_word(op->backend_word).note_completion();  // a thread is in one of its functions
        } else {
            finish(*op);
        }
    }
}

// Whether it must not wait. The kernel cannot end a barrier, so one whose time has come does not begin.
bool io_multiplexer::has_no_time(const operation_record& op) const noexcept {
    if (op.kind != operation_kind::barrier or op.limit.is_none()) return op.limit.is_zero();
    return op.limit.remaining(now(), now(), utc_now()) == deadline::duration::zero();
}

// What could not be done at once waits, or, if it must not wait, has failed.
bool io_multiplexer::begin_slowly(operation_record& op) noexcept {
    if (op.kind == operation_kind::external) return begin_external(op);
    if (op.kind == operation_kind::barrier and op.target->is_stream()) {
        op.at = operation_record::stage::ready;  // nothing to make durable, and so nothing to wait for
        return true;
    }
    const bool is_call = op.kind == operation_kind::call_in or op.kind == operation_kind::call_out;
    if (is_call and not op.target->is_stream()) {
        if (not attempt(op)) op.error_code = EAGAIN;  // a file has no readiness to wait for
        op.at = operation_record::stage::ready;
        return true;
    }
    if (has_no_time(op) and op.kind != operation_kind::sleep and can_refuse_to_wait(op)) {
        // Not tried above if it is batched, or if trying has lately been in vain: now it is the caller's only
        // chance.
        const bool is_first = op.target->side(direction_of(op.kind)).queue.empty();
        const bool finished = is_first and op.kind != operation_kind::barrier and backend_attempt(op);
        // What has just turned out not to know how to refuse waits after all, as it does from then on.
        if (finished or can_refuse_to_wait(op)) {
            if (not finished and op.transferred == 0) op.error_code = ETIMEDOUT;
            op.at = operation_record::stage::ready;
            return true;
        }
    }
    enqueue(op);
    return false;
}

// --- signalling
// -------------------------------------------------------------------------------------------------------

void io_multiplexer::finish_notification(operation_record& op) noexcept {
    ENSURE(op.notification_pending);
    op.notification_pending = false;
    // Before the outcome is known, or while its signal waits in `ready_`, done simply follows value.
    if (op.at != operation_record::stage::ready and op.at != operation_record::stage::valued) return;
    --queued_;
    if (op.at == operation_record::stage::valued) ready_.push_back(op);
}

void operation_record::signal_both(io_multiplexer& by) noexcept {
    detail::engine::give_both(by, *this, [this] { signal_value(); }, [this] { signal_done(); });
}

// Returns whether this completed the operation; a late done signal is only its echo.
bool io_multiplexer::signal(operation_record& op) noexcept {
    signalling_ = true;
    const bool completes = op.at == operation_record::stage::ready;
    if (completes and not op.notification_pending) [[likely]] {
        op.signal_both(*this);  // `op` may be gone, or started again
    } else if (completes) {
        op.at = operation_record::stage::valued;
        op.has_completed = true;
        op.signal_value();  // done follows from finish_notification, even if that comes meanwhile
    } else {
        retire(op);
        op.signal_done();  // as above
    }
    signalling_ = false;
    return completes;
}

int io_multiplexer::signal_ready(int max) noexcept {
    int count = 0;
    max = std::min(max, limits::completions_per_pass_max);
    is_crowded_ = batches_crowds_ and finished_ >= limits::crowd;
    finished_ = 0;
    while (count < max) {
        operation_record* const op = ready_.pop_front();
        if (op == nullptr) break;
        if (signal(*op)) ++count;
        // A coroutine that has used up what it may complete inline waits in `ready_` for the next pass, which
        // grants it more; to go on here would complete one by one, and dearer, what is always ready. Behind
        // the signal, so that a program that only polls, whose budget nobody renews, gets on as well.
        if (inline_left_ <= 0) break;
    }
    is_crowded_ = false;
    return count;
}

// --- completing
// -------------------------------------------------------------------------------------------------------

result<int> io_multiplexer::complete(int max, time_point until) noexcept {
    ensure_owner();
    ENSURE(not signalling_, "complete_io and run must not be called from a receiver");
    inline_left_ = limits::inline_completions_max;
    max = std::min(max, limits::completions_per_pass_max);
    int signalled = 0;
    result<void> asked;
    take_completed_elsewhere();
    // A handle that is always ready must not keep the others from being looked at.
    constexpr int passes_without_backend_max = 4;
    const bool backend_is_idle = queued_ == 0 and (until == no_wait or not ready_.empty());
    if (backend_is_idle or (not ready_.empty() and ++passes_without_backend_ < passes_without_backend_max)) {
        // What is ready is enough for this pass.
    } else {
        passes_without_backend_ = 0;
        direct_left_ = max;
        asked = backend_complete(ready_.empty() ? until : no_wait);
        signalled = max - std::exchange(direct_left_, 0);
        take_completed_elsewhere();  // for which it may have woken up
    }
    const int count = signalled + signal_ready(max - signalled);
    if (count > 0) return count;
    if (not asked) [[unlikely]]
        return failure(asked.error());
    return idle_value();
}

result<int> io_multiplexer::complete_io(int max) noexcept {
    if (sharing_ != nullptr) return run_shared(share_of_work::io, maximum(max), no_wait);
    return complete(maximum(max), no_wait);
}

result<int> io_multiplexer::complete_io_within(duration within, int max) noexcept {
    return complete_io_until(after(now(), within), max);
}

result<int> io_multiplexer::complete_io_until(time_point until, int max) noexcept {
    return repeat(max, until, [this] { return now(); }, [this](int left) { return complete_io(left); });
}

bool io_multiplexer::serve_half(registration::half& half) noexcept {
    if (half.in_flight != 0) [[unlikely]]
        return false;  // another thread's call is in progress, after which it serves this half
    operation_queue served;
    constexpr int calls_per_pass = 4;
    const bool would_block = serve(half, served, calls_per_pass);
    while (operation_record* op = served.pop_front())
        finish(*op);
    if (half.queue.empty()) return false;
    if (not would_block) mark_dirty(half);
    return would_block;
}

void io_multiplexer::mark_dirty(registration::half& half) noexcept {
    if (not half.dirty_link.is_linked()) dirty_.push_back(half);
}

bool io_multiplexer::backend_attempt(operation_record& op) noexcept {
    return attempt(op);
}

void io_multiplexer::backend_poll(operation_record& op) noexcept {
    if (op.at == operation_record::stage::waiting and op.target->is_stream() and
        op.kind != operation_kind::sleep) {
        (void)serve_half(op.target->side(direction_of(op.kind)));
    } else {
        (void)backend_complete(no_wait);  // an error is returned by complete_io
    }
}

// Finishes a started operation if it is ready.
void io_multiplexer::look_at(operation_record& op) noexcept {
    if (op.at != operation_record::stage::waiting and op.at != operation_record::stage::in_flight) return;
    if (op.kind == operation_kind::external) {
        poll_external(op);
    } else {
        backend_poll(op);
    }
    if (op.timer_link.is_linked() and op.expires <= now()) expire(op);
}

bool io_multiplexer::poll(operation_record& op) noexcept {
    if (not is_inside()) [[unlikely]]
        return poll_outside(op);
    if (op.is_idle()) return op.has_completed;
    look_at(op);
    if (signalling_ or op.at != operation_record::stage::ready) return op.has_completed;
    ready_.erase(op);
    (void)signal(op);  // `op` may be gone, or started again
    return true;
}

// --- cancelling
// -----------------------------------------------------------------------------------------

// Takes an operation the kernel does not know of out of its queue and finishes it.
void io_multiplexer::withdraw(operation_record& op, int code) noexcept {
    if (op.kind != operation_kind::sleep) op.target->side(direction_of(op.kind)).queue.erase(op);
    const bool broke_stream = leaves_gap(op.kind) and op.transferred != 0;
    const direction which = direction_of(op.kind);
    if (op.transferred == 0) op.error_code = code;
    registration& target = *op.target;
    finish(op);
    if (not broke_stream) return;
    // Half of it is in the stream, or out of it: what was to follow must not take what comes after the gap
    // for its own.
    registration::half& half = target.side(which);
    while (operation_record* const follower = half.queue.front()) {
        half.queue.erase(*follower);
        follower->error_code = ECANCELED;
        finish(*follower);
    }
}

void io_multiplexer::cancel(operation_record& op, int code) noexcept {
    if (not is_inside()) [[unlikely]]
        return cancel_outside(op, code);
    if (op.is_idle() or op.at == operation_record::stage::ready or op.at == operation_record::stage::valued)
        return;
    // A worker thread that is about to begin the operation may be looking. relaxed: see worker_pool::cancel.
    const std::atomic_ref wish(op.cancel_code);
    const bool is_first = wish.load(std::memory_order_relaxed) == 0;
    if (is_first) wish.store(code, std::memory_order_relaxed);
    if (op.timer_link.is_linked()) timers_.erase(op);
    if (op.at == operation_record::stage::trying or op.at == operation_record::stage::begun) {
        if (is_first) pinned_word(op.backend_word).note_cancellation();
        return;  // it is seen to by the thread that has it
    }
    if (op.kind == operation_kind::external) {
        if (not is_first) return;
        external_work& work = *static_cast<external_work*>(op.argument);
        if (sharing_ != nullptr) return call_pinned(op, &external_work::end);
        work.end();
        return;
    }
    const bool ours = op.at == operation_record::stage::waiting and
                      (op.kind == operation_kind::sleep or op.target->is_stream());
    if (ours) {
        withdraw(op, code);
    } else {
        backend_cancel(op);
    }
}

// Whether only signals are missing.
bool io_multiplexer::is_over(const operation_record& op) noexcept {
    const bool is_known = op.at == operation_record::stage::ready or op.at == operation_record::stage::valued;
    return op.is_idle() or (is_known and not op.notification_pending);
}

bool io_multiplexer::abandon(operation_record& op) noexcept {
    if (sharing_ != nullptr) return abandon_shared(op);
    const bool is_outside_of_turns = turn() % 2 == 0;
    take_completed_elsewhere();
    const bool is_external = op.kind == operation_kind::external and not is_over(op);
    if (is_external and static_cast<external_work*>(op.argument)->abandon()) {
        op.error_code = ECANCELED;
        finish(op);
    } else {
        cancel(op, ECANCELED);
    }
    while (not is_over(op)) {
        // With something in `ready_` the back end does not sleep.
        operation_queue kept = std::move(ready_);
        const result<void> asked = backend_complete(now() + std::chrono::milliseconds(10));
        kept.append(std::move(ready_));
        ready_ = std::move(kept);
        take_completed_elsewhere();
        if (not asked) [[unlikely]]
            report_unreturned(unreturned_failure::loop_cannot_run, asked.error().message().c_str());
    }
    if (is_outside_of_turns and turn() % 2 != 0) end_turn();
    if (op.is_idle()) return false;
    if (op.queue_link.is_linked()) ready_.erase(op);
    retire(op);
    return not op.has_completed;
}

void io_multiplexer::bring_forward(operation_record& op) noexcept {
    const entry in(*this);
    ENSURE(op.at == operation_record::stage::waiting and op.target->is_stream());
    registration::half& half = op.target->side(direction_of(op.kind));
    if (half.in_flight == 0) {
        half.queue.erase(op);
        half.queue.push_front(op);
    }
    mark_dirty(half);
}

}  // namespace sluice::io

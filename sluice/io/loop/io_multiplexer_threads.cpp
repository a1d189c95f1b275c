// A multiplexer for several threads.
//
// The engine works as for one thread: every function that accesses its state is called by a thread
// that is inside. For several threads, being inside means holding one lock. It is released during
// everything that can take long: while a receiver or a posted item runs, while start() tries an
// operation by a system call, and while a thread waits in the kernel or for another thread. User
// code therefore never runs inside.
//
// `leadership` decides which of the idle threads waits in the kernel, and which is woken.
//
// Invariants:
//   1. The leader holds the lock except while it is asleep. A thread that holds the lock and sees a
//      leader therefore sees one that is asleep, or awake and about to take the lock.
//   2. While a thread follows, another one leads, or was woken and will look for work, and then
//      takes it, leads or follows. For that, a thread wakes another one when it leaves run, and
//      when it takes work and sees more, or no leader.
//   3. An operation whose outcome is known is in `ready_`, or belongs to the one thread that took
//      it out.
//   4. One thread at a time makes calls on one direction of a stream: an operation that start()
//      tries is at the front of its queue, counted in `in_flight`, as if it were with the kernel.
//      Others queue after it.
//   5. `busy` counts the threads in user code; the multiplexer is exhausted only if there is none.
//   6. An operation is in `signalling` from before its value to after its done signal, and in
//      `abandoning` from when a thread wants to destroy it. No operation in the second is put into
//      the first.

#include <algorithm>
#include <thread>

#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/loop/io_multiplexer_sharing.hpp"
#include "sluice/io/loop/passes.hpp"
#include "sluice/io/loop/pinned_word.hpp"

namespace sluice::io {

using detail::operation_record;

using namespace passes;

void io_multiplexer::free_sharing::operator()(sharing* of) const noexcept {
    delete of;
}

result<void> io_multiplexer::share() noexcept {
    ENSURE(sharing_ == nullptr and pending_ == 0 and chunks_.empty(), "shared once, before its first use");
    sharing_.reset(new (std::nothrow) sharing);
    if (sharing_ == nullptr) return failure({ENOMEM, "make a multiplexer for several threads"});
    no_handle_.is_shared = words_.is_shared = true;
    return {};
}

// --- inside and outside
// ------------------------------------------------------------------------------------------------

// Returns false if this thread is inside already.
bool io_multiplexer::enter() const noexcept {
    if (is_inside()) return false;
    sharing_->lock.lock();
    // Only this thread finds it to be its own.
    owner_.store(&thread_mark_, std::memory_order_relaxed);
    return true;
}

void io_multiplexer::leave() const noexcept {
    ENSURE(is_inside(), "the lock is released by the thread that has it");
    owner_.store(nullptr, std::memory_order_relaxed);
    sharing_->lock.unlock();
}

// Returns whether a receiver of this runs on this thread, at any depth.
bool io_multiplexer::is_receiving() const noexcept {
    for (const outside* at = innermost_; at != nullptr; at = at->around()) {
        if (at->is(*this, outside::why::receiver)) return true;
    }
    return false;
}

bool io_multiplexer::is_in_user_code() const noexcept {
    for (const outside* at = innermost_; at != nullptr; at = at->around()) {
        if (at->is(*this, outside::why::receiver) or at->is(*this, outside::why::item)) return true;
    }
    return false;
}

bool io_multiplexer::another_sleeps() const noexcept {
    return sharing_ != nullptr and sharing_->threads.is_asleep();
}

void io_multiplexer::fall_asleep() noexcept {
    ENSURE(is_inside() and sharing_->threads.has_leader(), "only the leader sleeps in the kernel");
    sharing_->threads.fall_asleep();
    leave();
}

void io_multiplexer::awake() noexcept {
    (void)enter();
    ENSURE(sharing_->threads.is_asleep(), "woke up without having slept");
    sharing_->threads.wake_up();
}

std::size_t io_multiplexer::pending_of_threads() const noexcept {
    const entry in(*this);
    return pending_;
}

// --- starting
// -------------------------------------------------------------------------------------------------

bool io_multiplexer::start_outside(operation_record& op, initiation how) noexcept {
    if (refuses_all_) [[unlikely]] {
        end_refused(op, op.target->refusal->code());
        return false;
    }
    if (sharing_ == nullptr) {
        become_owner();
        return start(op, how);
    }
    const entry in(*this);
    reset(op);
    if (begin_shared(op, how)) deliver(op);
    publish_work();
    return false;  // the signals have been given, or will be
}

bool io_multiplexer::refuse_outside(operation_record& op) noexcept {
    if (refuses_all_) [[unlikely]] {
        end_refused(op, ECANCELED);
        return false;
    }
    if (sharing_ == nullptr) {
        become_owner();
        return refuse(op);
    }
    const entry in(*this);
    reset(op);
    op.error_code = ECANCELED;
    op.at = operation_record::stage::ready;
    deliver(op);
    publish_work();
    return false;
}

bool io_multiplexer::start_or_finish_outside(operation_record& op) noexcept {
    if (sharing_ == nullptr) {
        become_owner();
        return start_or_finish(op);
    }
    if (refuses_all_) [[unlikely]] {
        // It must neither enter a cancel scope nor resume its coroutine on a multiplexer
        // that no thread runs.
        op.error_code = op.target->refusal->code();
        op.has_completed = true;
        return true;
    }
    const entry in(*this);
    reset(op);
    // If it were started now, another thread could resume the coroutine before it is suspended.
    op.at = operation_record::stage::begun;
    return false;
}

void io_multiplexer::publish(operation_record& op, initiation how) noexcept {
    const entry in(*this);
    ENSURE(op.at == operation_record::stage::begun);
    if (op.cancel_code != 0) {
        op.error_code = op.cancel_code;
        op.at = operation_record::stage::ready;
        deliver(op);
    } else if (begin_shared(op, how)) {
        deliver(op);
    }
    publish_work();
}

namespace {

// Returns whether trying such an operation changes only the operation, so that it can be tried
// outside.
bool may_be_tried_outside(operation_kind kind) noexcept {
    switch (kind) {
        case operation_kind::read:
        case operation_kind::write:
        case operation_kind::write_some:
        case operation_kind::call_in:
        case operation_kind::call_out:
        case operation_kind::accept:
        case operation_kind::receive_from:
        case operation_kind::send_to:
        case operation_kind::ready_to_read:
        case operation_kind::ready_to_write:
            return true;
        default:
            return false;
    }
}

}  // namespace

// Returns whether the outcome is known.
bool io_multiplexer::begin_shared(operation_record& op, initiation how) noexcept {
    ENSURE(is_inside(), "an operation is begun by a thread that is outside");
    if (not wants_attempt(op, how)) return begin_slow_path(op);
    if (not may_be_tried_outside(op.kind)) return record_attempt(op, attempt(op));
    return try_shared(op);
}

bool io_multiplexer::try_shared(operation_record& op) noexcept {
    registration::half& half = op.target->side(direction_of(op.kind));
    const bool is_stream = op.target->is_stream();
    op.at = operation_record::stage::trying;
    if (is_stream) {
        ENSURE(half.queue.empty() and half.in_flight == 0);
        half.queue.push_back(op);
        half.in_flight = 1;
    }
    bool finished = false;
    {
        const outside out(*this, outside::why::call);
        finished = attempt(op);
    }
    if (op.cancel_code != 0 and not finished) {
        if (op.transferred == 0) op.error_code = op.cancel_code;
        finished = true;
    }
    if (not is_stream) return record_attempt(op, finished);
    if (not finished and op.limit.is_zero()) {
        if (op.transferred == 0) op.error_code = ETIMEDOUT;
        finished = true;
    }
    return finished ? leave_queue(op, half) : stay_in_queue(op, half);
}

// It is over; the operations after it are served next.
bool io_multiplexer::leave_queue(operation_record& op, registration::half& half) noexcept {
    ENSURE(half.in_flight == 1 and half.queue.front() == &op, "an operation that is tried leads its queue");
    half.pause = half.skipped = 0;
    operation_queue over;
    finish_front(half, over);
    over.erase(op);
    while (operation_record* const cut = over.pop_front())
        finish(*cut);
    if (not half.queue.empty()) mark_dirty(half);
    return true;
}

// It would have to wait, and keeps its place.
bool io_multiplexer::stay_in_queue(operation_record& op, registration::half& half) noexcept {
    ENSURE(half.in_flight == 1 and half.queue.front() == &op, "an operation that is tried leads its queue");
    half.in_flight = 0;
    half.queue.erase(op);
    operation_queue rest = std::move(half.queue);
    const bool is_known = record_attempt(op, false);
    half.queue.append(std::move(rest));
    return is_known;
}

// The outcome is known: gives the signals, or passes them to another thread.
void io_multiplexer::deliver(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::ready, "delivered before its outcome is known");
    // A receiver that runs here must return first; and a coroutine is resumed by the loop.
    if (op.value_is_empty or is_receiving()) {
        ready_.push_back(op);
    } else {
        signal_shared(op);
    }
}

// Gives the signals of an operation that this thread has taken.
void io_multiplexer::signal_shared(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::ready and not op.notification_pending);
    if (sharing_->is_being_abandoned(op)) [[unlikely]]
        return;  // in no list, and over: abandon() waits for that
    const held by_this_thread(sharing_->signalling, op);
    op.at = operation_record::stage::valued;
    op.has_completed = true;
    ++sharing_->busy;
    if (not op.value_is_empty) {
        const outside out(*this, outside::why::receiver);
        op.signal_value();
    }
    retire(op);
    {
        const outside out(*this, outside::why::receiver);
        op.signal_done();  // `op` may be gone, or started again
    }
    ENSURE(sharing_->busy > 0, "more threads leave user code than have entered it");
    --sharing_->busy;
}

// --- external work
// -------------------------------------------------------------------------------------------------

// Calls a function of an operation's external work, outside. The operation stays where it is: its
// completion, and a cancellation, wait until the call has returned.
void io_multiplexer::call_pinned(operation_record& op, void (external_work::*function)() noexcept) noexcept {
    ENSURE(op.at == operation_record::stage::in_flight, "one call at a time is made for external work");
    op.at = operation_record::stage::trying;
    {
        const outside out(*this, outside::why::call);
        (static_cast<external_work*>(op.argument)->*function)();
    }
    unpin(op);
}

void io_multiplexer::unpin(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::trying, "no call is made for it");
    take_completed_elsewhere();
    op.at = operation_record::stage::in_flight;
    switch (pinned_word(op.backend_word).take()) {
        case pinned_word::step::nothing:
            break;
        case pinned_word::step::finish:
            finish(op);
            break;
        case pinned_word::step::end:
            call_pinned(op, &external_work::end);
            break;
    }
}

bool io_multiplexer::begin_external_shared(operation_record& op, external_work& work) noexcept {
    ++queued_;  // it may be complete before begin() returns
    op.at = operation_record::stage::trying;
    std::optional<int> code;
    {
        const outside out(*this, outside::why::call);
        code = work.begin(not op.limit.is_zero());
    }
    if (code) {
        ENSURE(queued_ != 0, "work that ended in begin() was not counted");
        --queued_;
        op.error_code = *code;
        op.at = operation_record::stage::ready;
        return true;
    }
    unpin(op);
    const bool goes_on = op.at == operation_record::stage::in_flight;
    if (goes_on and not op.limit.is_none() and not op.limit.is_zero()) arm_timer(op);
    return false;
}

void io_multiplexer::invoke_shared(posted_item& item) noexcept {
    ++sharing_->busy;
    {
        const outside out(*this, outside::why::item);
        item.invoke();
    }
    ENSURE(sharing_->busy > 0, "more threads leave user code than have entered it");
    --sharing_->busy;
}

// --- polling and cancelling
// -------------------------------------------------------------------------------------------------

bool io_multiplexer::poll_outside(operation_record& op) noexcept {
    if (sharing_ == nullptr) {
        become_owner();
        return poll(op);
    }
    const entry in(*this);
    if (op.is_idle() or refuses_all_) return op.has_completed;
    inspect(op);
    bool has_completed = op.has_completed;
    if (op.at == operation_record::stage::ready and not is_receiving()) {
        ready_.erase(op);
        signal_shared(op);  // `op` may be gone, or started again
        has_completed = true;
    }
    publish_work();
    return has_completed;
}

void io_multiplexer::cancel_outside(operation_record& op, int code) noexcept {
    if (refuses_all_) [[unlikely]]
        return;
    if (sharing_ == nullptr) {
        become_owner();
        return cancel(op, code);
    }
    const entry in(*this);
    cancel(op, code);
    publish_work();
    // Another thread gives its signals, and the receiver that runs here may take long.
    if (looping_ == this and has_work()) notify_one();
}

// As call_pinned, for external_work::abandon(). Returns whether it is over.
bool io_multiplexer::abandon_pinned(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::in_flight, "one call at a time is made for external work");
    op.at = operation_record::stage::trying;
    bool is_abandoned = false;
    {
        const outside out(*this, outside::why::call);
        is_abandoned = static_cast<external_work*>(op.argument)->abandon();
    }
    take_completed_elsewhere();
    op.at = operation_record::stage::in_flight;
    const pinned_word::step recorded = pinned_word(op.backend_word).take();
    if (is_abandoned) op.error_code = ECANCELED;
    const bool is_over = is_abandoned or recorded == pinned_word::step::finish;
    if (is_over) {
        finish(op);
    } else if (recorded == pinned_word::step::end) {
        // Another thread has cancelled it in between; only once.
        call_pinned(op, &external_work::end);
    }
    return is_over;
}

bool io_multiplexer::abandon_shared(operation_record& op) noexcept {
    if (refuses_all_) [[unlikely]]
        return abandon_refused(op);
    const entry in(*this);
    ENSURE(not(op.value_is_empty and op.is_idle() and sharing_->is_signalled_elsewhere(op)),
           "a coroutine is destroyed while another thread resumes it");
    const held by_this_thread(sharing_->abandoning, op);  // from here on no thread signals it
    take_completed_elsewhere();
    const bool is_external =
        op.kind == operation_kind::external and op.at == operation_record::stage::in_flight;
    if (not(is_external and abandon_pinned(op))) cancel(op, ECANCELED);
    while (not is_over(op) or sharing_->is_signalled_elsewhere(op)) {
        const result<void> asked = backend_complete(no_wait);
        take_completed_elsewhere();
        if (not asked) [[unlikely]]
            report_unreturned(unreturned_failure::loop_cannot_run, asked.error().message().c_str());
        const outside out(*this, outside::why::call);
        std::this_thread::yield();
    }
    const bool was_pending = not op.is_idle();
    if (was_pending) {
        ENSURE(op.at == operation_record::stage::ready, "abandoned by its own value signal");
        if (op.queue_link.is_linked()) ready_.erase(op);
        retire(op);
    }
    publish_work();
    return was_pending;
}

}  // namespace sluice::io

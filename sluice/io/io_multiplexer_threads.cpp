// A multiplexer for several threads.
//
// The engine stays what it is for one thread: every function that touches it is called by a thread that is
// inside. For several threads, being inside means to hold one lock. It is released whenever anything can take
// long: while a receiver or a posted item runs, while start() tries an operation by a system call, and while
// a thread waits in the kernel or for another thread. User code therefore never runs inside.
//
// Of the threads that find nothing to do one leads: it waits in the kernel for all. The others follow: each
// waits to be woken.
//
// Invariants:
//   1. At most one thread leads. It holds the lock except while it is asleep, so whoever holds the lock and
//   sees `has_leader` sees a leader asleep (or awake and about to take the lock).
//   2. A thread begins to follow only while another leads. While any follows, one leads, or one that was
//   woken (taken from `waiting`) is on its way to look for work, and then takes it, leads or follows. Kept
//   by: who ends leading and takes work, or leaves run, wakes one that follows, as does who takes work and
//   sees more.
//   3. An operation whose outcome is known is in `ready_`, or belongs to the one thread that took it out.
//   4. One thread at a time makes calls on one direction of a stream: an operation that start() tries is at
//   the front of its queue, counted in `in_flight`, as if it were with the kernel. Others queue behind it.
//   5. `busy` counts the threads in user code; the multiplexer is exhausted only if there is none.

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "sluice/io/attempt.hpp"
#include "sluice/io/external_work.hpp"
#include "sluice/io/failure_handler.hpp"
#include "sluice/io/io_multiplexer.hpp"
#include "sluice/io/passes.hpp"

namespace sluice::io {

using detail::operation_record;

using namespace passes;

// On the stack of a thread that follows. Guarded by the lock.
struct io_multiplexer::waiting_thread {
    std::condition_variable signal;
    bool is_woken = false;  // and no longer in the list
    list_hook<waiting_thread> link;
};

// Guarded by its lock.
struct io_multiplexer::sharing {
    std::mutex lock;
    intrusive_list<waiting_thread, &waiting_thread::link> waiting;
    bool has_leader = false;
    bool is_asleep = false;     // the leader
    time_point leader_until{};  // when it wakes by itself
    int busy = 0;
    int on_their_way = 0;  // threads that were woken and have not had the lock since
};

void io_multiplexer::free_sharing::operator()(sharing* of) const noexcept {
    delete of;
}

result<void> io_multiplexer::share() noexcept {
    sharing_.reset(new (std::nothrow) sharing);
    if (sharing_ == nullptr) return failure({ENOMEM, "make a multiplexer for several threads"});
    return {};
}

// --- inside and outside
// ------------------------------------------------------------------------------------------------

// Returns false if this thread is inside already.
bool io_multiplexer::enter() const noexcept {
    if (is_inside()) return false;
    sharing_->lock.lock();
    owner_.store(&thread_mark_, std::memory_order_relaxed);  // only this thread finds it to be its own
    return true;
}

void io_multiplexer::leave() const noexcept {
    owner_.store(nullptr, std::memory_order_relaxed);
    sharing_->lock.unlock();
}

// Lets others in while this exists.
class io_multiplexer::outside {
public:
    enum class why : std::uint8_t { call, item, receiver };

    outside(io_multiplexer& of, why reason) noexcept
        : of_(of), reason_(reason), around_(std::exchange(innermost_, this)), here_(of) {
        of_.leave();
    }
    outside(const outside&) = delete;
    outside& operator=(const outside&) = delete;
    ~outside() {
        (void)of_.enter();
        innermost_ = around_;
    }

    [[nodiscard]] bool is(const io_multiplexer& of, why reason) const noexcept {
        return &of_ == &of and reason_ == reason;
    }
    [[nodiscard]] const outside* around() const noexcept { return around_; }

private:
    io_multiplexer& of_;
    why reason_;
    const outside* around_;  // the one on this thread within which this is
    runs_here here_;         // for handles that adopt it, and tasks that come home
};

// Whether a receiver of this runs on this thread, however deep below.
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
    return sharing_ != nullptr and sharing_->is_asleep;
}

void io_multiplexer::fall_asleep() noexcept {
    sharing_->is_asleep = true;
    leave();
}

void io_multiplexer::awake() noexcept {
    (void)enter();
    sharing_->is_asleep = false;
}

std::size_t io_multiplexer::pending_of_threads() const noexcept {
    const entry in(*this);
    return pending_;
}

// --- starting
// ---------------------------------------------------------------------------------------------------------

bool io_multiplexer::start_outside(operation_record& op, initiation how) noexcept {
    if (sharing_ == nullptr) {
        become_owner();
        return start(op, how);
    }
    const entry in(*this);
    reset(op);
    if (begin_shared(op, how)) deliver(op);
    settle_shared();
    return false;  // the signals have been given, or will be
}

bool io_multiplexer::refuse_outside(operation_record& op) noexcept {
    if (sharing_ == nullptr) {
        become_owner();
        return refuse(op);
    }
    const entry in(*this);
    reset(op);
    op.error_code = ECANCELED;
    op.at = operation_record::stage::ready;
    deliver(op);
    settle_shared();
    return false;
}

bool io_multiplexer::start_or_finish_outside(operation_record& op) noexcept {
    if (sharing_ == nullptr) {
        become_owner();
        return start_or_finish(op);
    }
    // If it were started now, another thread could resume the coroutine before it is suspended.
    const entry in(*this);
    reset(op);
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
    settle_shared();
}

namespace {

// Whether trying such an operation changes nothing but itself, so that it can be tried outside.
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
    if (not wants_attempt(op, how)) return begin_slowly(op);
    if (not may_be_tried_outside(op.kind)) return note_attempt(op, attempt(op));
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
    if (not is_stream) return note_attempt(op, finished);
    if (not finished and op.limit.is_zero()) {
        if (op.transferred == 0) op.error_code = ETIMEDOUT;
        finished = true;
    }
    return finished ? leave_queue(op, half) : stay_in_queue(op, half);
}

// It is over, and those that came behind it are served next.
bool io_multiplexer::leave_queue(operation_record& op, registration::half& half) noexcept {
    half.pause = half.skipped = 0;
    operation_queue over;
    finish_front(half, over);
    over.erase(op);
    while (operation_record* const cut = over.pop_front())
        finish(*cut);
    if (not half.queue.empty()) mark_dirty(half);
    return true;
}

// It would have to wait, at the place it has.
bool io_multiplexer::stay_in_queue(operation_record& op, registration::half& half) noexcept {
    half.in_flight = 0;
    half.queue.erase(op);
    operation_queue behind = std::move(half.queue);
    const bool is_known = note_attempt(op, false);
    half.queue.append(std::move(behind));
    return is_known;
}

// The outcome is known: gives the signals, or has them given.
void io_multiplexer::deliver(operation_record& op) noexcept {
    // A receiver that runs here must return first; and a coroutine may not be resumed while it is suspending.
    if (op.value_is_empty or is_receiving()) {
        ready_.push_back(op);
    } else {
        signal_shared(op);
        if (signals_all_in_start_) (void)signal_some_shared(limits::completions_per_pass_max);
    }
}

// Gives the signals of an operation that this thread has taken.
void io_multiplexer::signal_shared(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::ready and not op.notification_pending);
    op.at = operation_record::stage::valued;
    ++sharing_->busy;
    if (not op.value_is_empty) {
        const outside out(*this, outside::why::receiver);
        op.signal_value();
    }
    op.has_completed = true;
    retire(op);
    {
        const outside out(*this, outside::why::receiver);
        op.signal_done();  // `op` may be gone, or started again
    }
    --sharing_->busy;
}

// --- external work
// ----------------------------------------------------------------------------------------------------

// Calls a function of an operation's external work, outside. It stays where it is meanwhile: its completion,
// and a cancellation, wait until the call has returned.
void io_multiplexer::call_pinned(operation_record& op, void (external_work::*function)() noexcept) noexcept {
    op.at = operation_record::stage::trying;
    {
        const outside out(*this, outside::why::call);
        (static_cast<external_work*>(op.argument)->*function)();
    }
    unpin(op);
}

void io_multiplexer::unpin(operation_record& op) noexcept {
    take_completed_elsewhere();
    op.at = operation_record::stage::in_flight;
    const std::uint64_t meanwhile = std::exchange(op.backend_word, 0);
    if ((meanwhile & is_complete) != 0) {
        finish(op);
    } else if ((meanwhile & end_is_due) != 0) {
        call_pinned(op, &external_work::end);
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
    if (op.is_idle()) return op.has_completed;
    look_at(op);
    bool has_completed = op.has_completed;
    if (op.at == operation_record::stage::ready and not is_receiving()) {
        ready_.erase(op);
        signal_shared(op);  // `op` may be gone, or started again
        has_completed = true;
    }
    settle_shared();
    return has_completed;
}

void io_multiplexer::cancel_outside(operation_record& op, int code) noexcept {
    if (sharing_ == nullptr) {
        become_owner();
        return cancel(op, code);
    }
    const entry in(*this);
    cancel(op, code);
    settle_shared();
}

void io_multiplexer::abandon_shared(operation_record& op) noexcept {
    const entry in(*this);
    take_completed_elsewhere();
    const bool is_external = op.kind == operation_kind::external and not is_over(op);
    if (is_external and static_cast<external_work*>(op.argument)->abandon()) {
        op.error_code = ECANCELED;
        finish(op);
    } else {
        cancel(op, ECANCELED);
    }
    // While another thread gives its signals, it is not over either.
    while (not is_over(op) or (op.at == operation_record::stage::valued and not is_in_user_code())) {
        const result<void> asked = backend_complete(no_wait);
        take_completed_elsewhere();
        if (not asked) [[unlikely]]
            report_unreturned(unreturned_failure::loop_cannot_run, asked.error().message().c_str());
        const outside out(*this, outside::why::call);
        std::this_thread::yield();
    }
    if (not op.is_idle()) {
        if (op.queue_link.is_linked()) ready_.erase(op);
        retire(op);
    }
    settle_shared();
}

// --- between threads
// --------------------------------------------------------------------------------------------------

bool io_multiplexer::has_work() const noexcept {
    return not(ready_.empty() and posted_.empty() and completed_elsewhere_.empty());
}

bool io_multiplexer::is_exhausted_shared() const noexcept {
    return sharing_->busy == 0 and is_exhausted();
}

// Has one thread that follows look for work; false if there is none. One that is on its way will see what
// there is, and wake the next one if that is more than it takes.
bool io_multiplexer::wake_waiting() noexcept {
    return sharing_->on_their_way != 0 or wake_another();
}

bool io_multiplexer::wake_another() noexcept {
    waiting_thread* const next = sharing_->waiting.pop_front();
    if (next == nullptr) return false;
    next->is_woken = true;
    ++sharing_->on_their_way;
    next->signal.notify_one();  // under the lock: the node goes as soon as its thread has it
    return true;
}

// Has some thread of run… look for work.
void io_multiplexer::notify_one() noexcept {
    if (not wake_waiting() and sharing_->is_asleep) backend_wake();
}

// After the engine was changed by a thread that may not be in run…: what the leader would do before it
// sleeps.
void io_multiplexer::settle_shared() noexcept {
    const sharing& all = *sharing_;
    if (all.is_asleep) {
        backend_flush();
        if (not timers_.empty() and timers_.top()->expires < all.leader_until) backend_wake();
    }
    // A thread of run… looks itself, when the receiver or item that it runs has returned.
    if (looping_ != this and (has_work() or is_exhausted_shared())) notify_one();
}

// Before a thread leaves run…, where it would have found what is left.
void io_multiplexer::hand_on() noexcept {
    const sharing& all = *sharing_;
    if (not all.has_leader or has_work() or is_exhausted_shared()) notify_one();
}

// --- running
// ----------------------------------------------------------------------------------------------------------

// Waits to be woken.
void io_multiplexer::follow(time_point until) noexcept {
    waiting_thread self;
    sharing_->waiting.push_front(self);  // the last to come is the first to go: its caches are warm
    owner_.store(nullptr, std::memory_order_relaxed);
    {
        std::unique_lock held(sharing_->lock, std::adopt_lock);
        const auto is_woken = [&self] { return self.is_woken; };
        if (until == for_ever) {
            self.signal.wait(held, is_woken);
        } else {
            (void)self.signal.wait_until(held, until, is_woken);
        }
        (void)held.release();
    }
    owner_.store(&thread_mark_, std::memory_order_relaxed);
    if (self.is_woken) {
        --sharing_->on_their_way;
    } else {
        sharing_->waiting.erase(self);
    }
}

result<void> io_multiplexer::wait_shared(time_point until) noexcept {
    sharing& all = *sharing_;
    if (all.has_leader) {
        follow(until);
        return {};
    }
    all.has_leader = true;
    all.leader_until = timers_.empty() ? until : std::min(until, timers_.top()->expires);
    const result<void> asked = backend_complete(all.leader_until);
    all.has_leader = false;
    return asked;
}

int io_multiplexer::invoke_some_shared(int max) noexcept {
    int count = 0;
    max = std::min(max, limits::posted_items_per_pass_max);
    while (count < max) {
        posted_item* const item = posted_.pop();
        if (item == nullptr) break;
        if (has_work() or not sharing_->has_leader) (void)wake_waiting();
        invoke_shared(*item);
        ++count;
    }
    return count;
}

int io_multiplexer::signal_some_shared(int max) noexcept {
    int count = 0;
    max = std::min(max, limits::completions_per_pass_max);
    constexpr int signals_without_backend_max = 16;
    while (count < max) {
        take_completed_elsewhere();
        operation_record* const op = ready_.pop_front();
        if (op == nullptr) break;
        if (has_work() or not sharing_->has_leader) (void)wake_waiting();
        signal_shared(*op);
        ++count;
        const bool is_long = count % signals_without_backend_max == 0 and queued_ != 0;
        if (is_long and not sharing_->is_asleep) (void)backend_complete(no_wait);  // an error: by the next
    }
    return count;
}

// One pass over everything there is to do. If that is nothing, waits until then.
result<int> io_multiplexer::pass_shared(share_of_work what, int max, time_point until) noexcept {
    int count = 0;
    if (what == share_of_work::posted) return invoke_some_shared(max);
    if (what == share_of_work::all) count = invoke_some_shared(max);
    if (what != share_of_work::io) {
        const int expired = expire_some(std::min(max - count, limits::completions_per_pass_max));
        if (what == share_of_work::timers)
            return expired == 0 ? idle_value() : std::max(expired, signal_some_shared(max));
    }
    take_completed_elsewhere();
    const bool is_idle = count == 0 and ready_.empty();
    result<void> asked;
    if (is_idle and until != no_wait and not is_exhausted_shared()) {
        asked = wait_shared(until);
    } else {
        // A thread that sleeps in the kernel sees what is ready there before we do.
        const bool is_anothers = sharing_->is_asleep and until != no_wait;
        constexpr int passes_without_backend_max = 4;
        const bool is_due = ready_.empty() or ++passes_without_backend_ >= passes_without_backend_max;
        if (queued_ != 0 and not is_anothers and is_due) {
            passes_without_backend_ = 0;
            asked = backend_complete(no_wait);
        }
    }
    count += signal_some_shared(max - count);
    if (count > 0) return count;
    if (not asked) [[unlikely]]
        return failure(asked.error());
    return idle_value();
}

result<int> io_multiplexer::run_shared(share_of_work what, int max, time_point until,
                                       const bool* done) noexcept {
    ENSURE(max == 0 or not is_in_user_code(),
           "complete_io and run must not be called from a receiver; nor, with several threads, from an item");
    const runs_here here(*this);
    const io_multiplexer* const looping_before = std::exchange(looping_, this);
    const entry in(*this);
    result<int> count = nothing_ready;
    // Looked at whenever the lock has been had, before this thread waits: finish_run() wakes those that wait.
    const auto is_done = [done] { return done != nullptr and * done; };
    for (bool goes_on = max != 0 and not is_done(); goes_on;) {
        count = pass_shared(what, max, until);
        if (not count or *count > 0 or what != share_of_work::all) break;
        count = is_exhausted_shared() ? nothing_pending : nothing_ready;
        const bool is_over = until == no_wait or (until != for_ever and now() >= until);
        goes_on = *count != nothing_pending and not is_over and not is_done();
    }
    hand_on();
    looping_ = looping_before;
    return count;
}

void io_multiplexer::run_until(const bool& done) noexcept {
    const auto is_done = [&] {
        const entry in(*this);
        return done;
    };
    while (not is_done()) {
        const result<int> ran = run_shared(share_of_work::all, passes::maximum(unlimited), for_ever, &done);
        if (not ran) [[unlikely]]
            report_unreturned(unreturned_failure::loop_cannot_run, ran.error().message().c_str());
    }
}

void io_multiplexer::finish_run(bool& done) noexcept {
    const entry in(*this);
    done = true;
    // Which thread waits for it is not known.
    while (wake_another()) {}
    if (sharing_->is_asleep) backend_wake();
}

}  // namespace sluice::io

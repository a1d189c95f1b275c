#include "sluice/fsmutex/async_lock.hpp"

#include <algorithm>
#include <thread>

#include "sluice/io/loop/engine.hpp"

namespace sluice::fsmutex {

lock_attempt::lock_attempt(shared_fs_mutex& mutex, entity_set wanted, const ticket& place, bool is_granted,
                           deadline within) noexcept
    : mutex_(&mutex),
      wanted_(std::move(wanted)),
      held_(fs_mutex_guard(mutex, place)),
      is_granted_(is_granted),
      end_(within.steady_end(mutex.clock().steady_now(), mutex.clock().utc_now())),
      looked_(mutex.clock().steady_now()) {}

result<lock_attempt> lock_attempt::begin(shared_fs_mutex& mutex, std::span<const entity> wanted,
                                         deadline within) noexcept {
    if (not mutex.is_ours()) return shared_fs_mutex::refuse_after_fork();
    auto entities = entity_set::of(wanted);
    if (not entities) return failure(entities.error());
    ticket place;
    const auto granted = mutex.enter(entities->view(), place, shared_fs_mutex::wait_policy::some);
    if (not granted) return failure(granted.error());
    return lock_attempt(mutex, std::move(*entities), place, *granted, within);
}

result<bool> lock_attempt::poll() noexcept {
    if (not mutex_->is_ours()) return shared_fs_mutex::refuse_after_fork();
    if (is_granted_) return true;
    const auto granted = mutex_->poll(wanted_.view(), held_.ticket_);
    if (not granted) held_.unlock();
    if (not granted or *granted) return granted;
    if (mutex_->clock().steady_now() < end_) return false;
    held_.unlock();
    return failure({ETIMEDOUT, "lock entities"});
}

std::chrono::nanoseconds lock_attempt::time_left() const noexcept {
    if (end_ == clock_source::steady_time::max()) return std::chrono::nanoseconds::max();
    return std::max<std::chrono::nanoseconds>(std::chrono::nanoseconds(1),
                                              end_ - mutex_->clock().steady_now());
}

void lock_attempt::begin_wait(io::io_multiplexer& loop, io::detail::operation_record& op) noexcept {
    waker_ = io::detail::engine::waits_for_threads(loop) ? wake_up::create() : nullptr;
    if (waker_ != nullptr and mutex_->begin_wait(wanted_.view(), held_.ticket_, waker_)) {
        const auto left = time_left();
        const bool is_endless = left == std::chrono::nanoseconds::max();
        io::configure_external(op, loop, *waker_, is_endless ? deadline() : deadline(left));
        return;
    }
    waker_ = nullptr;
    io::async_wait_word(loop, prepare_wake()).configure(op);
}

result<void> lock_attempt::end_wait(const io::detail::operation_record& op) noexcept {
    bool was_woken = false;
    if (waker_ != nullptr) {
        // The wait ends first: afterwards, no thread wakes this request or uses `waker_`.
        mutex_->end_wait(held_.ticket_);
        was_woken = waker_->was_woken();
        waker_ = nullptr;
    } else {
        check_for_deaths();
    }
    if (was_woken or op.error_code == 0) return {};
    return failure({op.error_code, "wait for a lock"});
}

io::word_wait lock_attempt::prepare_wake() noexcept {
    const auto wake = mutex_->prepare_wake(held_.ticket_);
    deaths_after_ = wake.deaths_after;
    return {.word = wake.word,
            .expected = wake.expected,
            .at_most = std::max(std::chrono::nanoseconds(1), std::min(time_left(), wake.deaths_after)),
            .pause = backoff(pauses_).next(mutex_->clock(), mutex_->random(), end_)};
}

void lock_attempt::check_for_deaths() noexcept {
    if (deaths_after_ == std::chrono::nanoseconds::zero()) return;
    const auto now = mutex_->clock().steady_now();
    if (now - looked_ < deaths_after_) return;
    looked_ = now;
    mutex_->check_for_deaths(held_.ticket_);
}

io::task<result<fs_mutex_guard>> co_lock(io::io_multiplexer& loop, shared_fs_mutex& mutex,
                                         std::vector<entity> wanted, deadline within) {
    auto attempt = lock_attempt::begin(mutex, wanted, within);
    if (not attempt) co_return failure(attempt.error());
    for (;;) {
        const auto granted = attempt->poll();
        if (not granted) co_return failure(granted.error());
        if (*granted) co_return attempt->take();
        const auto outcome = co_await wake_sender(loop, *attempt);
        const bool was_cancelled = not outcome and outcome.error() == std::errc::operation_canceled;
        if (was_cancelled) co_return failure(outcome.error());
    }
}

namespace detail {

result<void> lock_wait::sleep_sender::collect(const io::operation& completed) noexcept {
    const std::scoped_lock guard(self->lock_);
    return self->attempt_->end_wait(io::detail::record_of(completed));
}

void lock_wait::alarm::set_value(const result<void>& woken) const noexcept {
    const std::scoped_lock guard(self->lock_);
    self->is_signalled_ = true;
    if (not woken and woken.error() == std::errc::operation_canceled) self->is_ended_ = true;
}

std::optional<int> lock_wait::begin(bool) noexcept {
    const std::scoped_lock guard(lock_);
    auto begun = lock_attempt::begin(mutex_, wanted_, within_);
    if (not begun) return finish(failure(begun.error()));
    attempt_.emplace(std::move(*begun));
    return look();
}

void lock_wait::end() noexcept {
    const std::scoped_lock guard(lock_);
    is_ended_ = true;
    if (sleep_) sleep_->cancel();
}

void lock_wait::poll() noexcept {
    const std::scoped_lock guard(lock_);
    if (sleep_) (void)sleep_->poll();
}

bool lock_wait::abandon() noexcept {
    {
        const std::scoped_lock guard(lock_);
        is_ended_ = true;
    }
    // Without the lock, which a thread that sends the signals of the sleep acquires. No thread
    // begins another sleep now.
    if (sleep_) sleep_->abandon();
    std::unique_lock guard(lock_);
    // A thread that has sent the value still sends the done signal.
    while (is_signalled_) {
        guard.unlock();
        std::this_thread::yield();
        guard.lock();
    }
    if (is_complete_) return false;
    (void)finish(failure({ECANCELED, "lock entities"}));
    return true;
}

// Returns the outcome if it is known; otherwise recheck() follows.
std::optional<int> lock_wait::look() noexcept {
    if (is_ended_) return finish(failure({ECANCELED, "lock entities"}));
    const auto granted = attempt_->poll();
    if (not granted) return finish(failure(granted.error()));
    if (*granted) return finish(attempt_->take());
    sleep_.emplace(io::connect(sleep_sender{this}, alarm{this}));
    // Batched: so that its signals, and recheck(), come from the loop.
    sleep_->start(io::initiation::batched);
    return std::nullopt;
}

void lock_wait::recheck() noexcept {
    std::optional<int> code;
    {
        const std::scoped_lock guard(lock_);
        is_signalled_ = false;
        code = look();
        is_complete_ = code.has_value();
    }
    if (code) complete(*code);
}

int lock_wait::finish(result<fs_mutex_guard> outcome) noexcept {
    attempt_.reset();
    const result<fs_mutex_guard>& known = outcome_.emplace(std::move(outcome));
    return known ? 0 : known.error().code();
}

}  // namespace detail
}  // namespace sluice::fsmutex

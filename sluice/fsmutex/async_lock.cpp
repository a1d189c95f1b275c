#include "sluice/fsmutex/async_lock.hpp"

#include <algorithm>

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
    auto entities = entity_set::of(wanted);
    if (not entities) return failure(entities.error());
    ticket place;
    const auto granted = mutex.enter(entities->view(), place, shared_fs_mutex::patience::some);
    if (not granted) return failure(granted.error());
    return lock_attempt(mutex, std::move(*entities), place, *granted, within);
}

result<bool> lock_attempt::poll() noexcept {
    if (is_granted_) return true;
    const auto granted = mutex_->poll(wanted_.view(), held_.ticket_);
    if (not granted) held_.unlock();
    if (not granted or *granted) return granted;
    if (mutex_->clock().steady_now() < end_) return false;
    held_.unlock();
    return failure({ETIMEDOUT, "lock entities"});
}

io::word_wait lock_attempt::next_wait() noexcept {
    const auto wake = mutex_->prepare_wake(held_.ticket_);
    deaths_after_ = wake.deaths_after;
    const auto left = end_ == clock_source::steady_time::max()
                          ? std::chrono::nanoseconds::max()
                          : std::chrono::nanoseconds(end_ - mutex_->clock().steady_now());
    return {.word = wake.word,
            .expected = wake.expected,
            .at_most = std::max(std::chrono::nanoseconds(1), std::min(left, wake.deaths_after)),
            .pause = backoff(pauses_).next(mutex_->clock(), mutex_->random(), end_)};
}

void lock_attempt::waited() noexcept {
    if (deaths_after_ == std::chrono::nanoseconds::zero()) return;
    const auto now = mutex_->clock().steady_now();
    if (now - looked_ < deaths_after_) return;
    looked_ = now;
    mutex_->look_after_deaths();
}

io::task<result<fs_mutex_guard>> co_lock(io::io_multiplexer& loop, shared_fs_mutex& mutex,
                                         std::vector<entity> wanted, deadline within) {
    auto attempt = lock_attempt::begin(mutex, wanted, within);
    if (not attempt) co_return failure(attempt.error());
    for (;;) {
        const auto granted = attempt->poll();
        if (not granted) co_return failure(granted.error());
        if (*granted) co_return attempt->take();
        const io::word_wait next = attempt->next_wait();
        const auto outcome = co_await io::co_wait_word(loop, next);
        attempt->waited();
        const bool was_cancelled = not outcome and outcome.error() == std::errc::operation_canceled;
        if (was_cancelled) co_return failure(outcome.error());
    }
}

}  // namespace sluice::fsmutex

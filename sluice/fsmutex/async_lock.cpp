#include "sluice/fsmutex/async_lock.hpp"

namespace sluice::fsmutex {

lock_attempt::lock_attempt(shared_fs_mutex& mutex, entity_set wanted, const ticket& place,
                           deadline within) noexcept
    : mutex_(&mutex),
      wanted_(std::move(wanted)),
      held_(fs_mutex_guard(mutex, place)),
      end_(within.steady_end(mutex.clock().steady_now(), mutex.clock().utc_now())) {}

result<lock_attempt> lock_attempt::begin(shared_fs_mutex& mutex, std::span<const entity> wanted,
                                         deadline within) noexcept {
    auto entities = entity_set::of(wanted);
    if (not entities) return failure(entities.error());
    ticket place;
    if (const auto entered = mutex.enter(entities->view(), place, shared_fs_mutex::patience::some);
        not entered)
        return failure(entered.error());
    return lock_attempt(mutex, std::move(*entities), place, within);
}

result<bool> lock_attempt::poll() noexcept {
    const auto granted = mutex_->poll(wanted_.view(), held_.ticket_);
    if (not granted) held_.unlock();
    if (not granted or *granted) return granted;
    if (mutex_->clock().steady_now() < end_) return false;
    held_.unlock();
    return failure({ETIMEDOUT, "lock entities"});
}

std::chrono::nanoseconds lock_attempt::pause() noexcept {
    return backoff(pauses_).next(mutex_->clock(), mutex_->random(), end_);
}

io::task<result<fs_mutex_guard>> co_lock(io::io_multiplexer& loop, shared_fs_mutex& mutex,
                                         std::vector<entity> wanted, deadline within) {
    auto attempt = lock_attempt::begin(mutex, wanted, within);
    if (not attempt) co_return failure(attempt.error());
    for (;;) {
        const auto granted = attempt->poll();
        if (not granted) co_return failure(granted.error());
        if (*granted) co_return attempt->take();
        const deadline until(attempt->pause());
        const auto slept = co_await io::co_sleep(loop, until);
        if (not slept) co_return failure(slept.error());
    }
}

}  // namespace sluice::fsmutex

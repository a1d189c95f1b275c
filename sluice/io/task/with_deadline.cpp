#include "sluice/io/task/with_deadline.hpp"

#include "sluice/io/loop/engine.hpp"

namespace sluice::io::detail {

void scope_alarm::start(deadline within) noexcept {
    if (within.is_none()) return;
    ENSURE(not has_started_, "an alarm is started once");
    target = &detail::engine::no_handle(multiplexer_);
    kind = operation_kind::sleep;
    limit = within;
    has_started_ = true;
    const bool at_once = detail::engine::start_or_finish(multiplexer_, *this);
    ENSURE(not at_once, "a sleep ends from the loop only");
    if (multiplexer_.is_for_threads()) detail::engine::publish(multiplexer_, *this, initiation::automatic);
}

// Returns whether done is still to come, and will resume `waiter`; then this may be gone.
bool scope_alarm::stop(std::coroutine_handle<> waiter) noexcept {
    ENSURE(has_started_, "stopped before it was started");
    detail::engine::cancel(multiplexer_, *this, ECANCELED);
    return waiter_.wait(waiter.address());
}

void scope_alarm::signal_value() noexcept {
    if (error_code != 0 or scope_.is_cancelled()) return;
    has_fired_ = true;
    scope_.cancel();
}

void scope_alarm::signal_done() noexcept {
    void* const waiter = waiter_.signal();  // this may be gone
    if (waiter != nullptr) std::coroutine_handle<>::from_address(waiter).resume();
}

}  // namespace sluice::io::detail

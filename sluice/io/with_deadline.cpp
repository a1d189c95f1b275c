#include "sluice/io/with_deadline.hpp"

namespace sluice::io::detail {

void scope_alarm::start(deadline within) noexcept {
    if (within.is_none()) return;
    target = &multiplexer_.no_handle();
    kind = operation_kind::sleep;
    limit = within;
    const bool at_once = multiplexer_.start_or_finish(*this);
    ENSURE(not at_once, "a sleep ends from the loop only");
}

void scope_alarm::stop(std::coroutine_handle<> waiter) noexcept {
    waiter_ = waiter;
    multiplexer_.cancel(*this, ECANCELED);
}

void scope_alarm::signal_value() noexcept {
    if (error_code != 0 or scope_.is_cancelled()) return;
    has_fired_ = true;
    scope_.cancel();
}

void scope_alarm::signal_done() noexcept {
    if (waiter_) waiter_.resume();  // `this` may be gone
}

}  // namespace sluice::io::detail

// The deadlines of operations.

#include <algorithm>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/passes.hpp"

namespace sluice::io {

using detail::operation_record;
using namespace passes;

[[gnu::noinline]] void io_multiplexer::arm_timer(operation_record& op) noexcept {
    ENSURE(not op.limit.is_none(), "there is no time at which it would end");
    op.expires = op.limit.steady_end(
        now(), op.limit.which() == deadline::kind::utc ? utc_now() : deadline::system_clock::time_point{});
    if (op.expires != forever) timers_.push(op);
}

void io_multiplexer::disarm_timer(operation_record& op) noexcept {
    timers_.erase(op);
}

// The deadline of `op` has passed.
void io_multiplexer::expire(operation_record& op) noexcept {
    ENSURE(op.timer_link.is_linked() and not op.is_idle(), "only what waits has a deadline that passes");
    if (op.kind == operation_kind::sleep) {
        finish(op);  // a sleep that ends is a success
    } else {
        cancel(op, ETIMEDOUT);
    }
}

// Expires up to `max` deadlines. Returns how many have passed.
int io_multiplexer::expire_some(int max) noexcept {
    ensure_owner();
    int count = 0;
    if (timers_.empty()) return count;
    const time_point time = now();
    while (count < max and not timers_.empty() and timers_.top()->expires <= time) {
        expire(*timers_.top());
        ++count;
    }
    return count;
}

}  // namespace sluice::io

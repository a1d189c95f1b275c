#include "sluice/io/task/sync_wait.hpp"

#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/failure_handler.hpp"

namespace sluice::io::detail {

void sync_waiter::run(task_promise_base& root, std::coroutine_handle<> frame) noexcept {
    ENSURE(not done_, "a task is run once");
    (void)multiplexer_.invoke_posted_items(0);  // makes this thread its owner
    root.inherit_scope(nullptr);
    root.set_home(&multiplexer_);
    root.set_listener(*this);
    // The task may be on another thread while nothing is pending here; it posts to return.
    const io_multiplexer::work_guard more_to_come(multiplexer_);
    const detail::engine::runs_here here(multiplexer_);  // for handles that adopt it
    frame.resume();
    if (multiplexer_.is_for_threads()) return detail::engine::run_until(multiplexer_, done_);
    while (not done_) {
        const auto ran = multiplexer_.run();
        if (not ran) [[unlikely]]
            report_unreturned(unreturned_failure::loop_cannot_run, ran.error().message().c_str());
    }
}

std::coroutine_handle<> sync_waiter::task_finished(task_promise_base&) noexcept {
    ENSURE(multiplexer_.is_for_threads() or multiplexer_.is_owner(), "a task comes home to end");
    if (multiplexer_.is_for_threads()) {
        detail::engine::finish_run(multiplexer_, done_);  // this may be gone when it returns
    } else {
        done_ = true;
    }
    return std::noop_coroutine();
}

}  // namespace sluice::io::detail

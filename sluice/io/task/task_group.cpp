#include "sluice/io/task/task_group.hpp"

namespace sluice::io {

void task_group::spawn(task<void> child) noexcept {
    ENSURE(child.is_valid(), "a task that was moved from has nothing to run");
    if (not multiplexer_.is_for_threads())
        (void)multiplexer_.invoke_posted_items(0);  // ensures that this is the multiplexer's thread
    const auto frame = child.release();
    frame.promise().inherit_scope(&scope_);
    frame.promise().set_home(&multiplexer_);
    frame.promise().set_listener(*this);
    children_.add();
    frame.resume();
}

// Returns whether there are children to wait for.
bool task_group::wait(std::coroutine_handle<> joiner, cancel_scope* outer) noexcept {
    ENSURE(not joiner_, "one task joins a group at a time");
    joiner_ = joiner;
    if (outer != nullptr) scope_.nest_in(*outer);
    if (children_.begin_wait()) return true;
    joiner_ = nullptr;
    return false;
}

std::coroutine_handle<> task_group::task_finished(detail::task_promise_base& finished) noexcept {
    ENSURE(multiplexer_.is_owner(), "a task comes home to end");
    if (finished.thrown() != nullptr) detail::report_thrown(finished.thrown());
    using promise = detail::task_promise<void>;  // spawn() accepts no other type
    std::coroutine_handle<promise>::from_promise(static_cast<promise&>(finished)).destroy();
    if (not children_.end()) return std::noop_coroutine();  // the group may be gone
    return std::exchange(joiner_, nullptr);
}

}  // namespace sluice::io

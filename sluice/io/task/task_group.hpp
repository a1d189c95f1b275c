#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/task/child_count.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::io {

/// Children that run concurrently with the task that spawned them, and are waited for before the
/// group is destroyed: a server's connections. `group.spawn(serve(…)); … co_await group.join();`
///
/// A child owns itself: its frame is freed when it ends. It runs in the group's scope, so that
/// `cancel()` ends the I/O of all. No child may be left when the group is destroyed (ENSURE).
/// Thread safety: the multiplexer's thread, to which a child that ends on another returns; where it
/// is for several threads, any of them: the children run on all. Allocates: nothing besides the
/// children's frames. Complexity: O(1); cancel() as of cancel_scope.
class task_group final : private detail::task_listener {
public:
    explicit task_group(io_multiplexer& multiplexer) noexcept : multiplexer_(multiplexer) {}
    task_group(const task_group&) = delete;
    task_group& operator=(const task_group&) = delete;
    ~task_group() { ENSURE(size() == 0, "join a task group before it is destroyed"); }

    /// Starts a child, which runs up to its first wait before this returns. A child reports its
    /// failures itself, because it has no awaiter. Its exceptions go to the failure handler.
    void spawn(task<void> child) noexcept;

    /// Ends the I/O of all children, and of later ones.
    void cancel() noexcept { scope_.cancel(); }
    [[nodiscard]] cancel_scope& scope() noexcept { return scope_; }

    /// Returns the number of children that have not ended.
    [[nodiscard]] std::size_t size() const noexcept { return children_.size(); }

    /// `co_await group.join()`: waits until there is no child, including those spawned during the
    /// wait. If the task that joins is cancelled, so is the group: its scope is nested in that
    /// task's from here on. One task at a time.
    [[nodiscard]] auto join() noexcept { return join_awaiter{*this}; }

private:
    struct join_awaiter {
        task_group& group;
        [[nodiscard]] bool await_ready() const noexcept { return group.size() == 0; }
        template <class Promise>
        [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> joiner) const noexcept {
            return group.wait(joiner, scope_of(joiner));
        }
        static void await_resume() noexcept {}
    };

    [[nodiscard]] bool wait(std::coroutine_handle<> joiner, cancel_scope* outer) noexcept;
    std::coroutine_handle<> task_finished(detail::task_promise_base& finished) noexcept override;

    io_multiplexer& multiplexer_;
    cancel_scope scope_;
    child_count<> children_;
    std::coroutine_handle<> joiner_;  // written before begin_wait()
};

}  // namespace sluice::io

#pragma once

#include "sluice/io/task/task.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::smb::server {

/// Work of the server that belongs to no connection: time limits, deferred removals, change
/// notifications. It runs on the server's first loop.
/// Loop-owned, by the first loop, except where a member says otherwise. Allocates: the frame of a
/// task; a node from other loops. Lifetime: no other loop calls spawn() once join() has begun.
class background_work {
public:
    explicit background_work(io::io_multiplexer& loop) noexcept : loop_(loop), tasks_(loop) {}

    /// Starts the work soon, from the first loop: after the code that runs there now. Any
    /// thread of the server.
    void spawn(io::task<void> work) noexcept;
    /// Cancels the operations that the work waits for.
    void cancel() noexcept { tasks_.cancel(); }
    /// `co_await background.join()`.
    [[nodiscard]] auto join() noexcept { return tasks_.join(); }

    /// Any thread.
    [[nodiscard]] io::io_multiplexer& loop() const noexcept { return loop_; }

private:
    io::io_multiplexer& loop_;
    io::task_group tasks_;
};

}  // namespace sluice::smb::server

#pragma once

#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/core/latch.hpp"

namespace sluice::smb::server {

/// Work of the server that belongs to no connection: time limits, deferred removals, change
/// notifications. It runs on the server's first loop, while holding the latch, which it releases
/// where it waits.
/// Loop-owned, by the first loop, except where a member says otherwise. Allocates: nothing on that
/// loop, a node from others. Lifetime: no other loop calls spawn() once join() has begun.
class background_work {
public:
    background_work(io::io_multiplexer& loop, server_latch& latch) noexcept
        : loop_(loop), latch_(latch), tasks_(loop) {}

    /// Starts the work: on the first loop at once, unless the caller holds the latch; otherwise
    /// soon. Any thread of the server that holds no mutex.
    void spawn(io::task<void> work) noexcept;
    /// Cancels the operations that the work waits for.
    void cancel() noexcept { tasks_.cancel(); }
    /// `co_await background.join()`, by a caller that does not hold the latch.
    [[nodiscard]] auto join() noexcept { return tasks_.join(); }

    /// Any thread.
    [[nodiscard]] io::io_multiplexer& loop() const noexcept { return loop_; }
    [[nodiscard]] server_latch& latch() const noexcept { return latch_; }

private:
    io::io_multiplexer& loop_;
    server_latch& latch_;
    io::task_group tasks_;
};

}  // namespace sluice::smb::server

#pragma once

#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/core/latch.hpp"

namespace sluice::smb::server {

/// Work of the server that belongs to no connection: time limits, removals that wait, changes to tell. It
/// runs on the server's first loop, with the latch, which it gives back where it waits.
/// Loop-owned, by the first loop, except for what says otherwise. Allocates: nothing on that loop, a node
/// from others. Lifetime: no other loop calls spawn() once join() has begun.
class background_work {
public:
    background_work(io::io_multiplexer& loop, server_latch& latch) noexcept
        : loop_(loop), latch_(latch), tasks_(loop) {}

    /// Starts it: on the first loop at once, unless the caller holds the latch; otherwise soon. Any thread of
    /// the server, which holds no mutex.
    void spawn(io::task<void> work) noexcept;
    /// Ends what it waits for.
    void cancel() noexcept { tasks_.cancel(); }
    /// `co_await background.join()`, without the latch.
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

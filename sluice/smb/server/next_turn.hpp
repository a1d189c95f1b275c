#pragma once

#include <coroutine>

#include "sluice/io/io_multiplexer.hpp"

namespace sluice::smb::server {

/// `co_await next_turn(loop)`: goes on from the loop, once what runs now has ended: for what must be said
/// after the reply under way. Suspends. Thread safety: the loop's thread. Allocates: nothing.
class next_turn final : private io::posted_item {
public:
    explicit next_turn(io::io_multiplexer& loop) noexcept : loop_(loop) {}

    [[nodiscard]] static bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
        waiter_ = waiter;
        loop_.post(*this);
    }
    static void await_resume() noexcept {}

private:
    void invoke() noexcept override { waiter_.resume(); }

    io::io_multiplexer& loop_;
    std::coroutine_handle<> waiter_;
};

}  // namespace sluice::smb::server

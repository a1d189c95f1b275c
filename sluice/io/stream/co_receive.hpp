#pragma once

#include <coroutine>
#include <utility>

#include "sluice/io/stream/receive_stream.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::io {

/// The awaiter of co_receive: waits, in a coroutine, for the next bytes. It lives in the
/// coroutine's frame.
class [[nodiscard]] receive_awaiter final : private detail::receiving, private awaited {
public:
    receive_awaiter(socket_handle& from, receive_pool& pool) noexcept
        : receiving(from, pool), awaited(nullptr) {}

    receive_awaiter(const receive_awaiter&) = delete;
    receive_awaiter& operator=(const receive_awaiter&) = delete;
    /// As in operation_awaiter: destroying the frame while it waits is an error, reported to the
    /// failure handler.
    ~receive_awaiter() {
        if (not started()) [[likely]]
            return;
        report_unreturned(unreturned_failure::waiting_frame_destroyed, "its receive is cancelled");
        forget_waiter();
        abandon();
    }

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        run_in(scope_of(waiter));
        if (is_refused()) [[unlikely]] {
            outcome_ = failure({ECANCELED, "receive"});
            return false;
        }
        wait(waiter, multiplexer());
        start(extent::one_piece);  // gives no signal
        return true;
    }
    [[nodiscard]] result<received_buffer> await_resume() noexcept { return std::move(outcome_); }

private:
    void set_value(result<received_buffer>&& outcome) noexcept override { outcome_ = std::move(outcome); }
    void set_done() noexcept override { resume_waiter(outcome_ ? 0 : outcome_.error().code()); }
    void end() noexcept override { cancel(); }

    result<received_buffer> outcome_;
};

/// The coroutine form of receive_stream: returns the bytes that arrive next, in a buffer of the
/// pool; an empty one at end of file. While no buffer is free it waits for one, and the bytes stay
/// in the kernel. Unlike a stream it receives only on request, so a busy coroutine occupies no
/// buffers except those that it has.
///
/// Errors: ECANCELED, with nothing received; ECONNRESET and similar errors. The socket, attached to
/// the pool's multiplexer, and the pool outlive the await. No other read of the socket in the
/// meantime. Suspends: always. Allocates: nothing. Thread safety: the multiplexer's thread only.
[[nodiscard]] inline receive_awaiter co_receive(socket_handle& from, receive_pool& pool) noexcept {
    return {from, pool};
}

}  // namespace sluice::io

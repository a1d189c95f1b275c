#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/base/held_mutexes.hpp"
#include "sluice/smb/server/core/cross_loop_post.hpp"

namespace sluice::smb::server {

/// Something one coroutine waits for and another part of the server brings about, with a value. The first
/// value counts; later ones are ignored, so that whoever cancels need not know who was faster.
///
/// The waiter goes on from the loop, never inside set(): the state of whoever sets it may be half changed.
/// Lifetime: outlives its waiter; is destroyed with one only after the waiter has gone on (ENSURE).
/// Thread safety: the waiter is of the loop given. Others set it, and it is looked at, under the server's
/// latch, with which it is waited for, too (latch.hpp); or else all of that is the loop's own. Allocates:
/// nothing.
template <class T>
class event final : private io::posted_item {
public:
    explicit event(io::io_multiplexer& loop) noexcept : loop_(loop) {}
    ~event() { ENSURE(not waiter_, "an event goes after who waits for it"); }

    void set(T value) noexcept {
        if (value_) return;
        value_.emplace(std::move(value));
        if (waiter_) hand_over(loop_, *this);
    }
    [[nodiscard]] bool is_set() const noexcept { return value_.has_value(); }
    /// Nothing while it is not set.
    [[nodiscard]] const std::optional<T>& value() const noexcept { return value_; }

    /// `co_await e.wait()`. Suspends: until set. One waiter at a time.
    [[nodiscard]] auto wait() noexcept {
        struct awaiter {
            event& what;
            [[nodiscard]] bool await_ready() const noexcept { return what.is_set(); }
            void await_suspend(std::coroutine_handle<> waiter) const noexcept {
                ENSURE(not what.waiter_, "one waits for an event");
                held_mutexes::ensure_none();
                what.waiter_ = waiter;
            }
            [[nodiscard]] T await_resume() const noexcept { return *what.value_; }
        };
        return awaiter{*this};
    }

    /// Makes it wait again. Nobody may be waiting.
    void reset() noexcept {
        ENSURE(not waiter_);
        value_.reset();
    }

private:
    void invoke() noexcept override { std::exchange(waiter_, nullptr).resume(); }

    io::io_multiplexer& loop_;
    std::optional<T> value_;
    std::coroutine_handle<> waiter_;
};

}  // namespace sluice::smb::server

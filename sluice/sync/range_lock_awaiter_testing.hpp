#pragma once

#include <coroutine>

#include "sluice/sync/range_lock.hpp"

namespace sluice::sync {

/// Awaits a lock without a multiplexer: the coroutine continues inside completed(), on any thread.
/// For tests of completions; tasks use sluice/io/task/range_lock_sender.hpp.
class awaited_lock final : public range_lock::request {
public:
    awaited_lock(range_lock& lock, const lock_args& wanted) noexcept : lock_(lock), wanted_(wanted) {}

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
    [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiter) noexcept {
        waiter_ = waiter;
        return not lock_.lock_async(*this, wanted_);
    }
    [[nodiscard]] range_guard await_resume() noexcept { return take(); }

private:
    void completed(bool) noexcept override { waiter_.resume(); }

    range_lock& lock_;
    lock_args wanted_;
    std::coroutine_handle<> waiter_;
};

}  // namespace sluice::sync

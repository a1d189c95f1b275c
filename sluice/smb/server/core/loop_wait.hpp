#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "sluice/base/held_mutexes.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/smb/server/core/loop_activity.hpp"

namespace sluice::smb::server {

/// The awaiter that `within_work` returns. Loop-owned.
template <class Awaiter>
class [[nodiscard]] within_work_awaiter {
public:
    explicit within_work_awaiter(Awaiter what) noexcept : what_(std::move(what)) {}
    within_work_awaiter(const within_work_awaiter&) = delete;
    within_work_awaiter& operator=(const within_work_awaiter&) = delete;

    [[nodiscard]] bool await_ready() noexcept { return what_.await_ready(); }
    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        held_mutexes::ensure_none();
        has_suspended_ = true;
        work_ = loop_activity::current();
        return what_.await_suspend(waiter);
    }
    [[nodiscard]] decltype(auto) await_resume() noexcept {
        if (has_suspended_) loop_activity::begin(work_);  // the loop has served others since then
        return what_.await_resume();
    }

private:
    Awaiter what_;
    bool has_suspended_ = false;
    std::optional<loop_work> work_;
};

/// `co_await within_work(e.wait())`, `co_await within_work(std::move(reading))`: waits for an
/// event, or runs a task. Afterwards the loop's activity is again the work that it was before. The
/// caller holds no mutex, and resumes on its own loop.
template <class T>
[[nodiscard]] auto within_work(io::task<T>&& work) noexcept {
    using awaiter = decltype(std::move(work).operator co_await());
    return within_work_awaiter<awaiter>(std::move(work).operator co_await());
}
template <class Awaiter>
    requires requires(Awaiter& what) { what.await_ready(); }
[[nodiscard]] auto within_work(Awaiter what) noexcept {
    return within_work_awaiter<Awaiter>(std::move(what));
}

/// Waits until `until`, on the caller's own loop. Returns false if the wait was cancelled.
[[nodiscard]] io::task<bool> pass(io::io_multiplexer& loop, deadline until) noexcept;
/// Resumes from the loop after the code that runs now has ended: for messages that must follow the
/// reply in progress.
[[nodiscard]] io::task<void> next_turn(io::io_multiplexer& loop) noexcept;
/// Resumes in a later turn of the loop, in which it has also served its sockets, files and timers.
/// Complexity: it is resumed with every other item that is posted in the rest of this turn.
[[nodiscard]] io::task<void> later_turn(io::io_multiplexer& loop) noexcept;

}  // namespace sluice::smb::server

#pragma once

#include <cerrno>
#include <optional>
#include <utility>

#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/sync/range_lock.hpp"

// Range locks that a multiplexer waits for: the receiver is signalled, and the task resumed, on the
// multiplexer's thread, independent of the thread that releases the range.

namespace sluice::io {

namespace detail {

template <class Atomics>
class range_wait final : public external_work, private sync::basic_range_request<Atomics> {
public:
    range_wait(sync::basic_range_lock<Atomics>& lock, const sync::lock_args& wanted) noexcept
        : lock_(lock), wanted_(wanted) {}

    [[nodiscard]] sync::basic_range_guard<Atomics> guard() noexcept {
        return tried_ ? std::move(tried_) : this->take();
    }

private:
    [[nodiscard]] std::optional<int> begin(bool may_wait) noexcept override {
        if (may_wait) return lock_.lock_async(*this, wanted_) ? std::optional(0) : std::nullopt;
        tried_ = lock_.try_lock(wanted_);
        return tried_ ? 0 : ETIMEDOUT;
    }
    void end() noexcept override { (void)lock_.cancel(*this); }
    void completed(bool is_granted) noexcept override { complete(is_granted ? 0 : ECANCELED); }

    sync::basic_range_lock<Atomics>& lock_;
    sync::lock_args wanted_;
    sync::basic_range_guard<Atomics> tried_;  // the outcome of a request that may not wait
};

}  // namespace detail

/// The sender of a range lock, created by async_lock() and co_lock(). A value; refers to the lock,
/// which outlives the operation.
template <class Atomics>
class range_lock_sender {
public:
    using result_type = result<sync::basic_range_guard<Atomics>>;

    range_lock_sender(io_multiplexer& multiplexer, sync::basic_range_lock<Atomics>& lock,
                      const sync::lock_args& wanted, deadline within) noexcept
        : multiplexer_(&multiplexer), lock_(&lock), wanted_(wanted), within_(within) {}

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }
    void configure(operation& configured) noexcept {
        configure_external(configured, *multiplexer_, waiting_.emplace(*lock_, wanted_), within_);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        if (const int code = code_of(completed); code != 0) return failure({code, "lock a range"});
        return (*waiting_).guard();
    }

private:
    io_multiplexer* multiplexer_;
    sync::basic_range_lock<Atomics>* lock_;
    sync::lock_args wanted_;
    deadline within_;
    work_room<detail::range_wait<Atomics>> waiting_;
};

/// Returns a sender of the lock: result<guard>. Errors: ETIMEDOUT after the deadline (zero: at
/// once); ECANCELED, also if cancel_all() of the lock ended the wait. A release on another thread
/// completes it by waking the multiplexer. Complexity: as sync::basic_range_lock::lock_async.
/// Allocates: as lock_async, and nothing else. Thread safety: the multiplexer's thread; any, by
/// atomic().
template <class Atomics>
[[nodiscard]] auto async_lock(io_multiplexer& multiplexer, sync::basic_range_lock<Atomics>& lock,
                              const sync::lock_args& wanted, deadline within = {}) noexcept {
    return range_lock_sender<Atomics>(multiplexer, lock, wanted, within);
}

/// `co_await co_lock(multiplexer, lock, {.where = range}, 10s)` returns the guard. The task
/// resumes on the multiplexer's thread. Suspends: unless it is granted at once. Errors,
/// Allocates: as async_lock.
template <class Atomics>
[[nodiscard]] auto co_lock(io_multiplexer& multiplexer, sync::basic_range_lock<Atomics>& lock,
                           const sync::lock_args& wanted, deadline within = {}) noexcept {
    return async_lock(multiplexer, lock, wanted, within);
}

}  // namespace sluice::io

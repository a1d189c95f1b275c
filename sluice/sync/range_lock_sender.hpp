#pragma once

#include <optional>
#include <utility>

#include "sluice/base/execution_traits.hpp"
#include "sluice/sync/range_lock.hpp"

// Range locks as senders of std::execution (P2300), of stdexec, or of any library with the same
// interface; for the traits see sluice/base/execution_traits.hpp.
//
//     SLUICE_EXECUTION_TRAITS(my_execution, stdexec, stdexec, _t);
//
//     const sync::byte_range where = *sync::byte_range::of({0, 512});
//     stdexec::sender auto work = sync::async_lock<my_execution>(lock, {.where = where})
//                               | stdexec::then([](sync::range_guard held) { … });

namespace sluice::sync {

namespace detail {

/// The operation state of async_lock(): the request, and the guard until it is handed on.
///
/// Invariants:
///   1. the second of start() and completed() to arrive at `has_one_arrived_` completes: a lock
///      granted on another thread, while start() is still about to register for stop requests, must
///      not end the state;
///   2. a canceller runs only before the completion: finish() waits for one on another thread. It
///      may find the wait over, and then does nothing.
template <class Execution, class Atomics, class Receiver>
class lock_operation final : private basic_range_request<Atomics> {
public:
    using operation_state_concept = typename Execution::operation_state_concept;

    lock_operation(basic_range_lock<Atomics>& lock, const lock_args& wanted, Receiver to) noexcept
        : lock_(lock), wanted_(wanted), receiver_(std::move(to)) {}
    lock_operation(lock_operation&&) = delete;

    void start() & noexcept {
        if (stop_token_of<Execution>(receiver_).stop_requested()) return complete_at_once(false);
        if (lock_.lock_async(*this, wanted_)) return complete_at_once(true);
        callback_.emplace(stop_token_of<Execution>(receiver_), canceller{this});
        if (is_second()) finish();
    }

private:
    struct canceller {
        lock_operation* self;
        void operator()() const noexcept { (void)self->lock_.cancel(*self); }  // may end `self`
    };

    // No other thread knows of the request, and no stop callback is registered.
    void complete_at_once(bool is_granted) noexcept {
        is_at_once_ = true;
        this->complete(is_granted);
    }
    void completed(bool is_granted) noexcept override {
        is_granted_ = is_granted;
        if (is_at_once_ or is_second()) finish();
    }
    // acquire and release: the second sees the writes of the first.
    [[nodiscard]] bool is_second() noexcept {
        return has_one_arrived_.exchange(1, std::memory_order_acq_rel) != 0;
    }
    void finish() noexcept {
        callback_.reset();
        // Locals, because completing destroys this.
        auto to = std::move(receiver_);
        if (not is_granted_) return typename Execution::set_stopped{}(std::move(to));
        basic_range_guard<Atomics> held = this->take();
        typename Execution::set_value{}(std::move(to), std::move(held));
    }

    basic_range_lock<Atomics>& lock_;
    lock_args wanted_;
    Receiver receiver_;
    std::optional<stop_callback_of<Execution, Receiver, canceller>> callback_;
    typename Atomics::template atomic<std::uint32_t> has_one_arrived_{0};
    bool is_granted_ = false;
    bool is_at_once_ = false;
};

}  // namespace detail

/// The sender that async_lock() returns. A value; refers to the lock, which outlives the
/// operations.
template <class Execution, class Atomics>
class lock_sender {
public:
    using sender_concept = typename Execution::sender_concept;
    using completion_signatures = typename Execution::template completion_signatures<
        typename Execution::set_value(basic_range_guard<Atomics>), typename Execution::set_stopped()>;

    lock_sender(basic_range_lock<Atomics>& lock, const lock_args& wanted) noexcept
        : lock_(&lock), wanted_(wanted) {}

    template <class Receiver>
    [[nodiscard]] auto connect(Receiver to) const noexcept {
        return detail::lock_operation<Execution, Atomics, Receiver>(*lock_, wanted_, std::move(to));
    }

private:
    basic_range_lock<Atomics>* lock_;
    lock_args wanted_;
};

/// Returns a sender of the lock: set_value(guard) when it is granted; set_stopped() if a stop was
/// requested before, or cancel_all() ended the wait. A stop request that comes too late has no
/// effect: the guard is sent.
///
/// Completes once: inside start() if nothing conflicts, and otherwise on the thread that released
/// the range or requested the stop. Completions that start each other nest up to a bound
/// (completions.hpp), so one that start() would cause may come after start() has returned, on the
/// same thread. Suspends: until then. The operation may be started, and stops requested, on any
/// thread. Allocates: nothing of its own.
template <class Execution, class Atomics>
[[nodiscard]] auto async_lock(basic_range_lock<Atomics>& lock, const lock_args& wanted) noexcept {
    return lock_sender<Execution, Atomics>(lock, wanted);
}

}  // namespace sluice::sync

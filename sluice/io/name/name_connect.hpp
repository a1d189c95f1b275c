#pragma once

#include <concepts>
#include <coroutine>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/io/name/name_resolver.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::io {

/// Looks up a host and connects to the first of its addresses that accepts, in the order of the
/// lookup.
///
/// The deadline covers the lookup and all attempts. An attempt ends after an equal share of the
/// remaining time, so that an address that does not answer leaves time for the others. Without a
/// deadline, each attempt ends when the network reports a timeout. Errors: those of
/// name_resolver::resolve; if no address accepts, that of the last attempt, which names its
/// address; ETIMEDOUT. Allocates: the lookup. Blocks: until the deadline.
[[nodiscard]] result<socket_handle> connect_by_name(name_resolver& resolver, const host_and_port& to,
                                                    const socket_options& options = {},
                                                    deadline within = {}) noexcept;

/// The same in a task. The socket is attached to `multiplexer`. If the scope of the task is
/// cancelled, the lookup or the attempt in progress ends, and no other begins: ECANCELED.
/// `resolver` outlives the task. Allocates: the frame, and the lookup. Suspends.
[[nodiscard]] task<result<socket_handle>> co_connect_by_name(io_multiplexer& multiplexer,
                                                             name_resolver& resolver, host_and_port to,
                                                             socket_options options = {},
                                                             deadline within = {}) noexcept;

/// The description of a connect by name; created by async_connect_by_name.
struct name_connect_sender {
    using result_type = result<socket_handle>;

    io_multiplexer& multiplexer;
    name_resolver& resolver;
    host_and_port to;
    socket_options options;
    deadline within;
};

/// The state of one connect by name, and the receiver of its outcome:
/// set_value(result<socket_handle>&&), then set_done(). It consists of several operations, one
/// after the other, so it is a separate state: it can be started, cancelled, and, once done,
/// started again, but not polled. Thread safety: the multiplexer's thread only; where it is for
/// several threads, any of them, while the state exists. Allocates: as co_connect_by_name, in
/// start().
template <class Receiver>
class name_connect_connection final : private detail::task_listener {
public:
    using result_type = result<socket_handle>;

    name_connect_connection(name_connect_sender&& from, Receiver&& to) noexcept
        : from_(std::move(from)), receiver_(std::move(to)) {}
    name_connect_connection(const name_connect_connection&) = delete;
    name_connect_connection& operator=(const name_connect_connection&) = delete;
    ~name_connect_connection() { ENSURE(not started(), "destroyed before the done signal"); }

    /// Begins. The signals may come before it returns.
    void start() noexcept {
        const auto frame = begin();
        frame.promise().set_listener(*this);
        frame.resume();
    }
    /// Ends the operation early: it completes, now or soon, with ECANCELED unless it was faster.
    void cancel() noexcept {
        // Without the lock: cancelling calls external_work::end() under the lock of all scopes, and
        // that may cancel this.
        if (const std::shared_ptr<cancel_scope> scope = scope_of_work()) scope->cancel();
    }
    [[nodiscard]] bool started() const noexcept {
        const std::scoped_lock guard(lock_);
        return work_.has_value();
    }

private:
    [[nodiscard]] std::shared_ptr<cancel_scope> scope_of_work() const noexcept {
        const std::scoped_lock guard(lock_);
        return scope_;
    }
    [[nodiscard]] auto begin() noexcept {
        const std::scoped_lock guard(lock_);
        ENSURE(not work_, "started while pending");
        scope_ = std::make_shared<cancel_scope>();
        work_.emplace(in_scope(*scope_, co_connect_by_name(from_.multiplexer, from_.resolver, from_.to,
                                                           from_.options, from_.within)));
        return work_->frame();
    }
    std::coroutine_handle<> task_finished(detail::task_promise_base&) noexcept override {
        result_type outcome = finish();
        receiver_.set_value(std::move(outcome));
        receiver_.set_done();  // this may be gone, or started again
        return std::noop_coroutine();
    }
    [[nodiscard]] result_type finish() noexcept {
        std::shared_ptr<cancel_scope>
            ended;  // destroyed after the lock is released, since it takes the scopes' lock
        const std::scoped_lock guard(lock_);
        result_type outcome = work_->take_result();
        work_.reset();
        ended = std::move(scope_);
        return outcome;
    }

    name_connect_sender from_;
    Receiver receiver_;
    // Guards the following members. No other lock is taken under it.
    mutable std::mutex lock_;
    std::shared_ptr<cancel_scope> scope_;  // also for a cancel() that comes when the work has ended
    std::optional<task<result_type>> work_;
};

/// The sender of connect_by_name. Errors: as there, and ECANCELED.
[[nodiscard]] inline name_connect_sender async_connect_by_name(io_multiplexer& multiplexer,
                                                               name_resolver& resolver, host_and_port to,
                                                               socket_options options = {},
                                                               deadline within = {}) noexcept {
    return {multiplexer, resolver, std::move(to), options, within};
}

template <receiver_of<name_connect_sender> Receiver>
[[nodiscard]] name_connect_connection<Receiver> connect(name_connect_sender from, Receiver to) noexcept {
    return {std::move(from), std::move(to)};
}

}  // namespace sluice::io

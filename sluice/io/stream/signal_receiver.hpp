#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/io/call/ready_call.hpp"
#include "sluice/io/call/signal_set.hpp"
#include "sluice/io/handle/io_handle.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::io {

/// A signal that has arrived. If several with one number arrive before they are
/// received, this is the newest.
struct signal_event {
    int number = 0;
    int code = 0;                   ///< si_code: SI_USER and so on
    std::int32_t process = 0;       ///< the sender, or the child
    std::uint32_t user = 0;         ///< the sender's
    std::int32_t value = 0;         ///< the exit status of a child (SIGCHLD), or
                                    ///< the value of sigqueue
    std::uint64_t occurrences = 1;  ///< arrivals that this event represents
};

namespace detail {
class signal_hub;
class signal_inbox;
}  // namespace detail

/// Signals of this process as completions, over signalfd(2). Any number of receivers, on any
/// multiplexers: each gets every signal of its set that arrives while it exists.
///
/// The signals must be blocked in every thread of the process, or the kernel may deliver them to a
/// thread that does not block them, with their default effect. create() checks the calling thread;
/// existing threads have to block them themselves. So create a `blocked_signals` first in main,
/// then the source, then threads. Two sources for one signal compete for it: create one and share
/// it. Signals sent to one thread (raise, pthread_kill) are received only if that thread waits.
/// After fork(), the child creates its own source, or calls renew_in_child() of the receivers it
/// keeps.
///
/// Thread safety: any thread. Allocates: create().
class signal_source {
public:
    /// Errors name the signal: EINVAL for one that cannot be received (SIGKILL, SIGSTOP, those of
    /// faults such as SIGSEGV, those the C library uses), and for one that the calling thread does
    /// not block; EINVAL for an empty or invalid set; EMFILE, ENFILE, ENOMEM.
    [[nodiscard]] static result<signal_source> create(signal_set which) noexcept;

    /// Returns the signals that this receives, and that every thread has to block.
    [[nodiscard]] signal_set signals() const noexcept;

private:
    friend class signal_receiver;
    explicit signal_source(std::shared_ptr<detail::signal_hub> hub) noexcept;
    std::shared_ptr<detail::signal_hub> hub_;
};

/// The receiver that an operation waits for, and the outcome. Internal to io.
class signal_request final : public ready_call {
public:
    explicit signal_request(detail::signal_inbox& from) noexcept : from_(&from) {}

    /// Takes a signal if one has arrived.
    [[nodiscard]] std::optional<int> attempt(const native_handle& on) noexcept override;
    [[nodiscard]] const signal_event& event() const noexcept { return event_; }

private:
    detail::signal_inbox* from_;
    signal_event event_;
};

/// Receives signals of a source. Signals that arrive while no operation waits are kept until the
/// next one: one event for each number, so memory is bounded. The lowest number comes first.
///
/// Thread safety: one thread at a time, like a handle. Every multiplexer supports it.
class signal_receiver {
public:
    /// `which` is part of the source's set. Errors: EINVAL if it is not; EMFILE, ENFILE,
    /// ENOMEM. Allocates: yes.
    [[nodiscard]] static result<signal_receiver> create(const signal_source& from, signal_set which) noexcept;
    [[nodiscard]] static result<signal_receiver> create(const signal_source& from) noexcept {
        return create(from, from.signals());
    }
    signal_receiver(signal_receiver&&) noexcept;
    signal_receiver& operator=(signal_receiver&&) = delete;
    ~signal_receiver();

    /// Waits for the next signal. Errors: ETIMEDOUT. Allocates: nothing.
    /// Blocks: until the deadline.
    [[nodiscard]] result<signal_event> wait(deadline within = {}) noexcept;

    /// In a child after fork(2), before its multiplexer's notify_fork(): replaces the descriptors
    /// under their numbers, so that the child's signals wake it and the parent's do not. Errors:
    /// EMFILE, ENFILE, ENOMEM.
    [[nodiscard]] result<void> renew_in_child() noexcept;

    /// As io_handle::set_multiplexer, for the asynchronous forms.
    [[nodiscard]] result<void> set_multiplexer(io_multiplexer* multiplexer) noexcept {
        return handle_.set_multiplexer(multiplexer);
    }
    [[nodiscard]] result<void> set_multiplexer() noexcept { return handle_.set_multiplexer(); }
    [[nodiscard]] io_multiplexer* multiplexer() const noexcept { return handle_.multiplexer(); }

private:
    friend class signal_sender;
    signal_receiver(std::unique_ptr<detail::signal_inbox> inbox, native_handle ready) noexcept;

    std::unique_ptr<detail::signal_inbox> inbox_;
    io_handle handle_;  // an epoll descriptor: readable when there may be a signal
};

/// The sender of async_wait_signal: waits for a signal.
class signal_sender : public detail::handle_sender {
public:
    using result_type = result<signal_event>;

    signal_sender(signal_receiver& from, deadline within) noexcept
        : handle_sender(from.handle_, within), request_(*from.inbox_) {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, operation_kind::call_in);
        op.argument = static_cast<ready_call*>(&request_);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure({op.error_code, "wait for a signal"});
        return request_.event();
    }

private:
    signal_request request_;
};

/// Returns the sender of signal_receiver::wait. Errors: ETIMEDOUT, ECANCELED; neither loses a
/// signal. The receiver must outlive the operation.
[[nodiscard]] inline auto async_wait_signal(signal_receiver& from, deadline within = {}) noexcept {
    return signal_sender(from, within);
}

/// The awaitable form. Suspends: unless a signal has arrived.
[[nodiscard]] inline auto co_wait_signal(signal_receiver& from, deadline within = {}) noexcept {
    return async_wait_signal(from, within);
}

}  // namespace sluice::io

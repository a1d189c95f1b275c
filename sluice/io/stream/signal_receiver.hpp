#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <thread>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/io/handle/io_handle.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::io {

/// A set of signal numbers (SIGINT and so on), 1 to 64. Thread safety: a value.
class signal_set {
public:
    constexpr signal_set() noexcept = default;
    /// Numbers outside of 1 to 64 make the set invalid.
    constexpr signal_set(std::initializer_list<int> numbers) noexcept {
        for (const int number : numbers)
            insert(number);
    }
    constexpr void insert(int number) noexcept {
        const bool exists = number >= 1 and number <= 64;
        if (exists) bits_ |= std::uint64_t{1} << (number - 1);
        is_valid_ = is_valid_ and exists;
    }
    [[nodiscard]] constexpr bool contains(int number) const noexcept {
        return number >= 1 and number <= 64 and (bits_ >> (number - 1) & 1) != 0;
    }
    [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
    [[nodiscard]] constexpr bool is_valid() const noexcept { return is_valid_; }
    /// Bit n - 1 stands for signal n.
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] static constexpr signal_set from_bits(std::uint64_t bits) noexcept {
        signal_set made;
        made.bits_ = bits;
        return made;
    }
    [[nodiscard]] friend constexpr bool operator==(signal_set, signal_set) noexcept = default;

private:
    std::uint64_t bits_ = 0;
    bool is_valid_ = true;
};

/// The signals that a signal_source can receive: all but SIGKILL, SIGSTOP, those of faults and those that the
/// C library uses. A thread of the library is started with them blocked, so that it takes none from a program
/// that receives them.
[[nodiscard]] signal_set receivable_signals() noexcept;

/// Blocks signals for the calling thread, and for the threads it starts from then on, which inherit its mask.
/// The destructor unblocks those that were not blocked before. Thread safety: destroyed by the thread that
/// made it (ENSURE). Allocates: nothing.
class blocked_signals {
public:
    explicit blocked_signals(signal_set which) noexcept;
    blocked_signals(const blocked_signals&) = delete;
    blocked_signals& operator=(const blocked_signals&) = delete;
    ~blocked_signals();

    /// The signals that this has blocked: those of the set that were not blocked before.
    [[nodiscard]] signal_set newly_blocked() const noexcept { return newly_; }

private:
    signal_set newly_;
    std::thread::id thread_;
};

/// A signal that has arrived. If several with one number arrive before they are received, this is the newest.
struct signal_event {
    int number = 0;
    int code = 0;                   ///< si_code: SI_USER and so on
    std::int32_t process = 0;       ///< the sender, or the child
    std::uint32_t user = 0;         ///< the sender's
    std::int32_t value = 0;         ///< the exit status of a child (SIGCHLD), or the value of sigqueue
    std::uint64_t occurrences = 1;  ///< arrivals that this event stands for
};

namespace detail {
class signal_hub;
class signal_inbox;
}  // namespace detail

/// Signals of this process as completions, over signalfd(2). Any number of receivers, on any multiplexers:
/// each gets every signal of its set that arrives while it exists.
///
/// The signals must be blocked in every thread of the process, or the kernel may deliver them to a thread
/// that does not block them, with their default effect. create() checks the calling thread; threads that
/// exist already have to block them themselves. So: make a `blocked_signals` first thing in main, then the
/// source, then threads. Two sources for one signal compete for it: make one and share it. Signals sent to
/// one thread (raise, pthread_kill) are received only if that thread waits. After fork(), the child makes a
/// source of its own, or calls renew_in_child() of the receivers it keeps.
///
/// Thread safety: any thread. Allocates: create().
class signal_source {
public:
    /// Errors name the signal: EINVAL for one that cannot be received (SIGKILL, SIGSTOP, those of faults such
    /// as SIGSEGV, those the C library uses), and for one that the calling thread does not block; EINVAL for
    /// an empty or invalid set; EMFILE, ENFILE, ENOMEM.
    [[nodiscard]] static result<signal_source> create(signal_set which) noexcept;

    /// The signals that this receives, and that every thread has to block.
    [[nodiscard]] signal_set signals() const noexcept;

private:
    friend class signal_receiver;
    explicit signal_source(std::shared_ptr<detail::signal_hub> hub) noexcept;
    std::shared_ptr<detail::signal_hub> hub_;
};

/// The receiver that an operation waits for, and the outcome. Internal to io.
struct signal_request {
    detail::signal_inbox* from = nullptr;
    signal_event event;
};
/// Takes a signal if one has arrived. Returns whether the operation is finished.
[[nodiscard]] bool attempt_signal(detail::operation_record& op) noexcept;

/// Receives signals of a source. Signals that arrive while no operation waits are kept until the next one:
/// one event for each number, so memory is bounded. The lowest
/// number comes first.
///
/// Thread safety: one thread at a time, like a handle. Every multiplexer supports it.
class signal_receiver {
public:
    /// `which` is part of the source's set. Errors: EINVAL if it is not; EMFILE, ENFILE, ENOMEM. Allocates:
    /// yes.
    [[nodiscard]] static result<signal_receiver> create(const signal_source& from, signal_set which) noexcept;
    [[nodiscard]] static result<signal_receiver> create(const signal_source& from) noexcept {
        return create(from, from.signals());
    }
    signal_receiver(signal_receiver&&) noexcept;
    signal_receiver& operator=(signal_receiver&&) = delete;
    ~signal_receiver();

    /// Waits for the next signal. Errors: ETIMEDOUT. Allocates: nothing. Blocks: until the deadline.
    [[nodiscard]] result<signal_event> wait(deadline within = {}) noexcept;

    /// In a child after fork(2), before its multiplexer's notify_fork(): replaces the descriptors under their
    /// numbers, so that the child's signals wake it and the parent's do not. Errors: EMFILE, ENFILE, ENOMEM.
    [[nodiscard]] result<void> renew_in_child() noexcept;

    /// As io_handle::set_multiplexer, for the asynchronous spellings.
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

/// Waits for a signal; made by async_wait_signal.
class signal_sender : public detail::handle_sender {
public:
    using result_type = result<signal_event>;

    signal_sender(signal_receiver& from, deadline within) noexcept
        : handle_sender(from.handle_, within), request_{.from = from.inbox_.get(), .event = {}} {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, operation_kind::wait_signal);
        op.argument = &request_;
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure({op.error_code, "wait for a signal"});
        return request_.event;
    }

private:
    signal_request request_;
};

/// The sender of signal_receiver::wait. Errors: ETIMEDOUT, ECANCELED; neither loses a signal. The receiver
/// must outlive the operation.
[[nodiscard]] inline auto async_wait_signal(signal_receiver& from, deadline within = {}) noexcept {
    return signal_sender(from, within);
}

/// The same, to be awaited. Suspends: unless a signal has arrived.
[[nodiscard]] inline auto co_wait_signal(signal_receiver& from, deadline within = {}) noexcept {
    return async_wait_signal(from, within);
}

}  // namespace sluice::io

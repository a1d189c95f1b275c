#pragma once

#include <concepts>
#include <utility>

#include "sluice/io/socket_sender.hpp"

namespace sluice::io {

/// What gets the connections of an accept_stream: set_value many times, then set_done once.
template <class R>
concept accept_receiver = std::move_constructible<R> and requires(R& r, result<accepted>&& outcome) {
    { r.set_value(std::move(outcome)) } noexcept;
    { r.set_done() } noexcept;
};

namespace detail {

// One accept after the other on one operation state.
//
// Not the ring's multishot ACCEPT, although the kernel (6.18) takes it on an O_NONBLOCK listener: it cannot
// say who has connected (one address for all, overwritten by the next), so each connection costs a
// getpeername in the place of an accept4; and connections that arrive while a receiver runs would need a
// place that only an allocation, or a limit, can give. bench/io_accept: in bursts of 16 and 256 it costs 0.95
// and 1.10 of an accept4 loop where this stream costs 0.99 and 0.96; only for connections that come one by
// one it is cheaper (1.00 to 1.19 of 47 us, which are the wake-ups of two threads). The poll is armed once
// for each burst, in the call that waits.
class accepting {
public:
    accepting(const accepting&) = delete;
    accepting& operator=(const accepting&) = delete;

    void start() noexcept;
    void cancel() noexcept;
    [[nodiscard]] bool started() const noexcept { return started_; }

protected:
    explicit accepting(listening_socket_handle& from) noexcept;
    accepting(accepting&& other) noexcept;
    ~accepting();

private:
    struct next_connection {
        accepting* stream;
        void set_value(result<accepted>&& outcome) noexcept { stream->take(std::move(outcome)); }
        void set_done() noexcept { stream->go_on(); }
    };

    void take(result<accepted>&& outcome) noexcept;
    void go_on() noexcept;
    virtual void signal_value(result<accepted>&& outcome) noexcept = 0;
    virtual void signal_done() noexcept = 0;

    io_operation_connection<accept_sender, next_connection> operation_;
    bool started_ = false;
    bool cancelled_ = false;
    bool failed_ = false;
};

}  // namespace detail

/// Takes every connection a listener gets, until it is cancelled or fails: an operation with many values.
///
/// Signals: set_value for each connection, in the order they came; at last set_value with the error that ends
/// it (ECANCELED after cancel(); EMFILE, ENFILE, ENOBUFS, ENOMEM, with the connection left in the queue: see
/// listening_socket_handle), then set_done. After set_done it may be started again or destroyed, from inside
/// that signal too.
///
/// Lifetime: before start() it may be moved; from start() to set_done neither moved nor destroyed, and the
/// listener, attached to a multiplexer, stays. Thread safety: the multiplexer's thread only. Allocates:
/// nothing.
template <class Receiver>
class accept_stream final : private detail::accepting {
public:
    accept_stream(listening_socket_handle& from, Receiver to) noexcept
        : accepting(from), receiver_(std::move(to)) {
        static_assert(accept_receiver<Receiver>);
    }
    accept_stream(accept_stream&& other) noexcept = default;

    /// Begins. The first signals may come before start returns.
    using accepting::start;

    /// Ends it, now or soon. A connection that was faster is still given.
    using accepting::cancel;

    /// Whether start() has been called and done has not been signalled.
    using accepting::started;

    [[nodiscard]] Receiver& get_receiver() noexcept { return receiver_; }

private:
    void signal_value(result<accepted>&& outcome) noexcept override {
        receiver_.set_value(std::move(outcome));
    }
    void signal_done() noexcept override { receiver_.set_done(); }

    Receiver receiver_;
};

}  // namespace sluice::io

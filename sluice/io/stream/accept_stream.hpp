#pragma once

#include <concepts>
#include <utility>

#include "sluice/io/call/socket_call.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/stream/listening_socket_handle.hpp"

namespace sluice::io {

/// A receiver of the connections of an accept_stream: set_value many times, then set_done once.
template <class R>
concept accept_receiver = std::move_constructible<R> and requires(R& r, result<accepted>&& outcome) {
    { r.set_value(std::move(outcome)) } noexcept;
    { r.set_done() } noexcept;
};

namespace detail {

// One operation state, used repeatedly: to take the next connection that the back end has accepted
// by itself, where it supports that, and else to accept the next one.
//
// Invariant: while `is_ahead_` and `started_`, the back end may have connections for this. They are
// delivered before the error that ends it, so none is lost or left open.
class accepting : private detail::operation_record {
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
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *handle_->multiplexer; }
    [[nodiscard]] accepted connection() const noexcept;
    void begin() noexcept;
    void deliver(result<accepted>&& outcome) noexcept;

    void signal_value() noexcept final;
    void signal_done() noexcept final;
    virtual void set_value(result<accepted>&& outcome) noexcept = 0;
    virtual void set_done() noexcept = 0;

    registration* handle_;
    accept_request request_;
    bool is_ahead_ = false;  // the back end accepts by itself
    bool started_ = false;
    bool cancelled_ = false;
    bool ending_ = false;  // the last value has been given
};

}  // namespace detail

/// Accepts every connection of a listener until it is cancelled or fails: an operation with many
/// values.
///
/// Signals: set_value for each connection, in the order of arrival. At the end set_value with the
/// error that ends it, then set_done. The error is ECANCELED after cancel(), or EMFILE, ENFILE,
/// ENOBUFS or ENOMEM, with the connection left in the queue: see listening_socket_handle. After
/// set_done it may be started again or destroyed, also from inside that signal. `accepted::peer` is
/// empty (address_family::unspecified) for a connection that was closed before its peer address
/// could be read.
///
/// Over io_uring the kernel accepts by itself while connections come one by one (multishot), and
/// calls accept them one after the other when they come in bursts. A cancelled stream first
/// delivers the connections that the kernel had accepted by then, and leaves the others in the
/// listener's queue. If a listener has several streams, only the one started first does so. The
/// kernel takes a change of RLIMIT_NOFILE into account only when a new request is submitted.
///
/// Lifetime: before start() it may be moved; from start() to set_done neither moved nor destroyed,
/// and the listener, attached to a multiplexer, stays. Thread safety: the multiplexer's thread
/// only. Allocates: nothing.
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

    /// Ends it, now or soon. Connections that were faster are still delivered.
    using accepting::cancel;

    /// Returns whether start() has been called and done has not been signalled.
    using accepting::started;

    [[nodiscard]] Receiver& get_receiver() noexcept { return receiver_; }

private:
    void set_value(result<accepted>&& outcome) noexcept override { receiver_.set_value(std::move(outcome)); }
    void set_done() noexcept override { receiver_.set_done(); }

    Receiver receiver_;
};

}  // namespace sluice::io

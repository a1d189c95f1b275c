#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/stream/receive_pool.hpp"
#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

/// A receiver of the bytes of a receive_stream: set_value many times, then set_done once.
template <class R>
concept receive_receiver = std::move_constructible<R> and requires(R& r, result<received_buffer>&& outcome) {
    { r.set_value(std::move(outcome)) } noexcept;
    { r.set_done() } noexcept;
};

namespace detail {

// One operation state, used repeatedly. Where the kernel provides the buffers, each use takes the
// bytes that arrived next. Elsewhere each use waits until the socket is readable, takes a free
// buffer, and reads. Only a stream with bytes to read takes a buffer, because idle streams would
// keep them from the others.
//
// Invariants:
//   1. From start() to done the multiplexer counts one more operation on the handle, so that it
//      stays attached while the stream is between two uses, or waits for a buffer.
//   2. While `is_paused_` the operation is idle and this is in the list of its pool.
//   3. Only a stream that has bytes (or the end of file) to read waits for a buffer, so a stream
//      that is woken uses it.
class receiving : private detail::operation_record, private detail::buffer_waiter {
public:
    /// All bytes until the end, or only the next ones.
    enum class extent : bool { all, one_piece };

    receiving(const receiving&) = delete;
    receiving& operator=(const receiving&) = delete;

    void start(extent wanted = extent::all) noexcept;
    void cancel() noexcept;
    [[nodiscard]] bool started() const noexcept { return started_; }

protected:
    receiving(socket_handle& from, receive_pool& pool) noexcept;
    receiving(receiving&& other) noexcept;
    ~receiving();
    /// Ends it without signals, before its destruction. Received bytes that were
    /// not delivered are lost.
    /// Blocks: until the kernel has released its buffers.
    void abandon() noexcept;
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return slots_->multiplexer(); }

private:
    void resume(std::uint32_t index) noexcept final;
    void begin(operation_kind kind) noexcept;
    void begin_read(initiation how) noexcept;
    void begin_end() noexcept;
    void go_on() noexcept;
    void pause() noexcept;
    void deliver(result<received_buffer>&& outcome) noexcept;
    void take_bytes() noexcept;
    void drop_bytes() noexcept;
    void leave() noexcept;
    [[nodiscard]] bool is_provided() const noexcept { return slots_->group().has_value(); }

    void signal_value() noexcept final;
    void signal_done() noexcept final;
    virtual void set_value(result<received_buffer>&& outcome) noexcept = 0;
    virtual void set_done() noexcept = 0;

    receive_slots* slots_;
    registration* handle_;
    std::optional<error> refusal_;  // why the socket could not be attached: ends every start()
    receive_request request_;
    buffer piece_;
    std::uint32_t index_ = receive_slots::none;  // the buffer of the current read
    bool started_ = false;
    bool is_single_ = false;  // the first value is the last
    bool cancelled_ = false;
    bool ending_ = false;  // the last value has been given
    bool is_paused_ = false;
};

}  // namespace detail

/// Receives all bytes of a stream socket: an operation with many values.
///
/// Signals: set_value for each segment, in order. At the end set_value with an empty buffer at end
/// of file, or with the error that ends it; then set_done. The error is ECANCELED after cancel(),
/// ECONNRESET or similar, or that of attaching a socket without a multiplexer to the pool's. After
/// set_done it may be started again or destroyed, also from inside that signal. While no buffer of
/// the pool is free it pauses: the bytes stay in the kernel, and it resumes when a buffer is
/// returned. Bytes received before a cancellation are still delivered, so the next reader of the
/// socket misses nothing.
///
/// A paused stream counts as pending: run() waits, for a buffer to be returned by a posted item.
///
/// Lifetime: before start() it may be moved; from start() to set_done neither moved nor destroyed.
/// The socket, attached to the pool's multiplexer, and the pool outlive that. No other read of the
/// socket in the meantime. Thread safety: the multiplexer's thread only. Allocates: nothing.
template <class Receiver>
class receive_stream final : private detail::receiving {
public:
    receive_stream(socket_handle& from, receive_pool& pool, Receiver to) noexcept
        : receiving(from, pool), receiver_(std::move(to)) {
        static_assert(receive_receiver<Receiver>);
    }
    receive_stream(receive_stream&& other) noexcept = default;
    /// Destroying it before done is an error, reported to the failure handler.
    ~receive_stream() {
        if (not started()) [[likely]]
            return;
        report_unreturned(unreturned_failure::pending_state_destroyed, "its stream is cancelled");
        abandon();
    }

    /// Begins. No signal comes before the loop runs.
    void start() noexcept { receiving::start(); }

    /// Ends it soon: this call gives no signal.
    using receiving::cancel;

    /// Returns whether start() has been called and done has not been signalled.
    using receiving::started;

    [[nodiscard]] Receiver& get_receiver() noexcept { return receiver_; }

private:
    void set_value(result<received_buffer>&& outcome) noexcept override {
        receiver_.set_value(std::move(outcome));
    }
    void set_done() noexcept override { receiver_.set_done(); }

    Receiver receiver_;
};

}  // namespace sluice::io

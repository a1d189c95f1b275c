#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <utility>

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/socket_address.hpp"
#include "sluice/io/handle/io_handle.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/loop/refused_handles.hpp"

namespace sluice::io {

/// The description of an asynchronous operation: a sender of P2052. Lazy: no I/O happens before
/// connect and start; creating one attaches a handle without a multiplexer. A value; it refers to
/// its handle, which must outlive the operation.
template <class S>
concept sender = std::move_constructible<S> and requires(S& s, detail::operation_record& op) {
    typename S::result_type;
    // Sets the request; called by start(), when `s` has its final address.
    { s.configure(op) } noexcept;
    { s.collect(op) } noexcept -> std::same_as<typename S::result_type>;  // the outcome
};

/// A receiver of the signals of an operation: set_value as soon as the I/O is complete, then
/// set_done when the connected state may be reused. It is P2052's receiver; it is not related to
/// P2300's `set_stopped`, which was once called set_done.
template <class R, class S>
concept receiver_of = std::move_constructible<R> and requires(R& r, typename S::result_type&& outcome) {
    { r.set_value(std::move(outcome)) } noexcept;
    { r.set_done() } noexcept;
};

namespace detail {

// The common part of senders on a handle. A handle without a multiplexer adopts the calling
// thread's.
class handle_sender {
public:
    /// Refers to no handle; starting it fails with EBADF.
    handle_sender() noexcept : handle_sender(no_handle()) {}
    handle_sender(multiplexable_handle& target, deadline within) noexcept
        : registration_(&detail::handle_access::adopted(target)), limit_(within) {}

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *registration_->multiplexer; }

protected:
    void configure_as(detail::operation_record& op, operation_kind kind) const noexcept {
        op.target = registration_;
        op.kind = kind;
        op.limit = limit_;
        op.pieces = nullptr;
        op.piece_count = 0;
    }
    static error error_of(const detail::operation_record& op, const char* name) noexcept {
        if (op.target->refusal != nullptr) return *op.target->refusal;
        return {op.error_code, name, op.target->native.descriptor};
    }

private:
    explicit handle_sender(registration& target) noexcept : registration_(&target) {}
    static registration& no_handle() noexcept {
        return refused_handle({EBADF, "start an operation that was made without a handle"});
    }

    registration* registration_;
    deadline limit_;
};

}  // namespace detail

/// The sender of async_read, async_write and async_write_some: transfers to or from memory.
template <class Buffers, amount Wanted = amount::all>
class transfer_sender : public detail::handle_sender {
public:
    using result_type = io_result<Buffers>;
    static constexpr bool is_read = read_buffers<Buffers>;
    static constexpr bool is_list =
        std::same_as<Buffers, buffers_type> or std::same_as<Buffers, const_buffers_type>;

    transfer_sender() noexcept = default;
    transfer_sender(io_handle& target, io_request<Buffers> request, deadline within) noexcept
        : handle_sender(target, within), request_(request) {}

    [[nodiscard]] io_request<Buffers>& request() noexcept { return request_; }

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, kind);
        op.offset = request_.offset;
        if constexpr (is_list) {
            // buffer and const_buffer have one layout, that of iovec; the kernel only reads the
            // bytes of a write.
            op.pieces = reinterpret_cast<const buffer*>(request_.buffers.data());
            op.piece_count = static_cast<std::uint32_t>(request_.buffers.size());
        } else {
            single_ = {const_cast<std::byte*>(request_.buffers.data()), request_.buffers.size()};
            op.pieces = &single_;
            op.piece_count = 1;
        }
    }

    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) [[unlikely]]
            return failure(error_of(op, name_of_failed(op)));
        if constexpr (is_list) {
            return detail::shortened(request_.buffers, op.transferred);
        } else {
            return request_.buffers.first(op.transferred);
        }
    }

private:
    static constexpr operation_kind kind = is_read                 ? operation_kind::read
                                           : Wanted == amount::all ? operation_kind::write
                                                                   : operation_kind::write_some;

    [[nodiscard]] static const char* name_of_failed(const detail::operation_record& op) noexcept {
        if (op.error_code == EMSGSIZE and op.piece_count > limits::pieces_per_call_max)
            return message_in_too_many_pieces(is_read ? direction::in : direction::out);
        if (op.error_code == EINVAL and op.offset == no_offset and not op.target->is_stream())
            return without_offset(is_read ? direction::in : direction::out);
        return is_read ? "read" : "write";
    }

    io_request<Buffers> request_;
    buffer single_;
};

/// The sender of async_barrier: makes written data durable.
class barrier_sender : public detail::handle_sender {
public:
    using result_type = io_result<const_buffers_type>;

    barrier_sender() noexcept = default;
    barrier_sender(io_handle& target, barrier_kind kind, io_request<const_buffers_type> range,
                   deadline within) noexcept
        : handle_sender(target, within), kind_(kind), range_(range) {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, operation_kind::barrier);
        op.durability = kind_;
        op.offset = range_.offset == no_offset ? 0 : range_.offset;
        // For their lengths; see transfer_sender::configure.
        op.pieces = reinterpret_cast<const buffer*>(range_.buffers.data());
        op.piece_count = static_cast<std::uint32_t>(range_.buffers.size());
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure(error_of(op, "barrier"));
        return range_.buffers;
    }

private:
    barrier_kind kind_ = barrier_kind::wait_all;
    io_request<const_buffers_type> range_;
};

/// The sender of async_ready: waits until a handle is ready.
///
/// A TCP socket with a low-water mark above 1 (SO_RCVLOWAT, receive_low_water.hpp) is ready to read
/// once that many bytes have arrived, or the stream has ended or failed, or the kernel's receive
/// buffer is full. Fewer bytes complete no waiting operation, reads included, but stay readable: an
/// operation that is tried at once takes them, and one whose deadline passes leaves them in the
/// socket.
class ready_sender : public detail::handle_sender {
public:
    using result_type = result<void>;

    ready_sender() noexcept = default;
    ready_sender(multiplexable_handle& target, direction which, deadline within) noexcept
        : handle_sender(target, within), which_(which) {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(
            op, which_ == direction::in ? operation_kind::ready_to_read : operation_kind::ready_to_write);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure(error_of(op, "wait for readiness"));
        return {};
    }

private:
    direction which_ = direction::in;
};

/// The sender of async_sleep: waits for a time. Ends with success when it has come, with ECANCELED
/// when cancelled.
class sleep_sender {
public:
    using result_type = result<void>;

    sleep_sender(io_multiplexer& multiplexer, deadline until) noexcept
        : multiplexer_(&multiplexer), until_(until) {}

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        op.target = &detail::engine::no_handle(*multiplexer_);
        op.kind = operation_kind::sleep;
        op.limit = until_;
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure({op.error_code, "sleep"});
        return {};
    }

private:
    io_multiplexer* multiplexer_;
    deadline until_;
};

/// A condition to wait for: another thread or process changes a word in memory and then wakes its
/// waiters (FUTEX_WAKE, not the private kind).
struct word_wait {
    std::atomic<std::uint32_t>* word = nullptr;  // null: no wake-up will come
    std::uint32_t expected = 0;                  // its value while there is no change
    std::chrono::nanoseconds at_most{};          // more than zero
    std::chrono::nanoseconds pause{};            // poll interval where the kernel cannot
                                                 // wake the multiplexer
};

/// The sender of async_wait_word: waits for a word. Ends with success when the word may have
/// changed, which includes spurious wake-ups; with ETIMEDOUT after `at_most`, if the kernel does
/// the waiting; with ECANCELED.
class word_sender {
public:
    using result_type = result<void>;

    word_sender(io_multiplexer& multiplexer, const word_wait& what) noexcept
        : multiplexer_(&multiplexer), what_(what) {}

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        const bool is_kernels = what_.word != nullptr and detail::engine::waits_for_words(*multiplexer_);
        op.target =
            is_kernels ? &detail::engine::words(*multiplexer_) : &detail::engine::no_handle(*multiplexer_);
        op.kind = is_kernels ? operation_kind::wait_word : operation_kind::sleep;
        op.argument = what_.word;
        op.offset = what_.expected;
        op.limit = is_kernels ? what_.at_most : what_.pause;
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure({op.error_code, "wait for a word"});
        return {};
    }

private:
    io_multiplexer* multiplexer_;
    word_wait what_;
};

/// Senders of the operations of io_handle. The request's memory, and the handle, must
/// outlive the operation.
[[nodiscard]] inline auto async_read(io_handle& from, io_request<buffers_type> request,
                                     deadline within = {}) noexcept {
    return transfer_sender<buffers_type>(from, request, within);
}
[[nodiscard]] inline auto async_read(io_handle& from, io_request<bytes_type> request,
                                     deadline within = {}) noexcept {
    return transfer_sender<bytes_type>(from, request, within);
}
[[nodiscard]] inline auto async_write(io_handle& to, io_request<const_buffers_type> request,
                                      deadline within = {}) noexcept {
    return transfer_sender<const_buffers_type>(to, request, within);
}
[[nodiscard]] inline auto async_write(io_handle& to, io_request<const_bytes_type> request,
                                      deadline within = {}) noexcept {
    return transfer_sender<const_bytes_type>(to, request, within);
}
[[nodiscard]] inline auto async_write_some(io_handle& to, io_request<const_buffers_type> request,
                                           deadline within = {}) noexcept {
    return transfer_sender<const_buffers_type, amount::some>(to, request, within);
}
[[nodiscard]] inline auto async_write_some(io_handle& to, io_request<const_bytes_type> request,
                                           deadline within = {}) noexcept {
    return transfer_sender<const_bytes_type, amount::some>(to, request, within);
}
// Those of a mapped file are defined in mapped_sender.hpp: without it, a call does not compile,
// instead of copying.
class mapped_file_handle;
template <read_buffers Buffers>
class mapped_read_sender;
template <class Buffers, amount Wanted>
class mapped_write_sender;
[[nodiscard]] mapped_read_sender<buffers_type> async_read(mapped_file_handle& from,
                                                          io_request<buffers_type> request,
                                                          deadline within = {}) noexcept;
[[nodiscard]] mapped_read_sender<bytes_type> async_read(mapped_file_handle& from,
                                                        io_request<bytes_type> request,
                                                        deadline within = {}) noexcept;
[[nodiscard]] mapped_write_sender<const_buffers_type, amount::all> async_write(
    mapped_file_handle& to, io_request<const_buffers_type> request, deadline within = {}) noexcept;
[[nodiscard]] mapped_write_sender<const_bytes_type, amount::all> async_write(
    mapped_file_handle& to, io_request<const_bytes_type> request, deadline within = {}) noexcept;
[[nodiscard]] mapped_write_sender<const_buffers_type, amount::some> async_write_some(
    mapped_file_handle& to, io_request<const_buffers_type> request, deadline within = {}) noexcept;
[[nodiscard]] mapped_write_sender<const_bytes_type, amount::some> async_write_some(
    mapped_file_handle& to, io_request<const_bytes_type> request, deadline within = {}) noexcept;

[[nodiscard]] inline auto async_barrier(io_handle& to, barrier_kind kind = barrier_kind::wait_all,
                                        io_request<const_buffers_type> range = {},
                                        deadline within = {}) noexcept {
    return barrier_sender(to, kind, range, within);
}
[[nodiscard]] inline auto async_ready(multiplexable_handle& target, direction which,
                                      deadline within = {}) noexcept {
    return ready_sender(target, which, within);
}
[[nodiscard]] inline auto async_sleep(io_multiplexer& multiplexer, deadline until) noexcept {
    return sleep_sender(multiplexer, until);
}

/// The word must outlive the operation.
[[nodiscard]] inline auto async_wait_word(io_multiplexer& multiplexer, const word_wait& what) noexcept {
    return word_sender(multiplexer, what);
}

/// The state of one operation, from start() to the done signal; see `operation` for the lifetime
/// rules. The receiver may be incomplete where this type is only named, so that it can point to its
/// own state to start it again. Thread safety: the multiplexer's thread only. Allocates, locks,
/// waits, throws: never.
template <class Sender, class Receiver>
class io_operation_connection final : private detail::operation_record {
public:
    using result_type = typename Sender::result_type;

    /// Default-constructs both parts. Assign the result of connect() before start().
    io_operation_connection() noexcept
        requires(std::default_initializable<Sender> and std::default_initializable<Receiver>)
    = default;
    io_operation_connection(Sender&& from, Receiver&& to) noexcept
        : sender_(std::move(from)), receiver_(std::move(to)) {
        static_assert(sender<Sender> and receiver_of<Receiver, Sender>);
    }
    /// Only before start() or after done.
    io_operation_connection(io_operation_connection&& other) noexcept = default;
    io_operation_connection& operator=(io_operation_connection&& other) noexcept = default;

    /// Destroying it before done is an error, reported to the failure handler. Blocks: then, until
    /// the kernel has released the buffers.
    ~io_operation_connection() {
        if (is_idle()) [[likely]]
            return;
        ENSURE(at != stage::valued or notification_pending,
               "destroyed between its value and its done signal");
        report_unreturned(unreturned_failure::pending_state_destroyed, "its operation is cancelled");
        abandon();
    }

    /// Begins the operation; again, once the done signal has come. The signals may come before
    /// start returns. Blocks: no, except on a file in memory (tmpfs, assume_in_memory) for a page
    /// that has been swapped out: assume_in_memory(false) prevents that, and leaves such a file to
    /// a worker thread.
    // Inlined by force: after a system call every return is mispredicted (see system_call.hpp).
    [[gnu::always_inline]] void start(initiation how = initiation::automatic) noexcept {
        sender_.configure(*this);
        io_multiplexer& multiplexer = sender_.multiplexer();
        if (not detail::engine::start(multiplexer, *this, how)) return;
        detail::engine::signal_both(
            multiplexer, *this, [this] { signal_value(); }, [this] { signal_done(); });
    }

    /// Checks the started operation, and signals only it, if it is complete. Returns whether its
    /// value has been signalled since the last start(). The receiver may destroy this state, or
    /// start it again, from its done signal; then only the return value may be used. Blocks: no.
    bool poll() noexcept { return detail::engine::poll(sender_.multiplexer(), *this); }

    /// Ends the operation early: it completes, now or soon, with ECANCELED unless it was faster.
    void cancel() noexcept { detail::engine::cancel(sender_.multiplexer(), *this, ECANCELED); }

    /// Ends the operation without signals, before its destruction. With a multiplexer for several
    /// threads, any thread may call it except one that is inside its value signal. This thread then
    /// owns the state: a signal that another thread is giving has returned. Blocks: until then, and
    /// until the kernel has released the buffers.
    void abandon() noexcept {
        io_multiplexer& multiplexer = sender_.multiplexer();
        // With several threads, an idle operation may still be about to get its done signal.
        if (not multiplexer.is_for_threads() and is_idle()) return;
        // Undoes the registrations of configure(), unless another thread has given the value.
        if (detail::engine::abandon(multiplexer, *this)) (void)sender_.collect(*this);
    }

    /// Returns whether start() has been called and done has not been signalled.
    [[nodiscard]] bool started() const noexcept { return not is_idle(); }
    /// Returns whether the value has been signalled since the last start().
    [[nodiscard]] bool completed() const noexcept { return has_completed; }

    [[nodiscard]] Sender& get_sender() noexcept { return sender_; }
    [[nodiscard]] Receiver& get_receiver() noexcept { return receiver_; }

private:
    void signal_value() noexcept override { receiver_.set_value(sender_.collect(*this)); }
    void signal_done() noexcept override { receiver_.set_done(); }
    void signal_both(io_multiplexer& by) noexcept override {
        detail::engine::give_both(by, *this, [this] { signal_value(); }, [this] { signal_done(); });
    }

    Sender sender_;
    Receiver receiver_;
};

/// Joins a sender with the receiver of its signals. The result may be moved until it is started.
template <sender Sender, receiver_of<Sender> Receiver>
[[nodiscard]] auto connect(Sender from, Receiver to) noexcept {
    return io_operation_connection<Sender, Receiver>(std::move(from), std::move(to));
}

}  // namespace sluice::io

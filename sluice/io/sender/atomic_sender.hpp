#pragma once

#include <optional>

#include "sluice/io/sender/atomic_state.hpp"
#include "sluice/io/sender/sender.hpp"

namespace sluice::io {

/// The part of an atomic_io_operation_connection that does not depend on its sender and receiver:
/// brings start and cancel to the multiplexer's thread, by items that live in the state.
///
/// Thread safety: start(), try_start(), poll(), started(), completed() and cancel() from any
/// thread, in any order; see `atomic_state` for the states. The I/O runs, and the signals come,
/// only on the multiplexer's thread. On that thread start() and cancel() act at once; on any other
/// they post. Until a thread has become the multiplexer's by running it, every thread counts as
/// another. A multiplexer for several threads acts at once on any thread, posts nothing, and may
/// give the signals on any of its threads, or within start().
///
/// The caller of a member keeps the state alive during the call, and the multiplexer until it
/// returns. The done signal is given only when no item of this state is queued any more. So code
/// that destroys the state only has to know that no thread is inside a member or will call one.
/// Allocates, locks, waits, throws: never.
class atomic_operation : protected detail::operation_record {
public:
    /// Begins the operation; again, once the done signal has come. It must not be pending: if two
    /// threads may both start it, each calls try_start(). On the multiplexer's thread signals may
    /// come before it returns, on others they may come at the same time.
    ///
    /// A start from another thread counts as pending when its item has been taken, not before: keep
    /// an io_multiplexer::work_guard so that run() waits for it.
    void start(initiation how = initiation::automatic) noexcept;

    /// As start(), but returns false if the operation is pending already. One of several callers
    /// wins.
    [[nodiscard]] bool try_start(initiation how = initiation::automatic) noexcept;

    /// The first step of start(), for callers that must not miss a cancellation while they get
    /// ready. From claim() on the operation is pending and a cancel() counts; a cancelled one does
    /// no I/O when launched. Every successful claim is followed by one launch.
    [[nodiscard]] bool claim() noexcept { return state_.claim(); }
    void launch(initiation how = initiation::automatic) noexcept;

    /// On the multiplexer's thread: checks whether the operation is complete, and signals it if so.
    /// On others it only returns the answer, as completed().
    bool poll() noexcept;

    /// Ends the operation early: it completes, soon, with ECANCELED unless it was faster. Has no
    /// effect if it is not pending.
    void cancel() noexcept;

    /// Returns whether a start has won and done has not been signalled. A false result does not
    /// mean that the done signal has returned: only the signal itself allows destroying the state.
    [[nodiscard]] bool started() const noexcept { return state_.is_pending(); }
    /// Returns whether the value has been signalled, or is being signalled, since the last start.
    [[nodiscard]] bool completed() const noexcept { return state_.has_value(); }

protected:
    atomic_operation() noexcept : start_item_(*this), cancel_item_(*this) {}
    /// Only before start() or after done, and before other threads can access it.
    atomic_operation(atomic_operation&& other) noexcept
        : operation_record(std::move(other)), start_item_(*this), cancel_item_(*this) {
        ENSURE(not other.started(), "moved while the operation is pending");
    }
    ~atomic_operation() { ENSURE(not started(), "destroyed before the done signal"); }

private:
    virtual io_multiplexer& home() const noexcept = 0;
    virtual void configure_io() noexcept = 0;
    virtual void set_receiver_value() noexcept = 0;
    virtual void set_receiver_done() noexcept = 0;

    void signal_value() noexcept final;
    void signal_done() noexcept final;
    void begin() noexcept;
    void begin_here(io_multiplexer& multiplexer) noexcept;
    [[nodiscard]] static bool acts_here(const io_multiplexer& multiplexer) noexcept;
    void on_cancel_item() noexcept;

    struct start_item final : posted_item {
        explicit start_item(atomic_operation& from) noexcept : self(from) {}
        void invoke() noexcept override { self.begin(); }
        atomic_operation& self;
    };
    struct cancel_item final : posted_item {
        explicit cancel_item(atomic_operation& from) noexcept : self(from) {}
        void invoke() noexcept override { self.on_cancel_item(); }
        atomic_operation& self;
    };

    // Shared.
    atomic_state<> state_;
    // Belongs to the claiming thread, then through the posted item to the owner.
    start_item start_item_;
    initiation how_ = initiation::automatic;
    // Belongs to the thread that sets `cancel_queued`, until the owner takes it.
    cancel_item cancel_item_;
    // Belongs to the owner.
    // Keeps run() going while done waits for an item.
    std::optional<io_multiplexer::work_guard> waiting_;
};

/// The state of one operation that several threads may start, poll and cancel: P2052's
/// atomic_io_operation_connection. Receivers are those of io_operation_connection, and are only
/// ever called on the multiplexer's thread. The receiver may be incomplete where this type is only
/// named.
template <class Sender, class Receiver>
class atomic_io_operation_connection final : public atomic_operation {
public:
    using result_type = typename Sender::result_type;

    atomic_io_operation_connection(Sender&& from, Receiver&& to) noexcept
        : sender_(std::move(from)), receiver_(std::move(to)) {
        static_assert(sender<Sender> and receiver_of<Receiver, Sender>);
    }
    atomic_io_operation_connection(atomic_io_operation_connection&& other) noexcept = default;

    [[nodiscard]] Sender& get_sender() noexcept { return sender_; }
    [[nodiscard]] Receiver& get_receiver() noexcept { return receiver_; }

private:
    io_multiplexer& home() const noexcept override { return sender_.multiplexer(); }
    void configure_io() noexcept override { sender_.configure(*this); }
    void set_receiver_value() noexcept override { receiver_.set_value(sender_.collect(*this)); }
    void set_receiver_done() noexcept override { receiver_.set_done(); }

    Sender sender_;
    Receiver receiver_;
};

/// A sender whose connected state is an atomic_io_operation_connection; created by atomic().
template <sender Sender>
class atomic_sender {
public:
    using result_type = typename Sender::result_type;

    explicit atomic_sender(Sender&& from) noexcept : sender_(std::move(from)) {}

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return sender_.multiplexer(); }
    [[nodiscard]] Sender&& take() && noexcept { return std::move(sender_); }

private:
    Sender sender_;
};

/// Lets any thread start and cancel the operation of `from`: `atomic(async_ready(…))`.
template <sender Sender>
[[nodiscard]] auto atomic(Sender from) noexcept {
    return atomic_sender<Sender>(std::move(from));
}

template <sender Sender, receiver_of<Sender> Receiver>
[[nodiscard]] auto connect(atomic_sender<Sender> from, Receiver to) noexcept {
    return atomic_io_operation_connection<Sender, Receiver>(std::move(from).take(), std::move(to));
}

/// P2052's names. Connecting, and the lifetimes of the arguments, are those of the plain forms.
template <std::derived_from<io_handle> Handle, read_buffers Buffers>
[[nodiscard]] auto atomic_async_read(Handle& from, io_request<Buffers> request,
                                     deadline within = {}) noexcept {
    return atomic(async_read(from, request, within));
}
template <std::derived_from<io_handle> Handle, write_buffers Buffers>
[[nodiscard]] auto atomic_async_write(Handle& to, io_request<Buffers> request,
                                      deadline within = {}) noexcept {
    return atomic(async_write(to, request, within));
}
template <std::derived_from<io_handle> Handle, write_buffers Buffers>
[[nodiscard]] auto atomic_async_write_some(Handle& to, io_request<Buffers> request,
                                           deadline within = {}) noexcept {
    return atomic(async_write_some(to, request, within));
}
[[nodiscard]] inline auto atomic_async_barrier(io_handle& to, barrier_kind kind = barrier_kind::wait_all,
                                               io_request<const_buffers_type> range = {},
                                               deadline within = {}) noexcept {
    return atomic(async_barrier(to, kind, range, within));
}

}  // namespace sluice::io

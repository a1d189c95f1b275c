#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "sluice/base/deadline.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/intrusive_mpsc_queue.hpp"
#include "sluice/base/pairing_heap.hpp"
#include "sluice/io/call/request.hpp"
#include "sluice/io/loop/operation.hpp"

namespace sluice::io {

class io_multiplexer;
struct registration;

/// The request of a `receive`, and the buffer that it got. With no bytes, or an error, it got none.
/// ENOBUFS: no buffer is free, and bytes are available.
struct receive_request {
    unsigned group = 0;       // the result of io_multiplexer::provide_receive_buffers
    std::uint32_t index = 0;  // the outcome
    bool stops = false;       // deliver only bytes already received; then ECANCELED
    bool once = false;        // receive only once
};

namespace detail {

/// The state of one asynchronous operation, which `connect` creates and the caller keeps. The
/// multiplexer works on these and never allocates its own. Internal to io: users see an
/// `operation`.
///
/// Lifetime rules, checked by ENSURE:
///   1. Before start() it may be moved; from start() to the second signal it may be neither moved
///      nor destroyed. A connected state that is destroyed then reports that to the failure
///      handler.
///   2. Signals come in pairs, in this order: value (the outcome), done (the state may be reused or
///      destroyed). Each exactly once per start(), whatever the outcome: success, error, deadline,
///      cancellation.
///   3. After done the multiplexer does not access this, so the receiver may destroy the state, or
///      start it again, from inside that signal.
/// Thread safety: only the multiplexer's thread, except through atomic_ senders.
class operation_record : public operation {
public:
    /// The stage of an operation.
    enum class stage : std::uint8_t {
        idle,       // not started, or done
        waiting,    // in a queue of ours; the kernel does not know of it
        in_flight,  // with the kernel or a worker thread: it, and its buffers,
                    // must stay where they are
        ready,      // the outcome is known; the signals have not been given
        valued,     // the first signal has been given
        begun,      // for several threads: it waits for its coroutine to be suspended
        trying,     // for several threads: one of them is in a system call for it, without the lock
    };

    operation_record(const operation_record&) = delete;
    operation_record& operator=(const operation_record&) = delete;

    [[nodiscard]] bool is_idle() const noexcept { return at == stage::idle; }

    // The request, set by the connection before start(). The order of the members puts everything
    // that a batched operation on a file needs from start() to done, and its deadline if it has
    // one, into two cache lines: with many operations in flight, each additional line costs time.
    registration* target = nullptr;
    // An iovec array, also for a write: the kernel's type has no const.
    const buffer* pieces = nullptr;
    extent_type offset = 0;
    std::uint32_t piece_count = 0;
    operation_kind kind = operation_kind::read;
    barrier_kind durability = barrier_kind::wait_all;

    // The stage, which belongs to the multiplexer.
    stage at = stage::idle;
    bool has_completed = false;

    // The outcome, which belongs to the multiplexer until the first signal.
    std::size_t transferred = 0;  // bytes, or the descriptor of an accept
    int error_code = 0;           // an errno value, 0 for success

    // Members of the multiplexer.
    int cancel_code = 0;  // the reason of a cancellation: ECANCELED or ETIMEDOUT
    std::uint64_t backend_word = 0;
    list_hook<operation_record>
        queue_link;  // in its registration's queue, or the multiplexer's list of ready ones
    heap_hook<operation_record> timer_link;
    std::chrono::steady_clock::time_point expires{};
    mpsc_hook<operation_record> handoff_link;  // on the way to another thread or back
    bool notification_pending =
        false;  // the kernel still reads the buffers: value has been signalled, done has not

    bool value_is_empty =
        false;  // for several threads: a coroutine waits, which needs only the second signal

    // The request, for less common kinds.
    void* argument = nullptr;
    deadline limit;

protected:
    operation_record() noexcept = default;
    ~operation_record() {
        ENSURE(is_idle(), "destroyed while the operation is pending: wait for the done signal");
    }

    /// Moves the request; only while both are idle.
    operation_record& operator=(operation_record&& other) noexcept {
        ENSURE(is_idle() and other.is_idle(), "moved while the operation is pending");
        target = other.target;
        pieces = other.pieces;
        offset = other.offset;
        piece_count = other.piece_count;
        kind = other.kind;
        durability = other.durability;
        argument = other.argument;
        limit = other.limit;
        has_completed = false;
        return *this;
    }
    operation_record(operation_record&& other) noexcept
        : target(other.target),
          pieces(other.pieces),
          offset(other.offset),
          piece_count(other.piece_count),
          kind(other.kind),
          durability(other.durability),
          argument(other.argument),
          limit(other.limit) {
        ENSURE(other.is_idle(), "moved while the operation is pending");
    }

private:
    friend class io::io_multiplexer;

    virtual void signal_value() noexcept = 0;
    virtual void signal_done() noexcept = 0;
    /// Gives both signals, by io_multiplexer::give_both. A derived class overrides it where it can
    /// call its own signals directly: one indirect call instead of two.
    virtual void signal_both(io_multiplexer& by) noexcept;
};

/// Every operation is a record.
[[nodiscard]] inline operation_record& record_of(operation& op) noexcept {
    return static_cast<operation_record&>(op);
}
[[nodiscard]] inline const operation_record& record_of(const operation& op) noexcept {
    return static_cast<const operation_record&>(op);
}

}  // namespace detail

using operation_queue = intrusive_list<detail::operation_record, &detail::operation_record::queue_link>;

struct expires_earlier {
    bool operator()(const detail::operation_record& a, const detail::operation_record& b) const noexcept {
        return a.expires < b.expires;
    }
};
using timer_heap =
    pairing_heap<detail::operation_record, &detail::operation_record::timer_link, expires_earlier>;

}  // namespace sluice::io

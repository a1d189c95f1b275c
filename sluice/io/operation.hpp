#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "sluice/base/deadline.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/intrusive_mpsc_queue.hpp"
#include "sluice/base/pairing_heap.hpp"
#include "sluice/io/request.hpp"

namespace sluice::io {

class io_multiplexer;
struct registration;

/// Work to be run by the thread that owns a multiplexer. The node lives with the caller: posting allocates
/// nothing.
class posted_item {
public:
    posted_item() noexcept = default;
    posted_item(const posted_item&) = delete;
    posted_item& operator=(const posted_item&) = delete;

    /// Runs on the multiplexer's thread. The item is out of the queue by then and may be posted again or
    /// destroyed.
    virtual void invoke() noexcept = 0;

    mpsc_hook<posted_item> link;

protected:
    ~posted_item() = default;
};

enum class operation_kind : std::uint8_t {
    read,
    write,           // ends when everything is written
    write_some,      // ends when something is written
    accept,          // argument: socket_address* or null; the outcome is a descriptor
    connect,         // argument: const socket_address*
    ready_to_read,   // a read would not wait
    ready_to_write,  // a write would not wait
    splice_out,      // argument: splice_transfer*, into the target, which is what it waits for
    splice_in,       // argument: splice_transfer*, out of the target, which is what it waits for
    receive_from,    // argument: datagram_request*, whose address is an outcome
    send_to,         // argument: datagram_request*
    call_in,         // argument: ready_call*, which waits until a read would not wait
    call_out,        // argument: ready_call*, which waits until a write would not wait
    wait_signal,     // argument: signal_request*
    barrier,         // from here on: what start() never tries
    sleep,           // only its deadline ends it
    receive,         // argument: receive_request*; what has arrived next, in a buffer the back end picks
    accept_ahead,    // argument: accept_request*; the next connection the back end has taken
    wait_word,       // argument: a futex word, offset: what it holds while there is nothing new
    external,        // argument: an external_work
};

/// What a `receive` asks for, and which buffer it got. With no bytes, or an error, it got none. ENOBUFS: no
/// buffer is free, and there is something to receive.
struct receive_request {
    unsigned group = 0;       // what io_multiplexer::provide_receive_buffers returned
    std::uint32_t index = 0;  // the outcome
    bool stops = false;       // receive no more than has been; then ECANCELED
    bool once = false;        // receive no more than asked for
};

/// How an operation begins.
enum class initiation : std::uint8_t {
    automatic,    ///< as the multiplexer finds best: see io_multiplexer::set_initiation
    speculative,  ///< start() tries a non-blocking call first: least time for one operation
    batched,      ///< start() only queues; what is queued goes to the kernel together: least time for many
};

/// The state of one asynchronous operation: what `connect` makes and the caller keeps. The multiplexer works
/// on these and never allocates its own.
///
/// Lifetime rules, checked by ENSURE:
///   1. Before start() it may be moved; from start() to the second signal it may be neither moved nor
///   destroyed. A connected state that is destroyed nevertheless reports that to the failure handler.
///   2. Signals come in pairs, in this order: value (the outcome), done (the state may be reused or
///   destroyed). Each
///      exactly once per start(), whatever happened: success, error, deadline, cancellation.
///   3. After done nothing here is touched by the multiplexer, so the receiver may destroy the state, or
///   start it
///      again, from inside that signal.
/// Thread safety: only the multiplexer's thread, except through atomic_ senders.
class operation {
public:
    /// Where an operation stands.
    enum class stage : std::uint8_t {
        idle,       // not started, or done
        waiting,    // in a queue of ours; the kernel does not know of it
        in_flight,  // with the kernel or a worker thread: it, and its buffers, must stay where they are
        ready,      // the outcome is known; the signals are to come
        valued,     // the first signal has been given
        begun,      // for several threads: it waits for its coroutine to be suspended
        trying,     // for several threads: one of them is in a system call for it, outside of the lock
    };

    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;

    [[nodiscard]] bool is_idle() const noexcept { return at == stage::idle; }

    // What to do: set by the connection before start(). The members are ordered so that what a batched
    // operation on a file needs from start() to done, and its deadline if it had one, lies in two cache
    // lines: with many in flight, each line more shows.
    registration* target = nullptr;
    const buffer* pieces = nullptr;  // an iovec array: of a write too, the kernel's has no const either
    extent_type offset = 0;
    std::uint32_t piece_count = 0;
    operation_kind kind = operation_kind::read;
    barrier_kind durability = barrier_kind::wait_all;

    // Where it stands: the multiplexer's own.
    stage at = stage::idle;
    bool has_completed = false;

    // What came of it: the multiplexer's until the first signal.
    std::size_t transferred = 0;  // bytes; of an accept the descriptor
    int error_code = 0;           // an errno value, 0 for success

    // The multiplexer's own.
    int cancel_code = 0;  // why it is being cancelled: ECANCELED or ETIMEDOUT
    std::uint64_t backend_word = 0;
    list_hook<operation> queue_link;  // in its registration's queue, or the multiplexer's list of ready ones
    heap_hook<operation> timer_link;
    std::chrono::steady_clock::time_point expires{};
    mpsc_hook<operation> handoff_link;  // on the way to another thread or back
    bool notification_pending =
        false;  // the kernel still reads the buffers: value has been signalled, done has not

    bool value_is_empty =
        false;  // for several threads: a coroutine waits, which needs only the second signal

    // What to do, of the rarer kinds.
    void* argument = nullptr;
    deadline limit;

protected:
    operation() noexcept = default;
    ~operation() { ENSURE(is_idle(), "destroyed while the operation is pending: wait for the done signal"); }

    /// Moves what is to be done; only while both are idle.
    operation& operator=(operation&& other) noexcept {
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
    operation(operation&& other) noexcept
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
    friend class io_multiplexer;

    virtual void signal_value() noexcept = 0;
    virtual void signal_done() noexcept = 0;
    /// Both, by io_multiplexer::give_both. For a derived class to override where its own signals can be
    /// called directly: one indirect call instead of two.
    virtual void signal_both(io_multiplexer& by) noexcept;
};

using operation_queue = intrusive_list<operation, &operation::queue_link>;

struct expires_earlier {
    bool operator()(const operation& a, const operation& b) const noexcept { return a.expires < b.expires; }
};
using timer_heap = pairing_heap<operation, &operation::timer_link, expires_earlier>;

/// The two directions of a stream; requests in one direction are served in the order they were started.
enum class direction : std::uint8_t { in, out };

[[nodiscard]] constexpr direction direction_of(operation_kind kind) noexcept {
    // A set of kinds rather than comparisons: start() asks between two system calls, where branches are dear.
    constexpr auto bit = [](operation_kind of) { return 1U << static_cast<unsigned>(of); };
    constexpr unsigned out = bit(operation_kind::write) | bit(operation_kind::write_some) |
                             bit(operation_kind::connect) | bit(operation_kind::ready_to_write) |
                             bit(operation_kind::splice_out) | bit(operation_kind::send_to) |
                             bit(operation_kind::call_out);
    return static_cast<direction>(out >> static_cast<unsigned>(kind) & 1U);
}

/// Whether it moves bytes between memory and the target.
[[nodiscard]] constexpr bool is_transfer(operation_kind kind) noexcept {
    static_assert(operation_kind::read < operation_kind::write_some and
                  operation_kind::write < operation_kind::write_some);
    return kind <= operation_kind::write_some;
}

/// Whether one that ends early, with part of it done, leaves the stream in the middle of something.
[[nodiscard]] constexpr bool leaves_gap(operation_kind kind) noexcept {
    return kind == operation_kind::write or kind == operation_kind::splice_out or
           kind == operation_kind::splice_in;
}

}  // namespace sluice::io

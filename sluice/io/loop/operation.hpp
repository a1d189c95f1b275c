#pragma once

#include <cstdint>

#include "sluice/base/intrusive_mpsc_queue.hpp"
#include "sluice/io/call/direction.hpp"

namespace sluice::io {

/// Work for the thread that owns a multiplexer. The caller owns the node, so posting allocates
/// nothing.
class posted_item {
public:
    posted_item() noexcept = default;
    posted_item(const posted_item&) = delete;
    posted_item& operator=(const posted_item&) = delete;

    /// Runs on the multiplexer's thread. The item has left the queue by then and may be posted
    /// again or destroyed.
    virtual void invoke() noexcept = 0;

    mpsc_hook<posted_item> link;

protected:
    ~posted_item() = default;
};

enum class operation_kind : std::uint8_t {
    read,
    write,           // ends when everything is written
    write_some,      // ends when some bytes are written
    accept,          // argument: socket_address* or null; the outcome is a descriptor
    connect,         // argument: const socket_address*
    ready_to_read,   // a read would not wait
    ready_to_write,  // a write would not wait
    splice_out,      // argument: splice_transfer*, into the target, which it waits for
    splice_in,       // argument: splice_transfer*, out of the target, which it waits for
    receive_from,    // argument: datagram_request*, whose address is an outcome
    send_to,         // argument: datagram_request*
    call_in,         // argument: ready_call*, which waits until a read would not wait
    call_out,        // argument: ready_call*, which waits until a write would not wait
    barrier,         // from here on: operations that start() never tries
    sleep,           // only its deadline ends it
    receive,         // argument: receive_request*; the bytes that arrive next, in a
                     // buffer the back end picks
    accept_ahead,    // argument: accept_request*; the next connection that the
                     // back end has accepted
    wait_word,       // argument: a futex word, offset: its value while there is no change
    external,        // argument: an external_work
};

/// How an operation begins.
enum class initiation : std::uint8_t {
    automatic,    ///< the multiplexer chooses: see io_multiplexer::set_initiation
    speculative,  ///< start() tries a non-blocking call first: least time for one operation
    batched,      ///< start() only queues; queued operations go to the kernel
                  ///< together: least time for many
};

/// One asynchronous operation, as seen by a user-defined sender that passes it on to the sender it
/// wraps. Opaque: the library owns its contents.
class operation {
public:
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;

protected:
    operation() noexcept = default;
    ~operation() = default;
};

[[nodiscard]] constexpr direction direction_of(operation_kind kind) noexcept {
    // A set of kinds instead of comparisons: start() checks it between two system calls, where
    // branches are expensive.
    constexpr auto bit = [](operation_kind of) { return 1U << static_cast<unsigned>(of); };
    constexpr unsigned out = bit(operation_kind::write) | bit(operation_kind::write_some) |
                             bit(operation_kind::connect) | bit(operation_kind::ready_to_write) |
                             bit(operation_kind::splice_out) | bit(operation_kind::send_to) |
                             bit(operation_kind::call_out);
    return static_cast<direction>(out >> static_cast<unsigned>(kind) & 1U);
}

/// Returns whether it moves bytes between memory and the target.
[[nodiscard]] constexpr bool is_transfer(operation_kind kind) noexcept {
    static_assert(operation_kind::read < operation_kind::write_some and
                  operation_kind::write < operation_kind::write_some);
    return kind <= operation_kind::write_some;
}

/// Returns whether an operation that ends early leaves a part of its bytes in the stream.
[[nodiscard]] constexpr bool leaves_gap(operation_kind kind) noexcept {
    return kind == operation_kind::write or kind == operation_kind::splice_out or
           kind == operation_kind::splice_in;
}

}  // namespace sluice::io

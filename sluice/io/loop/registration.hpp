#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/piece_call.hpp"
#include "sluice/io/loop/operation_record.hpp"

namespace sluice::io {

/// A multiplexer's record of one attached handle. It has a stable address, so the handle may be
/// moved while I/O is pending. Created by attach, recycled by detach; only the multiplexer's thread
/// accesses it.
///
/// Invariants:
///   1. `pending` counts the operations between start() and the done signal.
///   2. A stream's operation that waits or is in flight is in the queue of its direction, oldest
///      first; those in flight come before those that wait.
struct registration {
    struct half {
        operation_queue queue;
        piece_call call;               // made by start(); unknown if it takes more than one
        std::uint16_t in_flight = 0;   // how many at the front of the queue are with the kernel
        bool is_armed = false;         // the back end is notified when it becomes ready
        bool never_speculate = false;  // the file does not support calls that do not wait
        std::uint8_t pause = 0;        // starts without speculation: doubles
                                       // with each "would block"
        std::uint8_t skipped = 0;      // how many of these have passed
        direction which = direction::in;
        registration* owner = nullptr;
        list_hook<half> dirty_link;  // in the multiplexer's list of halves with something to submit
        void* backend = nullptr;

        // Atomic because one of several threads may find it out without the lock. relaxed: it
        // orders no other access.
        void stop_speculation() noexcept {
            std::atomic_ref(never_speculate).store(true, std::memory_order_relaxed);
        }
        [[nodiscard]] bool may_speculate() noexcept {
            return not std::atomic_ref(never_speculate).load(std::memory_order_relaxed);
        }
    };

    native_handle native;
    io_multiplexer* multiplexer = nullptr;
    std::uint32_t pending = 0;
    std::uint32_t backend_word = 0;  // the back end's own; 0 when attached
    std::uint32_t slot = 0;          // its index in the multiplexer's table
    bool is_shared = false;          // its multiplexer is for several threads
    const error* refusal = nullptr;  // all operations end at once with it; see refused_handles.hpp
    std::array<half, 2> halves{};
    list_hook<registration> link;  // in the list of free ones

    [[nodiscard]] half& side(direction d) noexcept { return halves[static_cast<std::size_t>(d)]; }
    [[nodiscard]] bool is_stream() const noexcept { return native.kind != handle_kind::file; }
};

/// Returns whether all waiting operations of a half are the common kind: one transfer of one
/// segment, not begun. A transfer of no bytes is not: it completes at once, and a call for it would
/// wait for bytes.
[[nodiscard]] inline bool waits_for_one_piece(const registration::half& half) noexcept {
    const detail::operation_record* const front = half.queue.front();
    return front != nullptr and half.queue.back() == front and front->kind <= operation_kind::write and
           front->piece_count == 1 and front->transferred == 0 and front->pieces->size() != 0;
}

using dirty_list = intrusive_list<registration::half, &registration::half::dirty_link>;
using registration_list = intrusive_list<registration, &registration::link>;

}  // namespace sluice::io

#pragma once

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/transfer_call.hpp"
#include "sluice/io/loop/operation_record.hpp"
#include "sluice/io/loop/registration.hpp"

namespace sluice::io {

/// Tries an operation by a call that does not wait, and adds to its transferred bytes. Internal to
/// io. Returns whether it is finished (successfully or not); false if the rest would have to wait.
/// Allocates, blocks: no. Complexity: one system call for the common single segment.
[[nodiscard]] bool attempt(detail::operation_record& op) noexcept;

/// Serves the waiting operations of one half of a stream in order until it would block, the queue
/// is empty or `calls_max` calls have been made. Neighbouring reads (or writes) share a vectored
/// call. Finished operations are moved to `ready`. Returns whether the half would block (false:
/// more may be possible).
bool serve(registration::half& half, operation_queue& ready, int calls_max) noexcept;

/// The effect of one call on an operation.
enum class progress : std::uint8_t {
    finished,     // with success or an error
    moved,        // some of it; the rest may go at once or have to wait
    would_block,  // nothing
};

/// Moves the front of a queue, whose outcome is known, to `ready`. If it is a write to a stream
/// that an error has ended part-way, the operations after it end with ECANCELED: they must not be
/// sent after the gap.
void finish_front(registration::half& half, operation_queue& ready) noexcept;

/// Advances an operation by a single call that moves at most `bytes_max` bytes: for a simulation,
/// which decides the length of a step. With `wait::yes` a call on a file may wait. Internal to io.
[[nodiscard]] progress advance(detail::operation_record& op, std::size_t bytes_max, wait waits) noexcept;

/// The same for the operations at the front of a queue that may share a call; the finished ones
/// are moved to `ready`.
[[nodiscard]] progress advance_together(registration::half& half, operation_queue& ready,
                                        std::size_t bytes_max) noexcept;

/// Distributes `bytes` over the operations at the front of the queue, as one vectored call
/// transferred them, and moves the finished ones to `ready`.
void distribute(registration::half& half, std::size_t bytes, operation_queue& ready) noexcept;

/// Fills `out` with the segments that one operation still has to transfer. Returns how many; none
/// is empty.
std::size_t remaining_pieces(const detail::operation_record& op, std::span<buffer> out) noexcept;

/// Fills `pieces` with the segments that the operations at the front of the queue still have to
/// transfer. Returns their number; `operations` and `bytes` are the numbers of operations and bytes
/// that they cover.
struct gathered {
    std::size_t pieces = 0;
    std::size_t bytes = 0;
    std::uint16_t operations = 0;
};
gathered gather(const registration::half& half, std::span<buffer> pieces) noexcept;

/// Returns the bytes that an operation requests.
[[nodiscard]] std::size_t requested_bytes(const detail::operation_record& op) noexcept;

/// Returns how much it moves before it ends.
[[nodiscard]] constexpr amount amount_of(operation_kind kind) noexcept {
    return kind == operation_kind::write_some ? amount::some : amount::all;
}

/// Returns whether a message has more segments than one system call takes, on a socket that
/// preserves message boundaries: in two calls it would be two messages. It fails with EMSGSIZE.
[[nodiscard]] bool has_too_many_pieces(const detail::operation_record& op) noexcept;

}  // namespace sluice::io

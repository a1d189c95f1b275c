#pragma once

#include <span>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/io/handle.hpp"
#include "sluice/io/operation.hpp"
#include "sluice/io/request.hpp"

namespace sluice::io {

/// The blocking transfer behind io_handle::read and write, which say what it promises. Returns the bytes
/// moved. `begun` bytes of the pieces have been moved already: they are counted, not moved again.
[[nodiscard]] result<std::size_t> transfer_blocking(const native_handle& native, direction which,
                                                    std::span<const buffer> pieces, extent_type offset,
                                                    deadline within, std::size_t begun = 0) noexcept;

/// The operation, in words, for the error EINVAL of a transfer of a file that names no offset.
[[nodiscard]] constexpr const char* without_offset(direction which) noexcept {
    return which == direction::in ? "read, of a file, without an offset"
                                  : "write, to a file, without an offset";
}

/// What the error is called of a message in more pieces than one system call takes.
[[nodiscard]] constexpr const char* message_in_too_many_pieces(direction which) noexcept {
    return which == direction::in ? "read a message into more pieces than limits::pieces_per_call_max (1,024)"
                                  : "write a message of more pieces than limits::pieces_per_call_max (1,024)";
}

/// The barrier behind io_handle::barrier. `length` 0 means all of the file.
[[nodiscard]] result<void> barrier_blocking(const native_handle& native, barrier_kind kind,
                                            extent_type offset, extent_type length) noexcept;

/// Waits until the descriptor is ready in one direction. Errors: ETIMEDOUT. EINTR is not seen.
[[nodiscard]] result<void> wait_ready(const native_handle& native, direction which, deadline within) noexcept;

}  // namespace sluice::io

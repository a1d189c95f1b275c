#pragma once

#include <span>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/io/call/direction.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/request.hpp"

namespace sluice::io {

/// The blocking transfer of io_handle::read and write; see their contracts. Returns the bytes
/// moved. `begun` bytes of the segments have been moved already: they are counted, not moved again.
[[nodiscard]] result<std::size_t> transfer_blocking(const native_handle& native, direction which,
                                                    std::span<const buffer> pieces, extent_type offset,
                                                    deadline within, amount wanted,
                                                    std::size_t begun = 0) noexcept;

/// Returns the name of the operation for the error EINVAL of a transfer of a file without an
/// offset.
[[nodiscard]] constexpr const char* without_offset(direction which) noexcept {
    return which == direction::in ? "read, of a file, without an offset"
                                  : "write, to a file, without an offset";
}

/// Returns the name of the error for a message in more segments than one system call takes.
[[nodiscard]] constexpr const char* message_in_too_many_pieces(direction which) noexcept {
    return which == direction::in ? "read a message into more pieces than limits::pieces_per_call_max (1,024)"
                                  : "write a message of more pieces than limits::pieces_per_call_max (1,024)";
}

/// The part of a file that a barrier covers. `length` 0: everything from `offset` on.
struct barrier_range {
    extent_type offset = 0;
    extent_type length = 0;
};
[[nodiscard]] inline barrier_range barrier_extent(const io_request<const_buffers_type>& request) noexcept {
    return {.offset = request.offset == no_offset ? 0 : request.offset, .length = bytes_in(request.buffers)};
}

/// Returns whether a barrier of this kind returns only when the device has the data.
[[nodiscard]] constexpr bool waits_for_device(barrier_kind kind) noexcept {
    return kind == barrier_kind::wait_data_only or kind == barrier_kind::wait_all;
}

/// Returns whether an operation that begins now has no time left.
[[nodiscard]] bool is_over(deadline within) noexcept;

/// The barrier of io_handle::barrier.
[[nodiscard]] result<void> barrier_blocking(const native_handle& native, barrier_kind kind,
                                            barrier_range range, deadline within) noexcept;

/// Waits until the descriptor is ready in one direction. Errors: ETIMEDOUT. Never returns EINTR.
[[nodiscard]] result<void> wait_ready(const native_handle& native, direction which, deadline within) noexcept;

}  // namespace sluice::io

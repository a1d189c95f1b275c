#pragma once

#include <cstddef>
#include <span>

#include "sluice/io/call/direction.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/request.hpp"

namespace sluice::io {

enum class wait : bool { no, yes };

/// One system call that moves bytes between memory and whatever the handle is: the only place that knows
/// which call that is. Returns the bytes moved, or -1 with the cause in errno: EIO if the file system claims
/// to have moved more than the pieces hold.
///
/// With `wait::no` it returns EAGAIN rather than wait, and EOPNOTSUPP if this file cannot be asked that.
/// Sockets are asked by flag, because O_NONBLOCK would be shared with every process that has the description
/// open; pipes have no such flag and are opened O_NONBLOCK (whatever `waits` says), or, when adopted, asked
/// by RWF_NOWAIT. What a file in memory does never waits for a device. At most limits::pieces_per_call_max
/// pieces.
[[nodiscard]] std::ptrdiff_t transfer_call(const native_handle& native, direction which,
                                           std::span<const buffer> pieces, extent_type offset,
                                           wait waits) noexcept;

/// The same with one piece. Returns the bytes moved, or a negative errno value. `errno` is left alone.
[[nodiscard]] std::ptrdiff_t transfer_piece_through_library(const native_handle& native, direction which,
                                                            const buffer& piece, extent_type offset,
                                                            wait waits) noexcept;

}  // namespace sluice::io

#pragma once

#include <cstddef>
#include <span>

#include "sluice/io/call/direction.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/request.hpp"

namespace sluice::io {

enum class wait : bool { no, yes };

/// Makes one system call that moves bytes between memory and a handle: the only place that knows
/// which call that is. Returns the bytes moved, or -1 with the cause in errno: EIO if the file
/// system reports more bytes than the segments hold.
///
/// With `wait::no` it returns EAGAIN instead of waiting, and EOPNOTSUPP if this file does not
/// support that. Calls on sockets pass a flag, because O_NONBLOCK would be shared with every
/// process that has the description open. Pipes have no such flag and are opened O_NONBLOCK
/// (independent of `waits`) or, when adopted, called with RWF_NOWAIT. A file in memory never waits
/// for a device. At most limits::pieces_per_call_max segments.
[[nodiscard]] std::ptrdiff_t transfer_call(const native_handle& native, direction which,
                                           std::span<const buffer> pieces, extent_type offset,
                                           wait waits) noexcept;

/// The same with one segment. Returns the bytes moved, or a negative errno value. `errno` does not
/// change.
[[nodiscard]] std::ptrdiff_t transfer_piece_through_library(const native_handle& native, direction which,
                                                            const buffer& piece, extent_type offset,
                                                            wait waits) noexcept;

}  // namespace sluice::io

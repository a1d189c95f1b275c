#pragma once

#include "sluice/base/error.hpp"
#include "sluice/io/loop/registration.hpp"

namespace sluice::io::detail {

/// Returns the registration of a handle that cannot be attached to a multiplexer. Every operation
/// started on it ends at once, inside start(), with this error, without the descriptor. It is the
/// same for an equal error; it never changes and is never destroyed, so the operation may be
/// started on any thread, and abandoned on another. That thread gives its signals. Keeps up to
/// limits::refusals_max different errors. A further error is replaced by an earlier one with the
/// same cause, if there is one, or else by the last. Blocks: while another thread is in this
/// function. Allocates: nothing. Complexity: linear in the different errors so far. Thread safety:
/// any thread.
[[nodiscard]] registration& refused_handle(const error& why) noexcept;

}  // namespace sluice::io::detail

#pragma once

#include "sluice/base/error.hpp"
#include "sluice/io/registration.hpp"

namespace sluice::io::detail {

/// Stands for a handle that cannot be attached to a multiplexer. An operation started on it ends at once,
/// inside start(), with this error. One for each thread: a later call changes the error of an earlier one,
/// and an operation that refers to it is not started after the thread that made it has ended. Allocates:
/// nothing. Thread safety: the calling thread's.
[[nodiscard]] registration& refused_handle(const error& why) noexcept;

}  // namespace sluice::io::detail

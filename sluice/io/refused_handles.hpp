#pragma once

#include "sluice/base/error.hpp"
#include "sluice/io/registration.hpp"

namespace sluice::io::detail {

/// A placeholder for a handle that cannot be attached to a multiplexer. An operation started on it ends at
/// once, inside start(), with this error. One for each thread, so a later call changes the error of an
/// earlier one. Allocates: nothing. Thread safety: the calling thread's.
[[nodiscard]] registration& refused_handle(const error& why) noexcept;

}  // namespace sluice::io::detail

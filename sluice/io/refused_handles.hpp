#pragma once

#include "sluice/io/registration.hpp"

namespace sluice::io::detail {

/// What stands for a handle that cannot be attached to a multiplexer: an operation started on it ends at
/// once, inside start(), with this errno value. One for each thread, so a later call changes the value of an
/// earlier one. Allocates: nothing. Thread safety: the calling thread's.
[[nodiscard]] registration& refused_handle(int code) noexcept;

}  // namespace sluice::io::detail

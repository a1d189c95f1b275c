#pragma once

#include <expected>

#include "sluice/base/error.hpp"

namespace sluice {

/// A value or the error that prevented it. Expected failures travel this way; bugs stop at ENSURE.
template <class T>
using result = std::expected<T, error>;

/// `return failure(error)`, shorter than naming std::unexpected at every return.
[[nodiscard]] inline std::unexpected<error> failure(error why) noexcept {
    return std::unexpected<error>(why);
}

}  // namespace sluice

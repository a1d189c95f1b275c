#pragma once

#include "sluice/base/result.hpp"

namespace sluice::vfs {

/// Returns the code of an error; 0 for a success.
template <class T>
[[nodiscard]] int code(const result<T>& of) noexcept {
    return of ? 0 : of.error().code();
}

}  // namespace sluice::vfs

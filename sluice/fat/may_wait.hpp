#pragma once

#include <cerrno>
#include <cstdint>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"

namespace sluice::fat {

/// Permission for a call to wait: for a disk, for a thread that has locked the same bytes, or for a
/// commit.
enum class may_wait : bool { no, yes };

/// The error of a call that may not wait but would have to: EAGAIN.
inline constexpr error would_wait{EAGAIN, "do it without waiting"};

/// Locks the mutex of `guard`. Returns false if it may not wait and would have to.
template <class Guard>
[[nodiscard]] bool lock_if(Guard& guard, may_wait waits) {
    if (waits == may_wait::no) return guard.try_lock();
    guard.lock();
    return true;
}

/// The same as a deadline.
[[nodiscard]] constexpr deadline limit_of(may_wait waits) noexcept {
    return waits == may_wait::yes ? deadline() : deadline::zero();
}

}  // namespace sluice::fat

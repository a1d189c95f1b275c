#pragma once

#include <cerrno>
#include <cstdint>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"

namespace sluice::fat {

/// Whether a call may wait: for a disk, for who has the same bytes, or for a commit.
enum class may_wait : bool { no, yes };

/// What is said where it may not and would have to: EAGAIN.
inline constexpr error would_wait{EAGAIN, "do it without waiting"};

/// Locks what is not locked yet; false if it may not wait and would have to.
template <class Guard>
[[nodiscard]] bool lock_if(Guard& guard, may_wait waits) {
    if (waits == may_wait::no) return guard.try_lock();
    guard.lock();
    return true;
}

/// The same for who takes a deadline.
[[nodiscard]] constexpr deadline limit_of(may_wait waits) noexcept {
    return waits == may_wait::yes ? deadline() : deadline::zero();
}

}  // namespace sluice::fat

#pragma once

#include "sluice/io/call/system_call.hpp"
#include "sluice/io/loop/registration.hpp"

// Internal to io: what a registration records of its handle, and the system calls that the handle
// supports.

namespace sluice::io {

/// Records in `target` the calls that its handle supports; again whenever the handle's known
/// properties change.
inline void choose_calls(registration& target) noexcept {
    for (auto& half : target.halves)
        half.call = choose_call(target.native, half.which, wait::no);
}

/// Records that O_NONBLOCK is set on the description. Not with several threads, because another may
/// be reading it now; without the record, a transfer costs one more call.
inline void record_nonblocking(registration& target) noexcept {
    if (target.native.nonblocking or target.is_shared) return;
    target.native.nonblocking = true;
    choose_calls(target);
}

}  // namespace sluice::io

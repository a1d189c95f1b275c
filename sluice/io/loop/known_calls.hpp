#pragma once

#include "sluice/io/call/system_call.hpp"
#include "sluice/io/loop/registration.hpp"

// Internal to io: what a registration knows of its handle, and of the system calls that the handle takes.

namespace sluice::io {

/// Takes note in `target` of the calls its handle takes; again whenever what is known of the handle changes.
inline void choose_calls(registration& target) noexcept {
    for (auto& half : target.halves)
        half.call = choose_call(target.native, half.which, wait::no);
}

/// Takes note that O_NONBLOCK is set on the description. Not with several threads, since another may be
/// reading it now; without the note, a transfer costs one more call.
inline void note_nonblocking(registration& target) noexcept {
    if (target.native.nonblocking or target.is_shared) return;
    target.native.nonblocking = true;
    choose_calls(target);
}

}  // namespace sluice::io

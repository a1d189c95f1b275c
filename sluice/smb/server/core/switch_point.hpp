#pragma once

namespace sluice::smb::server {

/// A point at which another loop may change the state that loops share: a thread has just unlocked
/// a session, a file or a pipe, and holds no mutex. A simulation of several loops switches threads
/// there.
/// Thread safety: any thread; `reached` is set before the threads begin, and null outside
/// simulations.
struct switch_point {
    static inline constinit void (*reached)() noexcept = nullptr;

    static void mark() noexcept {
        if (reached != nullptr) [[unlikely]]
            reached();
    }
};

}  // namespace sluice::smb::server

#pragma once

namespace sluice::io {

namespace detail {

// The state to restore.
struct sigpipe_state {
    bool was_blocked = false;
    bool was_pending = false;
};

// Blocks SIGPIPE for the calling thread. One system call, or two.
[[nodiscard]] sigpipe_state block_sigpipe() noexcept;

// Discards a signal that has become pending since, if one may have, and restores the previous
// state. Keeps errno.
void unblock_sigpipe(sigpipe_state before, bool may_have_come) noexcept;

// The number of guards of the calling thread.
inline thread_local constinit unsigned sigpipe_guards = 0;

}  // namespace detail

/// Keeps SIGPIPE from the calling thread during its lifetime.
///
/// sendfile(2), splice(2) and writes to a pipe without a reader raise SIGPIPE; no flag prevents
/// it. Our transfers between handles (splice.hpp) suppress the signal. On a thread without a
/// guard, each call does so with two system calls. Under a guard they are not needed. So keep a
/// guard around the loop of a thread that sends files; the worker threads of multiplexers do. A
/// guard also covers writes to a pipe_handle: they fail with EPIPE, and without a guard they
/// raise the signal as well.
///
/// Guards may be nested. The last one that is destroyed restores the state that the first one
/// found: a signal that was blocked or pending before stays so, and one that became pending under
/// the guard is discarded. No other code may unblock SIGPIPE on this thread under a guard, and a
/// SIGPIPE that kill(2) sends to this thread is lost. Thread safety: created and destroyed on the
/// same thread. Allocates: nothing. Blocks: no.
class sigpipe_guard {
public:
    sigpipe_guard() noexcept;
    sigpipe_guard(const sigpipe_guard&) = delete;
    sigpipe_guard& operator=(const sigpipe_guard&) = delete;
    ~sigpipe_guard();

    /// Returns whether the calling thread has a guard.
    [[nodiscard]] static bool is_active() noexcept { return detail::sigpipe_guards != 0; }
};

}  // namespace sluice::io

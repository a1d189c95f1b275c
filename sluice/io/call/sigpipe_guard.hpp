#pragma once

namespace sluice::io {

namespace detail {

// What to put back.
struct sigpipe_state {
    bool was_blocked = false;
    bool was_pending = false;
};

// Blocks SIGPIPE for the calling thread. One system call, or two.
[[nodiscard]] sigpipe_state block_sigpipe() noexcept;

// Takes away one that has become pending meanwhile, if any may have, and puts back what was. Keeps errno.
void unblock_sigpipe(sigpipe_state before, bool may_have_come) noexcept;

// How many guards the calling thread has.
inline thread_local constinit unsigned sigpipe_guards = 0;

}  // namespace detail

/// Keeps SIGPIPE from the calling thread, for as long as it lives.
///
/// sendfile(2), splice(2) and writing to a pipe raise SIGPIPE when nobody reads any more, and cannot be told
/// not to. Our transfers between handles (splice.hpp) let none through; on a thread without a guard each call
/// sees to that by two system calls, some 0.5 us together, which is a tenth of what sending 4 KiB costs.
/// Within a guard they make none. So have one around the loop of a thread that sends files; the worker
/// threads of multiplexers do. It serves writing to a pipe_handle as well, which fails with EPIPE and
/// otherwise raises the signal, too.
///
/// May be nested; the last one to go puts back what the first one found: a signal that was blocked, or
/// pending, before stays so, and one that became pending meanwhile is taken away. In between nobody unblocks
/// SIGPIPE on this thread, and a SIGPIPE sent to this thread by kill(2) is lost. Thread safety: made and
/// destroyed on the same thread. Allocates: nothing. Blocks: no.
class sigpipe_guard {
public:
    sigpipe_guard() noexcept;
    sigpipe_guard(const sigpipe_guard&) = delete;
    sigpipe_guard& operator=(const sigpipe_guard&) = delete;
    ~sigpipe_guard();

    /// Whether the calling thread has one.
    [[nodiscard]] static bool is_active() noexcept { return detail::sigpipe_guards != 0; }
};

}  // namespace sluice::io

#include "sluice/io/call/sigpipe_guard.hpp"

#include <signal.h>

#include <cerrno>
#include <ctime>

#include "sluice/base/ensure.hpp"

namespace sluice::io {
namespace detail {
namespace {

sigset_t only_sigpipe() noexcept {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    return set;
}

// The state that the first guard of this thread found.
thread_local constinit sigpipe_state before_guards{};

}  // namespace

sigpipe_state block_sigpipe() noexcept {
    const sigset_t broken_pipe = only_sigpipe();
    sigset_t before;
    ENSURE(::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before) == 0);
    sigpipe_state found{.was_blocked = ::sigismember(&before, SIGPIPE) == 1};
    if (found.was_blocked) {  // otherwise it would have been delivered
        sigset_t pending;
        ENSURE(::sigpending(&pending) == 0);
        found.was_pending = ::sigismember(&pending, SIGPIPE) == 1;
    }
    return found;
}

void unblock_sigpipe(sigpipe_state before, bool may_have_come) noexcept {
    const int kept = errno;
    const sigset_t broken_pipe = only_sigpipe();
    if (may_have_come and not before.was_pending) {
        const timespec at_once{};
        while (::sigtimedwait(&broken_pipe, nullptr, &at_once) < 0 and errno == EINTR) {}
    }
    if (not before.was_blocked) ENSURE(::pthread_sigmask(SIG_UNBLOCK, &broken_pipe, nullptr) == 0);
    errno = kept;
}

}  // namespace detail

sigpipe_guard::sigpipe_guard() noexcept {
    if (detail::sigpipe_guards++ == 0) detail::before_guards = detail::block_sigpipe();
}

sigpipe_guard::~sigpipe_guard() {
    ENSURE(detail::sigpipe_guards != 0, "a guard ends on the thread it was made on");
    if (--detail::sigpipe_guards == 0) detail::unblock_sigpipe(detail::before_guards, true);
}

}  // namespace sluice::io

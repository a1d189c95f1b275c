#include "sluice/io/call/signal_set.hpp"

#include <pthread.h>
#include <sys/signalfd.h>

#include <csignal>

#include "sluice/base/ensure.hpp"

namespace sluice::io {
namespace {

sigset_t native_set(signal_set which) noexcept {
    sigset_t made;
    ::sigemptyset(&made);
    for (int number = 1; number <= signal_numbers_max; ++number)
        // Refuses signals of the C library.
        if (which.contains(number)) (void)::sigaddset(&made, number);
    return made;
}

}  // namespace

signal_set blocked_by_this_thread() noexcept {
    sigset_t mask;
    ENSURE(::pthread_sigmask(SIG_BLOCK, nullptr, &mask) == 0);
    signal_set blocked;
    for (int number = 1; number <= signal_numbers_max; ++number)
        if (::sigismember(&mask, number) == 1) blocked.insert(number);
    return blocked;
}

// A blocked fault signal kills the process without a message; the C library needs its own signals.
bool can_be_received(int number) noexcept {
    switch (number) {
        case SIGKILL:
        case SIGSTOP:
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP:
        case SIGSYS:
            return false;
        default:
            return number < __SIGRTMIN or number >= SIGRTMIN;
    }
}

signal_set receivable_signals() noexcept {
    signal_set all;
    for (int number = 1; number <= signal_numbers_max; ++number)
        if (can_be_received(number)) all.insert(number);
    return all;
}

blocked_signals::blocked_signals(signal_set which) noexcept : thread_(std::this_thread::get_id()) {
    newly_ = signal_set::from_bits(which.bits() & ~blocked_by_this_thread().bits());
    const sigset_t native = native_set(newly_);
    ENSURE(::pthread_sigmask(SIG_BLOCK, &native, nullptr) == 0);
}

blocked_signals::~blocked_signals() {
    ENSURE(thread_ == std::this_thread::get_id(), "signals are unblocked by the thread that blocked them");
    const sigset_t native = native_set(newly_);
    ENSURE(::pthread_sigmask(SIG_UNBLOCK, &native, nullptr) == 0);
}

int open_signal_descriptor(signal_set which) noexcept {
    const sigset_t native = native_set(which);
    return ::signalfd(-1, &native, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace sluice::io

#include "sluice/cli/serve/signals.hpp"

#include <csignal>
#include <utility>

namespace sluice::cli {

namespace {

[[nodiscard]] sigset_t handled() noexcept {
    sigset_t set;
    sigemptyset(&set);
    for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGUSR2})  // the last one: the destructor
        sigaddset(&set, one);
    return set;
}

}  // namespace

void block_signals() noexcept {
    const sigset_t set = handled();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

signals::signals(io::io_multiplexer& loop, std::function<void()> stopping, std::function<void()> stop,
                 std::function<void()> reload)
    : loop_(loop), stopping_(std::move(stopping)), stop_(std::move(stop)), reload_(std::move(reload)) {
    waiter_ = std::thread([this] { wait(); });
}

signals::~signals() {
    pthread_kill(waiter_.native_handle(), SIGUSR2);
    waiter_.join();
}

void signals::wait() {
    const sigset_t set = handled();
    for (;;) {
        int which = 0;
        if (sigwait(&set, &which) != 0) continue;
        if (which == SIGUSR2) return;
        if (which != SIGHUP) stopping_();
        // Without memory for the post, a reload would fail as well; a stop can be requested again.
        (void)loop_.post([this, which] { which == SIGHUP ? reload_() : stop_(); });
    }
}

}  // namespace sluice::cli

#include "sluice/io/stream/socket_testing.hpp"

#include <signal.h>
#include <sys/time.h>

namespace sluice::io::test_kit {

signal_storm::signal_storm() {
    struct sigaction quiet{};
    quiet.sa_handler = [](int) {};  // without SA_RESTART: calls return EINTR
    ::sigaction(SIGALRM, &quiet, nullptr);
    const itimerval often{.it_interval = {0, 300}, .it_value = {0, 300}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
}

// The handler stays: a signal may still be pending, and the default action would terminate the
// program.
signal_storm::~signal_storm() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
}

}  // namespace sluice::io::test_kit

#pragma once

#include <functional>
#include <thread>

#include "sluice/io/io_multiplexer.hpp"

namespace sluice::cli {

/// Turns signals into calls on a loop's thread: SIGINT and SIGTERM into `stop`, SIGHUP into `reload`. A
/// thread of its own waits for them, so no handler interrupts anything. Made before any other thread, so that
/// none of them takes the signals.
class signals {
public:
    signals(io::io_multiplexer& loop, std::function<void()> stop, std::function<void()> reload);
    signals(const signals&) = delete;
    signals& operator=(const signals&) = delete;
    ~signals();

private:
    void wait();

    io::io_multiplexer& loop_;
    std::function<void()> stop_;
    std::function<void()> reload_;
    std::thread waiter_;
};

}  // namespace sluice::cli

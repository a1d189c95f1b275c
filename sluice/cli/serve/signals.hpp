#pragma once

#include <functional>
#include <thread>

#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::cli {

/// Blocks the signals below in the calling thread and in every thread that it starts from now on.
/// Call it before the program has a second thread, and so before it creates a multiplexer: a signal
/// may be delivered to a thread that does not block it, and would end the program at once. Signals
/// that arrive in the meantime are pending until `signals` exists.
void block_signals() noexcept;

/// Turns signals into calls on a loop's thread: SIGINT and SIGTERM into `stop`, SIGHUP into
/// `reload`. A separate thread waits for them, so no handler interrupts anything. Requires
/// block_signals().
class signals {
public:
    /// `stopping` is called before `stop`, on the thread that waits for signals: also
    /// if the loop is stuck.
    signals(io::io_multiplexer& loop, std::function<void()> stopping, std::function<void()> stop,
            std::function<void()> reload);
    signals(const signals&) = delete;
    signals& operator=(const signals&) = delete;
    ~signals();

private:
    void wait();

    io::io_multiplexer& loop_;
    std::function<void()> stopping_;
    std::function<void()> stop_;
    std::function<void()> reload_;
    std::thread waiter_;
};

}  // namespace sluice::cli

#pragma once

#include <functional>
#include <thread>

#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::cli {

/// Keeps the signals below from the calling thread and every thread it starts from now on. To be called
/// before the program has a second thread, and so before it makes a multiplexer: a thread that does not block
/// a signal may be given it, and the program would end on the spot. What arrives meanwhile waits for
/// `signals`.
void block_signals() noexcept;

/// Turns signals into calls on a loop's thread: SIGINT and SIGTERM into `stop`, SIGHUP into `reload`. A
/// thread of its own waits for them, so no handler interrupts anything. Needs block_signals() before it.
class signals {
public:
    /// `stopping` is called before `stop`, on the thread that waits for signals: also if the loop is stuck.
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

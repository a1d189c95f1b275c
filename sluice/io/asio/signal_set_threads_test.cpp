// Signal sets of a context that two threads run. Runs under ThreadSanitizer.

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "sluice/io/asio/io_context_testing.hpp"
#include "sluice/io/asio/signal_set.hpp"

namespace sluice::io {
namespace {

namespace net = asio_names;

class asio_signals_by_threads : public test_kit::with_io_context {
protected:
    // Runs the context on two threads until it is out of work. They block the signals that the sets
    // of this thread receive.
    void run_on_both() {
        std::thread other([this] { context->run(); });
        context->run();
        other.join();
        context->restart();
    }
};
INSTANTIATE_TEST_SUITE_P(over, asio_signals_by_threads,
                         ::testing::ValuesIn(test_kit::io_context_kinds_for_threads()), test_kit::kind_name);

// Repeatedly waits for a signal, and sends the next one.
class waiter {
public:
    waiter(net::io_context& on, int number, int times) : signals_(on, number), number_(number), left_(times) {
        wait();
    }
    [[nodiscard]] int received() const { return received_; }
    void cancel() { signals_.cancel(); }

private:
    void wait() {
        signals_.async_wait([this](std::error_code why, int number) {
            if (why) return;
            received_ += number == number_ ? 1 : 0;
            if (--left_ == 0) return;
            wait();
            EXPECT_EQ(::kill(::getpid(), number_), 0);
        });
    }

    net::signal_set signals_;
    int number_;
    int left_;
    std::atomic<int> received_ = 0;
};

TEST_P(asio_signals_by_threads, get_every_signal_once) {
    constexpr int times = 200;
    waiter first(*context, SIGUSR1, times);
    waiter second(*context, SIGUSR2, times);
    ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
    ASSERT_EQ(::kill(::getpid(), SIGUSR2), 0);
    run_on_both();
    EXPECT_EQ(first.received(), times);
    EXPECT_EQ(second.received(), times);
}

TEST_P(asio_signals_by_threads, that_share_a_signal_each_get_it) {
    constexpr int times = 100;
    net::signal_set one(*context, SIGUSR1);
    net::signal_set other(*context, SIGUSR1);
    std::atomic<int> calls = 0;
    for (int i = 0; i < times; ++i) {
        for (net::signal_set* const each : {&one, &other})
            each->async_wait([&](std::error_code why, int) { calls += why ? 0 : 1; });
        ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
        run_on_both();
    }
    EXPECT_EQ(calls.load(), 2 * times);
}

TEST_P(asio_signals_by_threads, change_and_cancel_while_the_other_thread_waits) {
    // A signal that arrives after the cancellation waits until no set blocks it any more. It must
    // not terminate the program.
    const auto before = ::signal(SIGUSR1, SIG_IGN);
    for (int i = 0; i < 50; ++i) {
        net::signal_set signals(*context, SIGUSR1);
        std::atomic<int> ended = 0;
        signals.async_wait([&](std::error_code, int) { ++ended; });
        net::post(*context, [&] { signals.add(SIGUSR2); });
        net::post(*context, [&] { EXPECT_EQ(::kill(::getpid(), SIGUSR1), 0); });
        net::post(*context, [&] { signals.remove(SIGUSR2); });
        net::post(*context, [&] { signals.cancel(); });
        run_on_both();
        EXPECT_EQ(ended.load(), 1);
    }
    (void)::signal(SIGUSR1, before);
}

}  // namespace
}  // namespace sluice::io

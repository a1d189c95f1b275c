#include "sluice/io/asio/signal_set.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

namespace net = asio_names;

// The signals are sent to the process. This thread has blocked them by creating the sets.
void send(int number) {
    ASSERT_EQ(::kill(::getpid(), number), 0);
}

class asio_signals : public test_kit::with_io_context {};
INSTANTIATE_TEST_SUITE_P(over, asio_signals, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_signals, a_wait_ends_with_the_signal_and_earlier_arrivals_are_kept) {
    net::signal_set signals(*context, SIGUSR1, SIGUSR2);
    std::vector<int> got;
    signals.async_wait([&](std::error_code why, int number) {
        EXPECT_FALSE(why);
        got.push_back(number);
    });
    context->poll();
    EXPECT_TRUE(got.empty());
    send(SIGUSR2);
    context->run();  // which returns: no operation waits any more
    EXPECT_EQ(got, (std::vector{SIGUSR2}));

    send(SIGUSR1);
    send(SIGUSR2);
    context->restart();
    for (int i = 0; i < 2; ++i)
        signals.async_wait([&](std::error_code, int number) { got.push_back(number); });
    context->run();
    ASSERT_EQ(got.size(), 3U);
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, (std::vector{SIGUSR1, SIGUSR2, SIGUSR2}));
}

TEST_P(asio_signals, each_set_gets_the_signal) {
    net::signal_set one(*context, SIGUSR1);
    net::signal_set other(*context);
    other.add(SIGUSR1);
    other.add(SIGUSR1);  // no effect
    int calls = 0;
    one.async_wait([&](std::error_code, int) { ++calls; });
    other.async_wait([&](std::error_code, int) { ++calls; });
    context->poll();
    send(SIGUSR1);
    context->run();
    EXPECT_EQ(calls, 2);
}

TEST_P(asio_signals, cancelling_and_destroying_abort_the_wait) {
    auto signals = std::make_unique<net::signal_set>(*context, SIGUSR1);
    int aborted = 0;
    auto count = [&](std::error_code why, int) { aborted += why == asio::error::operation_aborted; };
    signals->async_wait(count);
    context->poll();
    signals->cancel();
    context->run();
    EXPECT_EQ(aborted, 1);
    context->restart();
    signals->async_wait(count);
    signals->async_wait(count);
    context->poll();
    signals.reset();
    context->run();
    EXPECT_EQ(aborted, 3);
}

TEST_P(asio_signals, a_signal_that_is_removed_is_not_received) {
    net::signal_set kept(*context, SIGUSR1);  // keeps it from terminating the process
    net::signal_set signals(*context, SIGUSR1, SIGUSR2);
    std::vector<int> got;
    signals.async_wait([&](std::error_code, int number) { got.push_back(number); });
    context->poll();
    signals.remove(SIGUSR1);
    context->poll();
    int kept_got = 0;
    kept.async_wait([&](std::error_code, int number) { kept_got = number; });
    send(SIGUSR1);
    send(SIGUSR2);
    context->run();
    EXPECT_EQ(got, (std::vector{SIGUSR2}));
    EXPECT_EQ(kept_got, SIGUSR1);
    context->restart();
    signals.async_wait([&](std::error_code why, int) { EXPECT_EQ(why, asio::error::operation_aborted); });
    context->poll();
    signals.add(SIGUSR1);  // while a wait is pending
    signals.clear();
    signals.cancel();
    context->run();
}

TEST_P(asio_signals, one_that_cannot_be_received_is_refused) {
    net::signal_set signals(*context);
    EXPECT_THROW(signals.add(SIGKILL), asio::system_error);
    EXPECT_THROW(signals.add(0), asio::system_error);
    EXPECT_THROW(signals.add(65), asio::system_error);
}

TEST_P(asio_signals, the_mask_is_restored_when_the_last_set_goes) {
    auto is_blocked = [] {
        sigset_t now;
        ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
        return sigismember(&now, SIGUSR1) == 1;
    };
    ASSERT_FALSE(is_blocked());
    {
        net::signal_set one(*context, SIGUSR1);
        {
            net::signal_set other(*context, SIGUSR1);
            context->run();
        }
        EXPECT_TRUE(is_blocked());
    }
    EXPECT_FALSE(is_blocked());
}

TEST_P(asio_signals, a_context_is_destroyed_while_a_set_waits) {
    {
        net::signal_set signals(*context, SIGUSR1);
        signals.async_wait([](std::error_code, int) { FAIL(); });
        context->poll();
    }
    context.reset();
}

}  // namespace
}  // namespace sluice::io

// Signals as completions: each form, over each multiplexer, for several receivers.

#include "sluice/io/stream/signal_receiver.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace test_kit;

const signal_set ours{SIGUSR1, SIGUSR2, SIGHUP, SIGCHLD};

// Before main: all threads inherit the mask.
const blocked_signals blocked(ours);

void send(int number) {
    ASSERT_EQ(::kill(::getpid(), number), 0);
}

std::vector<multiplexer_kind> all_multiplexers() {
    auto kinds = multiplexer_kinds();
    kinds.push_back({"simulated", []() -> result<std::unique_ptr<io_multiplexer>> {
                         auto made = make_simulated_multiplexer(simulation_options::adversarial(7));
                         if (not made) return failure(made.error());
                         return std::move(*made);
                     }});
    return kinds;
}

class signals : public ::testing::TestWithParam<multiplexer_kind> {
protected:
    void SetUp() override {
        auto made = GetParam().make();
        if (not made) GTEST_SKIP() << "no " << GetParam().name << " here: " << made.error().message();
        multiplexer = std::move(*made);
    }
    signal_receiver receiver(signal_set which = ours) {
        auto made = signal_receiver::create(source, which).value();
        EXPECT_TRUE(made.set_multiplexer(multiplexer.get()).has_value());
        return made;
    }
    template <class Condition>
    void run_until(Condition done) {
        while (not done())
            (void)multiplexer->try_run_for(10ms);
    }

    std::unique_ptr<io_multiplexer> multiplexer;
    signal_source source = signal_source::create(ours).value();
};

TEST_P(signals, the_blocking_form_returns_the_number_and_the_sender) {
    auto one = receiver();
    send(SIGUSR1);
    const auto got = one.wait(1h);
    ASSERT_TRUE(got.has_value()) << got.error().message();
    EXPECT_EQ(got->number, SIGUSR1);
    EXPECT_EQ(got->process, ::getpid());
    EXPECT_EQ(got->user, ::getuid());
    EXPECT_EQ(got->occurrences, 1U);
    EXPECT_EQ(one.wait(deadline::zero()).error(), std::errc::timed_out);
}

TEST_P(signals, a_sender_completes_when_the_signal_arrives) {
    auto one = receiver();
    recorded wait(async_wait_signal(one));
    wait.start();
    (void)multiplexer->try_run();
    EXPECT_FALSE(wait.done());
    send(SIGUSR2);
    run_until([&] { return wait.done(); });
    ASSERT_TRUE(wait.value().has_value()) << wait.value().error().message();
    EXPECT_EQ(wait.value()->number, SIGUSR2);
}

task<int> first_two(signal_receiver& from) {
    const auto first = co_await co_wait_signal(from);
    const auto second = co_await co_wait_signal(from);
    co_return first->number * 100 + second->number;
}

TEST_P(signals, a_coroutine_gets_one_after_the_other) {
    auto one = receiver();
    send(SIGUSR2);
    send(SIGUSR1);
    EXPECT_EQ(sync_wait(*multiplexer, first_two(one)), SIGUSR1 * 100 + SIGUSR2);
}

TEST_P(signals, each_of_two_receivers_gets_every_signal) {
    auto one = receiver();
    auto two = receiver();
    recorded first(async_wait_signal(one));
    recorded second(async_wait_signal(two));
    for (const int number : {SIGUSR1, SIGUSR2, SIGUSR1}) {
        first.start();
        second.start();
        (void)multiplexer->try_run();
        send(number);
        run_until([&] { return first.done() and second.done(); });
        EXPECT_EQ(first.value()->number, number);
        EXPECT_EQ(second.value()->number, number);
    }
}

TEST_P(signals, receivers_of_different_signals_wait_independently) {
    auto hangups = receiver({SIGHUP});
    auto users = receiver({SIGUSR1});
    recorded on_hangup(async_wait_signal(hangups));
    recorded on_user(async_wait_signal(users));
    on_hangup.start();
    on_user.start();
    send(SIGUSR1);
    run_until([&] { return on_user.done(); });
    EXPECT_EQ(on_user.value()->number, SIGUSR1);
    EXPECT_FALSE(on_hangup.done());
    send(SIGHUP);
    run_until([&] { return on_hangup.done(); });
    EXPECT_EQ(on_hangup.value()->number, SIGHUP);
}

TEST_P(signals, a_signal_that_arrives_while_nothing_waits_is_kept_for_each_receiver) {
    auto one = receiver();
    auto two = receiver();
    send(SIGUSR1);
    EXPECT_EQ(one.wait(1h)->number, SIGUSR1);  // it reads for both
    recorded wait(async_wait_signal(two));
    wait.start();
    run_until([&] { return wait.done(); });
    EXPECT_EQ(wait.value()->number, SIGUSR1);
}

TEST_P(signals, signals_of_one_number_are_counted_and_take_no_more_memory) {
    auto one = receiver();
    auto reader = receiver();
    constexpr std::uint64_t many = 1000;
    for (std::uint64_t i = 0; i != many; ++i) {
        send(SIGUSR1);
        ASSERT_EQ(reader.wait(1h)->number, SIGUSR1);
    }
    const auto got = one.wait(1h);
    EXPECT_EQ(got->number, SIGUSR1);
    EXPECT_EQ(got->occurrences, many);
    EXPECT_EQ(one.wait(deadline::zero()).error(), std::errc::timed_out);
}

TEST_P(signals, the_end_of_a_child_is_reported_with_its_status) {
    auto one = receiver({SIGCHLD});
    const pid_t child = ::fork();
    if (child == 0) ::_exit(7);
    recorded wait(async_wait_signal(one));
    wait.start();
    // In simulated time the child would never end.
    if (GetParam().name == "simulated") ASSERT_EQ(::waitid(P_PID, child, nullptr, WEXITED | WNOWAIT), 0);
    run_until([&] { return wait.done(); });
    EXPECT_EQ(wait.value()->process, child);
    EXPECT_EQ(wait.value()->value, 7);
    ::waitpid(child, nullptr, 0);
}

TEST_P(signals, a_deadline_and_a_cancellation_end_a_wait_and_lose_no_signal) {
    auto one = receiver();
    recorded timed(async_wait_signal(one, 1ms));
    timed.start();
    run_until([&] { return timed.done(); });
    EXPECT_EQ(timed.value().error(), std::errc::timed_out);
    recorded cancelled(async_wait_signal(one));
    cancelled.start();
    (void)multiplexer->try_run();
    cancelled.cancel();
    run_until([&] { return cancelled.done(); });
    EXPECT_EQ(cancelled.value().error(), std::errc::operation_canceled);
    send(SIGUSR1);
    EXPECT_EQ(one.wait(1h)->number, SIGUSR1);
}

TEST_P(signals, a_receiver_may_outlive_its_source_and_be_moved) {
    auto own = std::make_unique<signal_source>(source);
    auto one = signal_receiver::create(*own).value();
    own.reset();
    auto moved = std::move(one);
    send(SIGUSR1);
    EXPECT_EQ(moved.wait(1h)->number, SIGUSR1);
}

TEST_P(signals, a_cancel_from_another_thread_races_with_the_signal_and_none_is_lost) {
    auto one = receiver();
    const io_multiplexer::work_guard guard(*multiplexer);
    (void)multiplexer->try_run();  // makes this thread its owner
    for (int round = 0; round < 300; ++round) {
        outcome<result<signal_event>> came;
        atomic_io_operation_connection<signal_sender, recorder<result<signal_event>>> state(
            async_wait_signal(one), {&came});
        state.start();
        std::thread canceller([&] { state.cancel(); });
        send(SIGUSR1);
        while (came.dones == 0)
            (void)multiplexer->try_run();
        canceller.join();
        while (multiplexer->try_run().value_or(0) > 0) {}
        ASSERT_EQ(came.dones, 1);
        if (not came.value->has_value()) {
            ASSERT_EQ(came.value->error(), std::errc::operation_canceled);
            ASSERT_EQ(one.wait(1h)->number, SIGUSR1);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(each, signals, ::testing::ValuesIn(all_multiplexers()), kind_name);

class signal_loops : public ::testing::TestWithParam<multiplexer_kind> {};

TEST_P(signal_loops, receivers_on_two_threads_both_get_every_signal) {
    if (const auto made = GetParam().make(); not made) GTEST_SKIP() << made.error().message();
    const auto source = signal_source::create(ours).value();
    constexpr int rounds = 200;
    std::atomic<int> ready{0};
    std::atomic<int> got{0};
    const auto receive = [&] {
        auto loop = GetParam().make().value();
        auto one = signal_receiver::create(source, {SIGUSR1}).value();
        ASSERT_TRUE(one.set_multiplexer(loop.get()).has_value());
        ++ready;
        for (int round = 0; round < rounds; ++round) {
            recorded wait(async_wait_signal(one));
            wait.start();
            while (not wait.done())
                (void)loop->run();
            ASSERT_EQ(wait.value()->number, SIGUSR1);
            ++got;
        }
    };
    std::thread first(receive);
    std::thread second(receive);
    while (ready.load() != 2)
        std::this_thread::yield();
    for (int round = 1; round <= rounds; ++round) {
        send(SIGUSR1);
        while (got.load() != 2 * round)
            std::this_thread::yield();
    }
    first.join();
    second.join();
}

INSTANTIATE_TEST_SUITE_P(each, signal_loops, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

TEST(signal_source, an_unsupported_signal_is_refused_by_name) {
    for (const int bad : {SIGKILL, SIGSTOP, SIGSEGV, SIGFPE, 32}) {
        const auto refused = signal_source::create({bad});
        ASSERT_FALSE(refused.has_value()) << bad;
        EXPECT_EQ(refused.error(), std::errc::invalid_argument);
        EXPECT_NE(refused.error().message().find(std::to_string(bad)), std::string::npos);
    }
    EXPECT_NE(signal_source::create({SIGKILL}).error().message().find("SIGKILL"), std::string::npos);
    EXPECT_FALSE(signal_source::create({}).has_value());
    EXPECT_FALSE(signal_source::create({SIGUSR1, 65}).has_value());
    EXPECT_FALSE(signal_source::create({0}).has_value());
}

TEST(signal_source, a_signal_that_the_thread_does_not_block_is_refused_by_name) {
    const auto refused = signal_source::create({SIGTERM});
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message().find("SIGTERM"), std::string::npos) << refused.error().message();
    {
        const blocked_signals now({SIGTERM, SIGUSR1});
        EXPECT_EQ(now.newly_blocked(), signal_set({SIGTERM}));
        EXPECT_TRUE(signal_source::create({SIGTERM}).has_value());
    }
    EXPECT_FALSE(signal_source::create({SIGTERM}).has_value());
    EXPECT_TRUE(signal_source::create({SIGUSR1}).has_value());
}

TEST(signal_source, the_mask_that_every_thread_needs_is_stated) {
    EXPECT_EQ(signal_source::create(ours)->signals(), ours);
}

TEST(signal_source, a_receiver_asks_only_for_what_its_source_receives) {
    const auto source = signal_source::create({SIGUSR1}).value();
    EXPECT_EQ(signal_receiver::create(source, {SIGUSR2}).error(), std::errc::invalid_argument);
    EXPECT_EQ(signal_receiver::create(source, {}).error(), std::errc::invalid_argument);
}

}  // namespace
}  // namespace sluice::io

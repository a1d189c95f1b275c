#include "sluice/io/asio/context.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
namespace net = asio_names;

class asio_contexts : public test_kit::with_io_context {};
INSTANTIATE_TEST_SUITE_P(over, asio_contexts, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_contexts, running_out_of_work_stops_until_restart) {
    int runs = 0;
    EXPECT_FALSE(context->stopped());
    net::post(*context, [&] { ++runs; });
    EXPECT_EQ(context->run(), 1U);
    EXPECT_TRUE(context->stopped());
    net::post(*context, [&] { ++runs; });
    EXPECT_EQ(context->run(), 0U);
    EXPECT_EQ(runs, 1);
    context->restart();
    EXPECT_FALSE(context->stopped());
    EXPECT_EQ(context->run(), 1U);
    EXPECT_EQ(runs, 2);
}

TEST_P(asio_contexts, stop_in_a_handler_leaves_the_rest_for_later) {
    std::vector<int> order;
    net::steady_timer never(*context, 24h);
    never.async_wait(
        [&](asio::error_code why) { order.push_back(why == asio::error::operation_aborted ? 9 : 8); });
    net::post(*context, [&] {
        order.push_back(1);
        context->stop();
    });
    net::post(*context, [&] { order.push_back(2); });
    EXPECT_EQ(context->run(), 1U);
    EXPECT_EQ(order, (std::vector{1}));
    context->restart();
    net::post(*context, [&] { never.cancel(); });
    EXPECT_EQ(context->run(), 3U);
    EXPECT_EQ(order, (std::vector{1, 2, 9}));
}

TEST_P(asio_contexts, stop_on_another_thread_wakes_a_loop_that_sleeps) {
    auto work = net::make_work_guard(*context);
    std::promise<void> runs;
    net::post(*context, [&] { runs.set_value(); });
    std::thread loop([&] { EXPECT_EQ(context->run(), 1U); });
    runs.get_future().wait();
    context->stop();
    loop.join();
    EXPECT_TRUE(context->stopped());
}

TEST_P(asio_contexts, run_one_and_poll_one_run_one_handler_and_poll_all_that_are_ready) {
    int runs = 0;
    for (int i = 0; i < 5; ++i)
        net::post(*context, [&] { ++runs; });
    EXPECT_EQ(context->run_one(), 1U);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(context->poll_one(), 1U);
    EXPECT_EQ(runs, 2);
    net::steady_timer later(*context, 24h);
    later.async_wait([&](asio::error_code) { ++runs; });
    EXPECT_EQ(context->poll(), 3U);
    EXPECT_EQ(runs, 5);
    EXPECT_FALSE(context->stopped());  // the timer is pending
    EXPECT_EQ(context->run_for(1ms), 0U);
    EXPECT_EQ(context->run_one_for(1ms), 0U);
    EXPECT_EQ(context->run_until(std::chrono::steady_clock::now()), 0U);
    EXPECT_EQ(context->run_one_until(std::chrono::steady_clock::now()), 0U);
    later.cancel();
    EXPECT_EQ(context->run_one(), 1U);
    EXPECT_EQ(context->run(), 0U);
    EXPECT_TRUE(context->stopped());
}

TEST_P(asio_contexts, several_threads_may_run_it_and_all_return_when_it_stops) {
    std::atomic<int> runs{0};
    auto work = net::make_work_guard(*context);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] { context->run(); });
    for (int i = 0; i < 100; ++i)
        net::post(*context, [&] {
            if (++runs == 100) context->stop();
        });
    for (auto& each : threads)
        each.join();
    EXPECT_EQ(runs, 100);
}

TEST_P(asio_contexts, a_thread_that_does_not_run_it_leaves_at_its_time) {
    auto work = net::make_work_guard(*context);
    std::promise<void> runs;
    net::post(*context, [&] { runs.set_value(); });
    std::thread loop([&] { context->run(); });
    runs.get_future().wait();
    EXPECT_EQ(context->poll(), 0U);
    EXPECT_EQ(context->run_for(1ms), 0U);
    work.reset();
    loop.join();
}

// Counts its destructions, which destroy the handlers' state.
struct witness {
    explicit witness(int& of) : destroyed(&of) {}
    ~witness() { ++*destroyed; }
    int* destroyed;
};

net::awaitable<void> wait_for_ever(std::shared_ptr<witness> kept, net::ip::udp::socket socket) {
    std::array<char, 16> into{};
    (void)co_await socket.async_receive(asio::buffer(into), asio::use_awaitable);
    kept.reset();
}

TEST_P(asio_contexts, destruction_destroys_pending_handlers_without_invoking_them) {
    int destroyed = 0;
    int invoked = 0;
    auto hold = [&] { return std::make_shared<witness>(destroyed); };
    auto any_v4 = net::ip::udp::endpoint(asio::ip::address_v4::loopback(), 0);
    net::co_spawn(*context, wait_for_ever(hold(), net::ip::udp::socket(*context, any_v4)), asio::detached);
    net::post(*context, [kept = hold(), &invoked] { ++invoked; });
    auto timer = std::make_unique<net::steady_timer>(*context, 24h);
    timer->async_wait([kept = hold(), &invoked](asio::error_code) { ++invoked; });
    std::optional strand(net::make_strand(*context));  // must not outlive the context
    net::post(*strand, [&] { context->stop(); });
    net::post(*strand, [kept = hold(), &invoked] { ++invoked; });
    context->run();
    timer.reset();
    net::post(*context, [kept = hold(), &invoked] { ++invoked; });
    const int before = invoked;
    strand.reset();
    context.reset();
    EXPECT_EQ(invoked, before);
    EXPECT_EQ(destroyed, 5);
}

TEST_P(asio_contexts, destruction_ends_operations_of_a_context_that_never_ran) {
    int destroyed = 0;
    {
        net::ip::udp::socket socket(*context, net::ip::udp::v4());
        socket.async_wait(net::ip::udp::socket::wait_read,
                          [kept = std::make_shared<witness>(destroyed)](asio::error_code) { FAIL(); });
    }
    context.reset();
    EXPECT_EQ(destroyed, 1);
}

TEST_P(asio_contexts, objects_may_be_used_and_destroyed_on_other_threads_than_the_loop) {
    auto work = net::make_work_guard(*context);
    std::thread loop([&] { context->run(); });
    for (int i = 0; i < 50; ++i) {
        net::ip::udp::socket one(*context, {asio::ip::address_v4::loopback(), 0});
        net::ip::udp::socket other(*context, {asio::ip::address_v4::loopback(), 0});
        std::array<char, 16> into{};
        auto got = one.async_receive(asio::buffer(into), asio::use_future);
        auto sent = other.async_send_to(asio::buffer("abc", 3), one.local_endpoint(), asio::use_future);
        EXPECT_EQ(sent.get(), 3U);
        EXPECT_EQ(got.get(), 3U);
    }
    context->stop();
    loop.join();
}

class asio_contexts_for_threads : public test_kit::with_io_context {
protected:
    void SetUp() override {
        with_io_context::SetUp();
        if (multiplexer != nullptr and not multiplexer->is_for_threads()) GTEST_SKIP() << "for one thread";
    }
};
INSTANTIATE_TEST_SUITE_P(over, asio_contexts_for_threads, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_contexts_for_threads, one_thread_after_the_other_runs_it_and_another_destroys_what_is_left) {
    int destroyed = 0;
    int runs = 0;
    for (int i = 0; i < 3; ++i) {
        context->restart();
        net::post(*context, [&] {
            ++runs;
            auto timer = std::make_shared<net::steady_timer>(*context, 24h);
            timer->async_wait(
                [timer, kept = std::make_shared<witness>(destroyed)](asio::error_code) { FAIL(); });
            context->stop();
        });
        std::thread([&] { context->run(); }).join();
    }
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(destroyed, 0);
    context.reset();
    EXPECT_EQ(destroyed, 3);
}

TEST_P(asio_contexts_for_threads, a_thread_that_waits_takes_over_from_one_that_leaves) {
    auto work = net::make_work_guard(*context);
    std::promise<void> taken_over;
    std::thread first([&] { EXPECT_EQ(context->run_one(), 1U); });
    std::thread second([&] { context->run_one(); });
    // One of them runs each handler.
    net::post(*context, [] {});
    net::post(*context, [&] { taken_over.set_value(); });
    taken_over.get_future().wait();
    first.join();
    second.join();
}

TEST(asio_context, owns_a_multiplexer_unless_given_one) {
    int runs = 0;
    net::io_context context(1);
    net::post(context, [&] { ++runs; });
    context.run();
    EXPECT_EQ(runs, 1);
}

TEST(asio_context, an_executor_of_another_context_is_refused) {
    asio::io_context other;
    EXPECT_THROW(net::ip::tcp::socket{asio::any_io_executor(other.get_executor())}, asio::system_error);
    EXPECT_THROW(net::steady_timer{asio::any_io_executor(other.get_executor())}, asio::system_error);
}

}  // namespace
}  // namespace sluice::io

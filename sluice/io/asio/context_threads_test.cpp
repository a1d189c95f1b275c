// A context that several threads run at once.

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/experimental/awaitable_operators.hpp>
#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
namespace net = asio_names;
using net::ip::tcp;

class asio_threads : public test_kit::with_io_context {
protected:
    static constexpr int threads = 4;

    // Runs the context on several threads until it is out of work.
    void run_on_all() {
        std::vector<std::thread> others;
        for (int i = 1; i < threads; ++i)
            others.emplace_back([this] { context->run(); });
        context->run();
        for (auto& each : others)
            each.join();
    }
};
INSTANTIATE_TEST_SUITE_P(over, asio_threads, ::testing::ValuesIn(test_kit::io_context_kinds_for_threads()),
                         test_kit::kind_name);

TEST_P(asio_threads, run_handlers_at_the_same_time) {
    std::latch all(threads);  // each handler waits for the others
    for (int i = 0; i < threads; ++i)
        net::post(*context, [&] { all.arrive_and_wait(); });
    run_on_all();
    EXPECT_TRUE(all.try_wait());
    EXPECT_TRUE(context->stopped());
}

// One thread is in the multiplexer's run(), which the context does not know, and sleeps.
TEST_P(asio_threads, stop_ends_the_run_of_the_multiplexer_itself) {
    net::steady_timer never(*context, 60s);
    bool has_expired = false;
    never.async_wait([&](std::error_code why) { has_expired = not why; });
    std::thread sleeper([&] {
        while (not context->stopped())
            (void)multiplexer->run();
    });
    const auto here = std::this_thread::get_id();
    std::atomic<bool> has_stopped = false;
    while (not has_stopped.load()) {
        net::post(*context, [&] {
            if (std::this_thread::get_id() != here) return;
            std::this_thread::sleep_for(5ms);  // the other one falls asleep
            context->stop();
            has_stopped = true;
        });
        context->poll();
    }
    sleeper.join();
    EXPECT_FALSE(has_expired);
    never.cancel();
}

TEST_P(asio_threads, run_the_handlers_of_a_strand_one_at_a_time_and_in_order) {
    auto strand = net::make_strand(*context);
    std::vector<int> order;  // not guarded otherwise
    for (int i = 0; i < 2000; ++i)
        net::post(strand, [&, i] { order.push_back(i); });
    run_on_all();
    ASSERT_EQ(order.size(), 2000U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(asio_threads, all_return_when_one_stops_the_context) {
    auto work = net::make_work_guard(*context);
    for (int i = 0; i < 100; ++i)
        net::post(*context, [] {});
    net::post(*context, [&] { context->stop(); });
    run_on_all();
    EXPECT_TRUE(context->stopped());
}

TEST_P(asio_threads, rethrow_exceptions_of_their_own_handlers) {
    auto work = net::make_work_guard(*context);
    std::atomic<int> caught{0};
    for (int i = 0; i < threads; ++i)
        net::post(*context, [] { throw 1; });
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] {
            for (;;) {
                try {
                    context->run();
                    return;
                } catch (int) {
                    if (++caught == threads) context->stop();
                }
            }
        });
    }
    for (auto& each : all)
        each.join();
    EXPECT_EQ(caught, threads);
}

net::awaitable<void> echo(tcp::socket socket) {
    std::array<char, 64> data{};
    asio::error_code why;
    for (;;) {
        const std::size_t count = co_await socket.async_read_some(
            asio::buffer(data), asio::redirect_error(asio::use_awaitable, why));
        if (why) co_return;
        co_await asio::async_write(socket, asio::buffer(data, count),
                                   asio::redirect_error(asio::use_awaitable, why));
    }
}

net::awaitable<void> serve(tcp::acceptor& acceptor, int connections) {
    for (int i = 0; i < connections; ++i) {
        auto strand = net::make_strand(acceptor.get_executor());
        tcp::socket socket(strand);
        co_await acceptor.async_accept(socket, asio::use_awaitable);
        asio::co_spawn(strand, echo(std::move(socket)), asio::detached);
    }
}

net::awaitable<int> ask(tcp::endpoint server, int times) {
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(server, asio::use_awaitable);
    std::array<char, 8> back{};
    int answers = 0;
    for (int i = 0; i < times; ++i) {
        co_await asio::async_write(socket, asio::buffer("question", 8), asio::use_awaitable);
        answers += co_await asio::async_read(socket, asio::buffer(back), asio::use_awaitable) == 8;
    }
    co_return answers;
}

TEST_P(asio_threads, serve_connections_on_strands) {
    constexpr int clients = 16;
    constexpr int questions = 30;
    tcp::acceptor acceptor(*context, {asio::ip::address_v4::loopback(), 0});
    asio::co_spawn(net::make_strand(*context), serve(acceptor, clients), asio::detached);
    std::atomic<int> answers{0};
    for (int i = 0; i < clients; ++i) {
        asio::co_spawn(net::make_strand(*context), ask(acceptor.local_endpoint(), questions),
                       [&](const std::exception_ptr& why, int got) {
                           EXPECT_EQ(why, nullptr);
                           answers += got;
                       });
    }
    run_on_all();
    EXPECT_EQ(answers, clients * questions);
}

// The first to come cancels the other, by its slot, on the strand, while threads complete both.
net::awaitable<int> race(int times) {
    net::steady_timer one(co_await asio::this_coro::executor);
    net::steady_timer other(co_await asio::this_coro::executor);
    int ended = 0;
    for (int i = 0; i < times; ++i) {
        one.expires_after(std::chrono::microseconds(i % 7));
        other.expires_after(std::chrono::microseconds(i % 5));
        (void)co_await (one.async_wait(asio::use_awaitable) || other.async_wait(asio::use_awaitable));
        ++ended;
    }
    co_return ended;
}

TEST_P(asio_threads, cancel_by_slots_operations_that_other_threads_complete) {
    std::atomic<int> ended{0};
    for (int i = 0; i < 8; ++i) {
        asio::co_spawn(net::make_strand(*context), race(100), [&](const std::exception_ptr& why, int count) {
            EXPECT_EQ(why, nullptr);
            ended += count;
        });
    }
    run_on_all();
    EXPECT_EQ(ended, 800);
}

TEST_P(asio_threads, complete_operations_that_other_threads_start_cancel_and_destroy) {
    auto work = net::make_work_guard(*context);
    std::vector<std::thread> loops;
    for (int i = 0; i < threads; ++i)
        loops.emplace_back([this] { context->run(); });
    std::atomic<int> handlers{0};
    int started = 0;
    for (int i = 0; i < 200; ++i) {
        auto ends = std::make_unique<std::array<tcp::socket, 2>>(
            std::array{tcp::socket(*context), tcp::socket(*context)});
        int native[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, native), 0);
        (*ends)[0].assign(tcp::v4(), native[0]);
        (*ends)[1].assign(tcp::v4(), native[1]);
        auto into = std::make_shared<std::array<char, 8>>();
        for (int k = 0; k < 3; ++k, ++started)
            (*ends)[0].async_read_some(asio::buffer(*into),
                                       [&, into](asio::error_code, std::size_t) { ++handlers; });
        if (i % 2 == 0) (*ends)[1].write_some(asio::buffer("abc", 3));
        if (i % 3 == 0) (*ends)[0].cancel();
    }
    work.reset();
    for (auto& each : loops)
        each.join();
    EXPECT_EQ(handlers, started);
}

TEST_P(asio_threads, look_up_names) {
    std::atomic<int> found{0};
    tcp::resolver resolver(*context);
    for (int i = 0; i < 200; ++i) {
        net::post(*context, [&] {
            resolver.async_resolve(
                "127.0.0.1", "80",
                [&](asio::error_code why, const tcp::resolver::results_type&) { found += not why; });
        });
    }
    for (int i = 0; i < 20; ++i)
        resolver.async_resolve("localhost", "80",
                               [&](asio::error_code, const tcp::resolver::results_type&) { ++found; });
    run_on_all();
    EXPECT_EQ(found, 220);
}

}  // namespace
}  // namespace sluice::io

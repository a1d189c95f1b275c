#include "sluice/io/asio/asio.hpp"

#include <gtest/gtest.h>

#include <array>
#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/io/best_available.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using executor = asio_context::executor_type;

static_assert(asio::execution::is_executor<executor>::value);
static_assert(asio::can_require<executor, asio::execution::blocking_t::never_t>::value);
static_assert(asio::can_prefer<executor, asio::execution::outstanding_work_t::tracked_t>::value);
static_assert(asio::can_query<executor, asio::execution::context_t>::value);
static_assert(std::is_convertible_v<executor, asio::any_io_executor>);
static_assert(asio::execution::is_executor<decltype(asio::require(
                  std::declval<executor>(), asio::execution::outstanding_work.tracked))>::value);

class asio_test : public testing::Test {
public:
    void SetUp() override {
        auto ends = socket_handle::pair().value();
        near.emplace(asio_stream<socket_handle>::make(context, std::move(ends.first)).value());
        far.emplace(asio_stream<socket_handle>::make(context, std::move(ends.second)).value());
    }
    void TearDown() override {
        near.reset();
        far.reset();
        if (not ran_elsewhere) run();
    }

    // Runs until no operation is pending. May be called again.
    std::size_t run() {
        context.restart();
        return context.run();
    }

    std::unique_ptr<io_multiplexer> multiplexer = best_available(1, 0).value();
    asio_context context{*multiplexer};
    std::optional<asio_stream<socket_handle>> near, far;
    std::array<char, 64> into{};
    bool ran_elsewhere = false;
};

TEST_F(asio_test, a_read_completes_from_the_loop_even_if_the_data_is_there) {
    ASSERT_EQ(asio::write(*far, asio::buffer("hello", 5)), 5U);
    std::size_t got = 0;
    near->async_read_some(asio::buffer(into), [&](asio::error_code why, std::size_t count) {
        EXPECT_FALSE(why);
        EXPECT_TRUE(context.running_in_this_thread());
        got = count;
    });
    EXPECT_EQ(got, 0U);
    run();
    EXPECT_EQ(got, 5U);
    // Again from the thread that owns the multiplexer now, where start() is direct.
    ASSERT_EQ(asio::write(*far, asio::buffer("again!", 6)), 6U);
    got = 0;
    near->async_read_some(asio::buffer(into), [&](asio::error_code, std::size_t count) { got = count; });
    EXPECT_EQ(got, 0U);
    run();
    EXPECT_EQ(got, 6U);
}

TEST_F(asio_test, the_end_of_file_is_eof_and_an_empty_read_is_not) {
    asio::error_code empty_read, end;
    near->async_read_some(asio::buffer(into, 0),
                          [&](asio::error_code why, std::size_t) { empty_read = why; });
    run();
    EXPECT_FALSE(empty_read);
    far.reset();
    near->async_read_some(asio::buffer(into), [&](asio::error_code why, std::size_t) { end = why; });
    run();
    EXPECT_EQ(end, asio::error::eof);
    asio::error_code blocking;
    EXPECT_EQ(near->read_some(asio::buffer(into), blocking), 0U);
    EXPECT_EQ(blocking, asio::error::eof);
    EXPECT_THROW((void)near->read_some(asio::buffer(into)), asio::system_error);
}

TEST_F(asio_test, an_error_keeps_its_errno) {
    asio::error_code seen;
    far.reset();
    near->async_write_some(asio::buffer("x", 1), [&](asio::error_code why, std::size_t) { seen = why; });
    run();
    EXPECT_EQ(seen, asio::error::broken_pipe);
}

TEST_F(asio_test, composed_reads_and_writes_move_everything) {
    const std::string sent(1U << 20U, 's');
    std::string got(sent.size(), ' ');
    std::size_t read = 0, written = 0;
    asio::async_write(*far, asio::buffer(sent), [&](asio::error_code, std::size_t n) { written = n; });
    asio::async_read(*near, asio::buffer(got), [&](asio::error_code, std::size_t n) { read = n; });
    run();
    EXPECT_EQ(written, sent.size());
    EXPECT_EQ(read, sent.size());
    EXPECT_EQ(got, sent);
}

TEST_F(asio_test, scattered_buffers_are_filled_in_order) {
    std::array<char, 2> first{};
    std::array<char, 3> second{};
    std::array<asio::mutable_buffer, 2> both{asio::buffer(first), asio::buffer(second)};
    asio::write(*far, std::array<asio::const_buffer, 2>{asio::buffer("ab", 2), asio::buffer("cde", 3)});
    std::size_t got = 0;
    near->async_read_some(both, [&](asio::error_code, std::size_t n) { got = n; });
    run();
    EXPECT_EQ(got, 5U);
    EXPECT_EQ(std::string(second.data(), 3), "cde");
}

TEST_F(asio_test, read_until_and_coroutines_speak_a_protocol_of_lines) {
    auto server = [](asio_stream<socket_handle>& stream) -> asio::awaitable<void> {
        std::string data;
        for (int i = 0; i < 3; ++i) {
            const std::size_t n = co_await asio::async_read_until(stream, asio::dynamic_buffer(data), '\n',
                                                                  asio::use_awaitable);
            const std::string reply = "<" + data.substr(0, n - 1) + ">\n";
            data.erase(0, n);
            co_await asio::async_write(stream, asio::buffer(reply), asio::use_awaitable);
        }
    };
    auto client = [](asio_stream<socket_handle>& stream) -> asio::awaitable<std::string> {
        std::string all, data;
        for (const char* line : {"one\n", "two\n", "three\n"}) {
            co_await asio::async_write(stream, asio::buffer(line, std::strlen(line)), asio::use_awaitable);
            const std::size_t n = co_await asio::async_read_until(stream, asio::dynamic_buffer(data), '\n',
                                                                  asio::use_awaitable);
            all += data.substr(0, n - 1);
            data.erase(0, n);
        }
        co_return all;
    };
    std::string answer;
    asio::co_spawn(context.get_executor(), server(*far), asio::detached);
    asio::co_spawn(context.get_executor(), client(*near), [&](std::exception_ptr why, std::string text) {
        EXPECT_EQ(why, nullptr);
        answer = std::move(text);
    });
    run();
    EXPECT_EQ(answer, "<one><two><three>");
}

TEST_F(asio_test, a_slot_cancels_a_read_with_operation_aborted) {
    asio::cancellation_signal signal;
    asio::error_code seen;
    int calls = 0;
    near->async_read_some(asio::buffer(into),
                          asio::bind_cancellation_slot(signal.slot(), [&](asio::error_code why, std::size_t) {
                              ++calls;
                              seen = why;
                          }));
    context.poll();
    EXPECT_EQ(calls, 0);
    signal.emit(asio::cancellation_type::total);
    EXPECT_EQ(calls, 0);
    run();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(seen, asio::error::operation_aborted);
    signal.emit(asio::cancellation_type::all);  // the slot is empty now
}

TEST_F(asio_test, cancel_and_close_end_all_pending_operations) {
    int aborted = 0;
    auto count = [&](asio::error_code why, std::size_t) { aborted += why == asio::error::operation_aborted; };
    for (int i = 0; i < 3; ++i)
        near->async_read_some(asio::buffer(into), count);
    near->cancel();  // before this thread has become the owner: by an item after the starts
    run();
    EXPECT_EQ(aborted, 3);
    near->async_read_some(asio::buffer(into), count);
    far->async_read_some(asio::buffer(into), count);
    near->close();
    far.reset();
    run();
    EXPECT_EQ(aborted, 5);
}

TEST_F(asio_test, a_timer_ends_a_read_that_takes_too_long) {
    auto read_within = [](asio_test& self) -> asio::awaitable<bool> {
        asio_timer timer(self.context);
        timer.expires_after(5ms);
        const auto first =
            co_await (self.near->async_read_some(asio::buffer(self.into), asio::use_awaitable) ||
                      timer.async_wait(asio::use_awaitable));
        co_return first.index() == 1;
    };
    bool timer_was_first = false;
    asio::co_spawn(context.get_executor(), read_within(*this), [&](std::exception_ptr why, bool first) {
        EXPECT_EQ(why, nullptr);
        timer_was_first = first;
    });
    run();
    EXPECT_TRUE(timer_was_first);
}

TEST_F(asio_test, setting_a_timer_again_aborts_the_waits_before) {
    asio_timer timer(context);
    asio::error_code first, second = asio::error::would_block;
    timer.expires_after(1h);
    timer.async_wait([&](asio::error_code why) { first = why; });
    context.poll();
    timer.expires_after(1ms);
    timer.async_wait([&](asio::error_code why) { second = why; });
    run();
    EXPECT_EQ(first, asio::error::operation_aborted);
    EXPECT_FALSE(second);
}

TEST_F(asio_test, an_acceptor_and_a_connect_make_a_connection) {
    auto acceptor =
        asio_acceptor::make(context, listening_socket_handle::listen(socket_address::loopback_v4(0)).value())
            .value();
    const auto where = acceptor.handle().local_address().value();
    std::string greeting;
    auto serve = [](asio_acceptor& from) -> asio::awaitable<void> {
        auto stream = co_await from.async_accept(asio::use_awaitable);
        co_await asio::async_write(stream, asio::buffer("welcome", 7), asio::use_awaitable);
    };
    auto visit = [](asio_context& on, socket_address peer, std::string& text) -> asio::awaitable<void> {
        auto stream =
            asio_stream<socket_handle>::make(on, socket_handle::create(peer.family()).value()).value();
        co_await stream.async_connect(peer, asio::use_awaitable);
        asio::error_code why;
        co_await asio::async_read(stream, asio::dynamic_buffer(text),
                                  asio::redirect_error(asio::use_awaitable, why));
        EXPECT_EQ(why, asio::error::eof);
    };
    asio::co_spawn(context.get_executor(), serve(acceptor), asio::detached);
    asio::co_spawn(context.get_executor(), visit(context, where, greeting), asio::detached);
    run();
    EXPECT_EQ(greeting, "welcome");
}

TEST_F(asio_test, pipes_are_streams_too) {
    auto ends = pipe_handle::anonymous().value();
    auto reader = asio_stream<pipe_handle>::make(context, std::move(ends.reader)).value();
    auto writer = asio_stream<pipe_handle>::make(context, std::move(ends.writer)).value();
    std::string got;
    asio::async_write(writer, asio::buffer("through a pipe", 14),
                      [&](asio::error_code, std::size_t) { writer.close(); });
    asio::async_read(reader, asio::dynamic_buffer(got),
                     [](asio::error_code why, std::size_t) { EXPECT_EQ(why, asio::error::eof); });
    run();
    EXPECT_EQ(got, "through a pipe");
}

// An echo as a composed operation, written as Asio's documentation says.
struct echo {
    asio_stream<socket_handle>& stream;
    std::array<char, 64>& memory;
    enum { starting, reading, writing } state = starting;

    template <class Self>
    void operator()(Self& self, asio::error_code why = {}, std::size_t count = 0) {
        switch (state) {
            case starting:
                state = reading;
                stream.async_read_some(asio::buffer(memory), std::move(self));
                return;
            case reading:
                if (why) break;
                state = writing;
                asio::async_write(stream, asio::buffer(memory, count), std::move(self));
                return;
            case writing:
                break;
        }
        self.complete(why, count);
    }
};

TEST_F(asio_test, a_composed_operation_runs_its_steps) {
    std::size_t echoed = 0;
    asio::write(*near, asio::buffer("echo", 4));
    auto done = [&](asio::error_code, std::size_t n) { echoed = n; };
    asio::async_compose<decltype(done), void(asio::error_code, std::size_t)>(
        echo{.stream = *far, .memory = into}, done, *far);
    run();
    EXPECT_EQ(echoed, 4U);
    std::array<char, 4> back{};
    EXPECT_EQ(asio::read(*near, asio::buffer(back)), 4U);
}

TEST_F(asio_test, post_defer_and_dispatch_run_on_the_loop) {
    std::vector<int> order;
    asio::post(context.get_executor(), [&] {
        order.push_back(1);
        asio::dispatch(context.get_executor(), [&] { order.push_back(2); });  // inside: at once
        asio::post(context.get_executor(), [&] { order.push_back(4); });
        asio::defer(context.get_executor(), [&] { order.push_back(5); });
        order.push_back(3);
    });
    EXPECT_TRUE(order.empty());
    run();
    EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5}));
    EXPECT_EQ(context.get_executor(), context.get_executor());
}

TEST_F(asio_test, run_rethrows_an_exception_of_a_handler) {
    int after = 0;
    asio::post(context.get_executor(), [] { throw std::runtime_error("from a handler"); });
    asio::post(context.get_executor(), [&] { ++after; });
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_EQ(after, 0);
    run();
    EXPECT_EQ(after, 1);
}

// Counts allocations.
template <class T>
struct counting_allocator {
    using value_type = T;
    explicit counting_allocator(std::pair<int, int>* from) noexcept : counts(from) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) noexcept : counts(other.counts) {}
    T* allocate(std::size_t n) {
        ++counts->first;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept {
        ++counts->second;
        std::allocator<T>().deallocate(p, n);
    }
    template <class U>
    bool operator==(const counting_allocator<U>& other) const noexcept {
        return counts == other.counts;
    }
    std::pair<int, int>* counts;
};

TEST_F(asio_test, an_operation_allocates_once_and_by_the_handlers_allocator) {
    std::pair<int, int> counts;
    asio::write(*far, asio::buffer("x", 1));
    bool freed_before = false;
    near->async_read_some(
        asio::buffer(into),
        asio::bind_allocator(counting_allocator<char>(&counts), [&](asio::error_code, std::size_t) {
            freed_before = counts == std::pair(1, 1);
        }));
    EXPECT_EQ(counts, std::pair(1, 0));
    run();
    EXPECT_TRUE(freed_before);
    EXPECT_EQ(counts, std::pair(1, 1));
}

TEST_F(asio_test, a_strand_and_another_context_get_their_handlers) {
    auto strand = asio::make_strand(context.get_executor());
    bool in_strand = false;
    asio::write(*far, asio::buffer("x", 1));
    near->async_read_some(asio::buffer(into), asio::bind_executor(strand, [&](asio::error_code, std::size_t) {
                              in_strand = strand.running_in_this_thread();
                          }));
    run();
    EXPECT_TRUE(in_strand);

    in_strand = false;
    asio::write(*far, asio::buffer("z", 1));
    near->async_read_some(
        asio::buffer(into),
        asio::bind_executor(asio::any_io_executor(strand), [&](asio::error_code, std::size_t) {
            in_strand = strand.running_in_this_thread();
        }));
    run();
    EXPECT_TRUE(in_strand);

    asio::io_context other;
    bool elsewhere = false;
    asio::write(*far, asio::buffer("y", 1));
    near->async_read_some(asio::buffer(into),
                          asio::bind_executor(other.get_executor(), [&](asio::error_code, std::size_t) {
                              elsewhere = other.get_executor().running_in_this_thread();
                          }));
    run();
    EXPECT_FALSE(elsewhere);
    EXPECT_EQ(other.run(), 1U);
    EXPECT_TRUE(elsewhere);
}

TEST_F(asio_test, a_work_guard_keeps_the_loop_and_threads_may_start_operations) {
    auto work = asio::make_work_guard(context.get_executor());
    ran_elsewhere = true;
    std::thread loop([this] { context.run(); });
    std::atomic<int> reads{0};
    for (int i = 1; i <= 100; ++i) {
        near->async_read_some(asio::buffer(into), [&](asio::error_code why, std::size_t) {
            EXPECT_FALSE(why);
            reads.fetch_add(1, std::memory_order_release);  // pairs with the wait below
            reads.notify_one();
        });
        asio::write(*far, asio::buffer("x", 1));
        for (int seen = 0; (seen = reads.load(std::memory_order_acquire)) < i;)
            reads.wait(seen, std::memory_order_acquire);
    }
    std::promise<int> answer;
    asio::co_spawn(
        context.get_executor(),
        [](asio_test& self) -> asio::awaitable<int> {
            asio_timer timer(self.context);
            timer.expires_after(1ms);
            co_await timer.async_wait(asio::use_awaitable);
            co_return 42;
        }(*this),
        [&](std::exception_ptr, int n) { answer.set_value(n); });
    EXPECT_EQ(answer.get_future().get(), 42);
    work.reset();
    loop.join();
}

}  // namespace
}  // namespace sluice::io

// The bridge to std::execution, with the model in this directory and with real implementations.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/io/best_available.hpp"
#include "sluice/io/sender/execution.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/task/range_lock_sender.hpp"
#include "tests/execution_model/under_test.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using bridge = execution_bridge<traits>;
const sync::lock_args whole{.where = sync::byte_range::whole()};

std::span<const std::byte> text(std::string_view s) {
    return std::as_bytes(std::span(s));
}

using read_sender = decltype(bridge::as_sender(
    async_read(std::declval<io_handle&>(), std::declval<io_request<bytes_type>>())));
static_assert(ex::sender<read_sender>);
static_assert(ex::sender<decltype(bridge::as_result(async_barrier(std::declval<io_handle&>())))>);
static_assert(ex::scheduler<bridge::scheduler>);
static_assert(ex::sender<decltype(std::declval<bridge::scheduler>().schedule_after(1ms))>);
static_assert(std::same_as<read_sender::completion_signatures,
                           ex::completion_signatures<ex::set_value_t(bytes_type), ex::set_error_t(error),
                                                     ex::set_stopped_t()>>);

// The signals that a receiver of these tests has received, and the thread.
struct heard {
    std::atomic<int> values{0}, errors{0}, stops{0};
    std::size_t bytes = 0;
    int code = 0;
    std::thread::id where;

    [[nodiscard]] int completions() const {
        // acquire pairs with the release in count().
        return values.load(std::memory_order_acquire) + errors.load(std::memory_order_acquire) +
               stops.load(std::memory_order_acquire);
    }
    static void count(std::atomic<int>& which) noexcept { which.fetch_add(1, std::memory_order_release); }
};

// A receiver with a stop token.
template <class Token>
struct listener {
    using receiver_concept = receiver_tag;
    struct environment {
        Token token;
        [[nodiscard]] Token query(ex_queries::get_stop_token_t) const noexcept { return token; }
    };
    void set_value(bytes_type got) && noexcept {
        into->bytes = got.size();
        std::move(*this).set_value();
    }
    void set_value(sync::range_guard) && noexcept { std::move(*this).set_value(); }
    void set_value() && noexcept {
        into->where = std::this_thread::get_id();
        heard::count(into->values);
    }
    void set_error(error why) && noexcept {
        into->code = why.code();
        heard::count(into->errors);
    }
    void set_stopped() && noexcept {
        into->where = std::this_thread::get_id();
        heard::count(into->stops);
    }
    [[nodiscard]] environment get_env() const noexcept { return {token}; }

    heard* into;
    Token token;
};
template <class Token>
listener(heard*, Token) -> listener<Token>;

class execution_bridge_test : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(ends.reader.set_multiplexer(multiplexer.get()).has_value());
        ASSERT_TRUE(ends.writer.set_multiplexer(multiplexer.get()).has_value());
        guard.emplace(*multiplexer);
    }
    void TearDown() override { stop_loop(); }

    void start_loop() {
        thread = std::thread([this] {
            while (multiplexer->run().value_or(0) > 0) {}
        });
    }
    void stop_loop() {
        guard.reset();
        if (thread.joinable()) thread.join();
    }
    template <class Condition>
    void run_until(Condition&& condition) {
        while (not condition())
            multiplexer->run();
    }
    auto read() { return async_read(ends.reader, io_request<bytes_type>{into}); }
    // A read from the write end.
    auto misdirected() { return async_read(ends.writer, io_request<bytes_type>{into}); }
    auto write(std::string_view what) {
        return async_write(ends.writer, io_request<const_bytes_type>{text(what)});
    }

    std::unique_ptr<io_multiplexer> multiplexer = best_available(1, 0).value();
    pipe_handle::pair ends = pipe_handle::anonymous().value();
    std::array<std::byte, 16> into{};
    std::optional<io_multiplexer::work_guard> guard;
    std::thread thread;
};

TEST_F(execution_bridge_test, a_read_completes_with_the_bytes_on_the_loops_thread) {
    start_loop();
    const auto loop_thread = thread.get_id();
    ASSERT_TRUE(ends.writer.write({.buffers = text("hello")}).has_value());
    auto chain = bridge::as_sender(read())  //
                 | ex::then([&](bytes_type got) noexcept {
                       EXPECT_EQ(std::this_thread::get_id(), loop_thread);
                       return got.size();
                   }) |
                 ex::upon_error([](error) noexcept { return std::size_t{0}; });
    const auto got = ex_sync::sync_wait(std::move(chain));
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(std::get<0>(*got), 5U);
}

TEST_F(execution_bridge_test, an_error_arrives_on_the_error_channel_with_its_cause) {
    start_loop();
    auto chain = bridge::as_sender(misdirected())  //
                 | ex::then([](bytes_type) noexcept { return 0; }) |
                 ex::upon_error([](error why) noexcept { return why.code(); });
    EXPECT_EQ(std::get<0>(ex_sync::sync_wait(std::move(chain)).value()), EBADF);
}

TEST_F(execution_bridge_test, as_result_returns_errors_as_values) {
    start_loop();
    auto chain = bridge::as_result(misdirected())  //
                 | ex::then([](io_result<bytes_type> outcome) noexcept { return outcome.error().code(); });
    EXPECT_EQ(std::get<0>(ex_sync::sync_wait(std::move(chain)).value()), EBADF);
}

TEST_F(execution_bridge_test, a_stop_request_cancels_the_read_and_completes_stopped) {
    start_loop();
    ex_queries::inplace_stop_source source;
    heard outcome;
    auto state = ex::connect(bridge::as_sender(read()), listener{&outcome, source.get_token()});
    ex::start(state);
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(outcome.completions(), 0);
    source.request_stop();
    stop_loop();
    EXPECT_EQ(outcome.stops, 1);
    EXPECT_EQ(outcome.completions(), 1);
}

TEST_F(execution_bridge_test, a_stop_requested_before_the_start_does_not_take_data) {
    ASSERT_TRUE(ends.writer.write({.buffers = text("kept")}).has_value());
    ex_queries::inplace_stop_source source;
    source.request_stop();
    heard outcome;
    auto state = ex::connect(bridge::as_sender(read()), listener{&outcome, source.get_token()});
    ex::start(state);
    run_until([&] { return outcome.completions() != 0; });
    EXPECT_EQ(outcome.stops, 1);
    EXPECT_EQ(ends.reader.try_read(io_request<bytes_type>{into}).bytes_transferred(), 4U);
}

TEST_F(execution_bridge_test, a_range_lock_is_granted_on_the_loops_thread_when_another_thread_releases_it) {
    start_loop();
    const auto loop_thread = thread.get_id();
    sync::range_lock lock;
    sync::range_guard held = lock.lock(whole);
    ex_queries::inplace_stop_source never;
    heard outcome;
    auto state = ex::connect(bridge::as_sender(async_lock(*multiplexer, lock, whole)),
                             listener{&outcome, never.get_token()});
    ex::start(state);
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(outcome.completions(), 0);
    held.unlock();
    stop_loop();
    EXPECT_EQ(outcome.values, 1);
    EXPECT_EQ(outcome.where, loop_thread);
    EXPECT_TRUE(lock.try_lock(whole));
}

TEST_F(execution_bridge_test, a_range_lock_is_cancelled_when_a_stop_is_requested) {
    start_loop();
    sync::range_lock lock;
    sync::range_guard held = lock.lock(whole);
    ex_queries::inplace_stop_source source;
    heard outcome;
    auto state = ex::connect(bridge::as_sender(async_lock(*multiplexer, lock, whole)),
                             listener{&outcome, source.get_token()});
    ex::start(state);
    std::this_thread::sleep_for(2ms);
    source.request_stop();
    stop_loop();
    EXPECT_EQ(outcome.stops, 1);
    EXPECT_EQ(outcome.completions(), 1);
    held.unlock();
    EXPECT_TRUE(lock.try_lock(whole)) << "no request is waiting";
}

TEST_F(execution_bridge_test, a_cancellation_without_a_stop_request_is_an_error) {
    heard outcome;
    // A large write that fits only partly, and a second one, which ends with ECANCELED when the
    // first is cancelled half way.
    std::vector<char> large(1U << 20U, 'x');
    ex_queries::inplace_stop_source never;
    struct ignore {
        int* dones;
        void set_value(io_result<const_bytes_type>&&) noexcept {}
        void set_done() noexcept { ++*dones; }
    };
    int dones = 0;
    auto first =
        connect(async_write(ends.writer, io_request<const_bytes_type>{text({large.data(), large.size()})}),
                ignore{&dones});
    first.start();
    auto second = ex::connect(bridge::as_sender(write("behind"))  //
                                  | ex::then([](const_bytes_type) noexcept {}),
                              listener{&outcome, never.get_token()});
    ex::start(second);
    (void)multiplexer->try_run();
    first.cancel();
    run_until([&] { return outcome.completions() != 0; });
    EXPECT_EQ(outcome.errors, 1);
    EXPECT_EQ(outcome.code, ECANCELED);
    EXPECT_EQ(dones, 1);
}

TEST_F(execution_bridge_test, on_the_loops_own_thread_ready_operations_complete_inside_start) {
    (void)multiplexer->try_run();  // this thread owns it
    ASSERT_TRUE(ends.writer.write({.buffers = text("now")}).has_value());
    heard outcome;
    auto state = ex::connect(bridge::as_sender(read()), listener{&outcome, ex_queries::never_stop_token{}});
    ex::start(state);
    EXPECT_EQ(outcome.values, 1);
    EXPECT_EQ(outcome.bytes, 3U);
}

TEST_F(execution_bridge_test, schedule_completes_on_the_loops_thread_and_never_inside_start) {
    heard outcome;
    const auto scheduler = bridge::get_scheduler(*multiplexer);
    auto state = ex::connect(ex::schedule(scheduler), listener{&outcome, ex_queries::never_stop_token{}});
    ex::start(state);
    EXPECT_EQ(outcome.completions(), 0);
    run_until([&] { return outcome.completions() != 0; });
    EXPECT_EQ(outcome.values, 1);
    EXPECT_EQ(outcome.where, std::this_thread::get_id());
}

TEST_F(execution_bridge_test, schedulers_of_one_multiplexer_are_equal_and_completion_names_them) {
    const auto scheduler = bridge::get_scheduler(*multiplexer);
    auto other = best_available(1, 0).value();
    EXPECT_TRUE(scheduler == bridge::get_scheduler(*multiplexer));
    EXPECT_FALSE(scheduler == bridge::get_scheduler(*other));
    const auto where = ex::get_env(bridge::as_sender(read()));
    EXPECT_TRUE(ex::get_completion_scheduler<ex::set_value_t>(where) == scheduler);
    EXPECT_TRUE(ex::get_completion_scheduler<ex::set_stopped_t>(where) == scheduler);
    EXPECT_TRUE(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(ex::schedule(scheduler))) ==
                scheduler);
}

TEST_F(execution_bridge_test, schedule_after_waits_and_can_be_stopped) {
    start_loop();
    const auto scheduler = bridge::get_scheduler(*multiplexer);
    const auto began = scheduler.now();
    EXPECT_TRUE(ex_sync::sync_wait(scheduler.schedule_after(5ms)).has_value());
    EXPECT_GE(scheduler.now() - began, 5ms);
    ex_queries::inplace_stop_source source;
    heard outcome;
    auto state = ex::connect(scheduler.schedule_at(1h), listener{&outcome, source.get_token()});
    ex::start(state);
    source.request_stop();
    stop_loop();
    EXPECT_EQ(outcome.stops, 1);
}

TEST_F(execution_bridge_test, a_stop_racing_completion_completes_exactly_once) {
    start_loop();
    constexpr int rounds = 1000;
    int values = 0, stops = 0;
    for (int i = 0; i < rounds; ++i) {
        ex_queries::inplace_stop_source source;
        heard outcome;
        {
            auto state = ex::connect(bridge::as_sender(read()), listener{&outcome, source.get_token()});
            ex::start(state);
            if (i % 2 == 0) {
                ASSERT_TRUE(ends.writer.write({.buffers = text("x")}).has_value());
                source.request_stop();
            } else {
                source.request_stop();
                ASSERT_TRUE(ends.writer.write({.buffers = text("x")}).has_value());
            }
            while (outcome.completions() == 0)
                std::this_thread::yield();
        }
        EXPECT_EQ(outcome.completions(), 1);
        EXPECT_EQ(outcome.errors, 0);
        values += outcome.values;
        stops += outcome.stops;
        while (outcome.stops != 0 and ends.reader.try_read(io_request<bytes_type>{into}).has_value()) {}
    }
    EXPECT_EQ(values + stops, rounds);
}

}  // namespace
}  // namespace sluice::io

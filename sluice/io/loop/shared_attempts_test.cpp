// Operations that a thread tries outside of the lock of a multiplexer for several threads, and
// wake-ups for the thread that sleeps. Runs under ThreadSanitizer.

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/loop/several_threads_testing.hpp"
#include "sluice/io/sender/user_operation.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/stream/splice.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/io/uring/uring_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

class attempts_by_threads : public test_kit::several_threads {
protected:
    pipe_handle::pair pipe = pipe_handle::anonymous().value();

    void SetUp() override { ASSERT_TRUE(pipe.reader.set_multiplexer(&loop()).has_value()); }
};
SLUICE_FOR_SEVERAL_THREADS(attempts_by_threads);

// The calls of a test: the first attempt lasts until the test ends it.
struct calls {
    std::atomic<int> begun = 0;
    std::atomic<int> inside = 0;
    std::atomic<int> overlapping = 0;
    std::atomic<bool> lets_go = false;
    std::optional<int> outcome_of_first{};
    std::vector<int> completed{};
};

class slow_call final : public ready_call {
public:
    using result_type = result<void>;
    static constexpr const char* name = "call slowly";

    slow_call(calls& all, int number) noexcept : all_(&all), number_(number) {}
    [[nodiscard]] static result_type take() noexcept { return {}; }
    [[nodiscard]] std::optional<int> attempt(const native_handle&) noexcept override {
        const bool is_first = all_->begun++ == 0;
        if (all_->inside++ != 0) ++all_->overlapping;
        while (is_first and not all_->lets_go.load())
            std::this_thread::yield();
        --all_->inside;
        const std::optional<int> outcome = is_first ? all_->outcome_of_first : 0;
        if (outcome) all_->completed.push_back(number_);
        return outcome;
    }

private:
    calls* all_;
    int number_;
};

struct receiver {
    std::atomic<int>* code;
    std::atomic<bool>* is_done = nullptr;
    void set_value(result<void>&& came) const noexcept { *code = came ? 0 : came.error().code(); }
    void set_done() const noexcept {
        if (is_done != nullptr) *is_done = true;
    }
};

auto slow_sender(pipe_handle& on, calls& all, int number, deadline within = {}) {
    return call_sender<slow_call>(on, direction::in, within, slow_call(all, number));
}

TEST_P(attempts_by_threads, on_one_direction_do_not_overlap_and_keep_the_order) {
    calls all{.outcome_of_first = 0};
    std::atomic<int> first_code = -1;
    std::atomic<int> second_code = -1;
    auto first = connect(slow_sender(pipe.reader, all, 1), receiver{&first_code});
    auto second = connect(slow_sender(pipe.reader, all, 2), receiver{&second_code});
    std::jthread other([&] { first.start(); });
    while (all.begun.load() == 0)
        std::this_thread::yield();
    second.start();
    for (int i = 0; i < 5; ++i)
        (void)loop().try_run();
    EXPECT_EQ(all.begun.load(), 1);
    all.lets_go = true;
    other.join();
    while (loop().run().value_or(0) > 0) {}
    EXPECT_EQ(first_code.load(), 0);
    EXPECT_EQ(second_code.load(), 0);
    EXPECT_EQ(all.overlapping.load(), 0);
    EXPECT_EQ(all.completed, (std::vector{1, 2}));
}

TEST_P(attempts_by_threads, that_would_wait_keep_their_place_before_later_operations) {
    calls all{};  // the first attempt would have to wait
    std::atomic<int> first_code = -1;
    std::atomic<int> second_code = -1;
    auto first = connect(slow_sender(pipe.reader, all, 1), receiver{&first_code});
    auto second = connect(slow_sender(pipe.reader, all, 2), receiver{&second_code});
    std::jthread other([&] { first.start(); });
    while (all.begun.load() == 0)
        std::this_thread::yield();
    second.start();
    all.lets_go = true;
    other.join();
    const std::byte one{};
    ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{{&one, 1}}).has_value());
    while (loop().run().value_or(0) > 0) {}
    EXPECT_EQ(first_code.load(), 0);
    EXPECT_EQ(second_code.load(), 0);
    EXPECT_EQ(all.completed, (std::vector{1, 2}));
}

TEST_P(attempts_by_threads, that_would_wait_end_if_they_were_cancelled_before) {
    calls all{};
    std::atomic<int> code = -1;
    auto state = connect(slow_sender(pipe.reader, all, 1), receiver{&code});
    std::jthread other([&] { state.start(); });
    while (all.begun.load() == 0)
        std::this_thread::yield();
    state.cancel();
    all.lets_go = true;
    other.join();
    while (loop().run().value_or(0) > 0) {}
    EXPECT_EQ(code.load(), ECANCELED);
}

struct any_receiver {
    std::atomic<bool>* is_done;
    template <class Result>
    void set_value(Result&&) const noexcept {}
    void set_done() const noexcept { *is_done = true; }
};

struct ignoring {
    void set_value(io_result<bytes_type>&&) const noexcept {}
    void set_done() const noexcept {}
};

// The other thread is woken for each deadline, which it did not know when it fell asleep.
TEST_P(attempts_by_threads, a_thread_that_polls_leaves_wake_ups_to_the_one_that_sleeps) {
    std::optional<io_multiplexer::work_guard> promise(loop());
    std::array<std::byte, 1> into{};
    auto waits = connect(async_read(pipe.reader, io_request<bytes_type>{into}), ignoring{});
    waits.start(initiation::batched);
    (void)loop().try_run();  // this thread has asked the kernel for the wake-ups
    std::jthread sleeper([this] {
        while (loop().run().value_or(0) > 0) {}
    });
    for (int i = 0; i < 100; ++i) {
        std::atomic<int> code = -1;
        std::atomic<bool> is_done = false;
        auto sleeps = connect(async_sleep(loop(), 1ms), receiver{&code, &is_done});
        sleeps.start();
        for (int polls = 0; polls < 3; ++polls)
            (void)loop().try_run();
        while (not is_done.load())
            std::this_thread::yield();
        EXPECT_EQ(code.load(), 0);
    }
    waits.cancel();
    promise.reset();
}

// Two reads of a pipe that always has a byte; each starts the other one in its done signal.
struct chain {
    struct next {
        chain* in;
        void set_value(io_result<bytes_type>&&) const noexcept {
            if (in->depth++ != 0) ++in->nested;
            --in->depth;
        }
        void set_done() const noexcept {
            if (in->depth++ != 0) ++in->nested;
            if (++in->count < times) in->reads.at(static_cast<std::size_t>(in->count % 2))->start();
            --in->depth;
        }
    };
    static constexpr int times = 500;

    int count = 0;
    int depth = 0;
    int nested = 0;
    std::array<std::byte, 1> into{};
    std::array<std::optional<io_operation_connection<transfer_sender<bytes_type>, next>>, 2> reads;
};

TEST_P(attempts_by_threads, that_succeed_in_a_receiver_are_signalled_when_it_has_returned) {
    const std::vector<std::byte> bytes(chain::times);
    ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{bytes}).has_value());
    chain all;
    for (auto& each : all.reads)
        each.emplace(connect(async_read(pipe.reader, io_request<bytes_type>{all.into}), chain::next{&all}));
    all.reads[0]->start();
    while (loop().run().value_or(0) > 0) {}
    EXPECT_EQ(all.count, chain::times);
    EXPECT_EQ(all.nested, 0);
}

// Cancels the scope when the operation has begun, before the coroutine is suspended.
template <sender Sender>
class late_cancellation {
public:
    late_cancellation(Sender what, cancel_scope& within) noexcept
        : operation(std::move(what), &within), scope(within) {}

    [[nodiscard]] bool await_ready() noexcept {
        const bool is_done = operation.await_ready();
        scope.cancel();
        return is_done;
    }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { operation.await_suspend(waiter); }
    [[nodiscard]] auto await_resume() noexcept { return operation.await_resume(); }

private:
    operation_awaiter<Sender> operation;
    cancel_scope& scope;
};

task<int> read_and_cancel(io_handle& from, cancel_scope& scope) {
    std::array<std::byte, 1> into{};
    const auto got = co_await late_cancellation(async_read(from, io_request<bytes_type>{into}), scope);
    co_return got ? 0 : got.error().code();
}
task<int> sleep_and_cancel(io_multiplexer& on, cancel_scope& scope) {
    const auto slept = co_await late_cancellation(async_sleep(on, 1h), scope);
    co_return slept ? 0 : slept.error().code();
}

TEST_P(attempts_by_threads, do_not_begin_for_a_coroutine_that_is_cancelled_while_it_suspends) {
    cancel_scope scope;
    EXPECT_EQ(sync_wait(loop(), in_scope(scope, read_and_cancel(pipe.reader, scope))), ECANCELED);
    cancel_scope other;
    EXPECT_EQ(sync_wait(loop(), in_scope(other, sleep_and_cancel(loop(), other))), ECANCELED);
    EXPECT_EQ(loop().pending(), 0U);
}

// A signal that runs on another thread until the test abandons its operation.
class slow_signal {
public:
    // Returns some time after abandon_during() has begun to abandon.
    void run() noexcept {
        stage_ = running;
        while (stage_ == running)
            std::this_thread::yield();
        std::this_thread::sleep_for(5ms);  // while abandon() is called, if it is to show
        stage_ = over;
    }
    // Abandons the operation while run() is running. Returns whether run() has
    // ended before abandon().
    [[nodiscard]] bool abandon_during(auto& state) {
        while (stage_ != running)
            std::this_thread::yield();
        stage_ = abandoned;
        state.abandon();
        return stage_ == over;
    }

private:
    enum stage : int { before, running, abandoned, over };
    std::atomic<int> stage_ = before;
};

// A receiver that another thread runs when its operation is abandoned.
TEST_P(attempts_by_threads, abandoning_waits_for_a_receiver_that_runs_on_another_thread) {
    struct slow_receiver {
        slow_signal* value;
        std::atomic<bool>* is_done;
        void set_value(io_result<bytes_type>&&) const noexcept { value->run(); }
        void set_done() const noexcept { *is_done = true; }
    };
    const std::byte one{};
    std::array<std::byte, 1> into{};
    slow_signal value;
    std::atomic<bool> is_done = false;
    auto state =
        connect(async_read(pipe.reader, io_request<bytes_type>{into}), slow_receiver{&value, &is_done});
    state.start();
    ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{{&one, 1}}).has_value());
    std::jthread other([&] {
        while (loop().run().value_or(0) > 0) {}
    });
    EXPECT_TRUE(value.abandon_during(state));
    other.join();
    EXPECT_TRUE(is_done.load());
}

// Its state looks as if it were not pending any more.
TEST_P(attempts_by_threads, abandoning_waits_for_a_done_signal_that_another_thread_gives) {
    struct slow_receiver {
        slow_signal* done;
        void set_value(result<void>&&) const noexcept {}
        void set_done() const noexcept { done->run(); }
    };
    slow_signal done;
    auto state = connect(async_sleep(loop(), 1ms), slow_receiver{&done});
    state.start();
    std::jthread other([&] {
        while (loop().run().value_or(0) > 0) {}
    });
    EXPECT_TRUE(done.abandon_during(state));
}

// External work that ends only when the test ends it.
class stubborn_work final : public external_work {
public:
    explicit stubborn_work(std::atomic<bool>& is_asked_to_end) noexcept : is_asked_(is_asked_to_end) {}
    void finish() noexcept { complete(0); }

private:
    [[nodiscard]] std::optional<int> begin(bool) noexcept override { return std::nullopt; }
    void end() noexcept override { is_asked_ = true; }

    std::atomic<bool>& is_asked_;
};

TEST_P(attempts_by_threads, an_abandoned_operation_is_not_signalled_when_it_completes) {
    std::optional<io_multiplexer::work_guard> promise(loop());
    std::jthread sleeper([this] {
        while (loop().run().value_or(0) > 0) {}
    });
    for (int i = 0; i < 200; ++i) {
        std::atomic<bool> is_asked_to_end = false;
        std::atomic<int> code = -1;
        std::atomic<bool> is_done = false;
        stubborn_work work(is_asked_to_end);
        auto state = connect(test_kit::external_sender(loop(), work), receiver{&code, &is_done});
        state.start();
        std::jthread finisher([&] {
            while (not is_asked_to_end.load())
                std::this_thread::yield();
            work.finish();
        });
        state.abandon();
        EXPECT_FALSE(is_done.load());
        EXPECT_EQ(code.load(), -1);
    }
    promise.reset();
}

// Other threads read the record of the socket without the lock, so no transfer may change it.
TEST_P(attempts_by_threads, on_a_socket_see_it_unchanged_while_another_thread_sends_a_file) {
    constexpr int times = 200;
    auto file = uring_test::scratch_file();
    const auto content = std::as_bytes(std::span("content", 7));
    ASSERT_TRUE(file.write({.buffers = content, .offset = 0}).has_value());
    uring_test::socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(&loop()).has_value());
    const registration& known = *detail::handle_access::registered(pair.ours);
    std::jthread reader([&] {
        for (int i = 0; i < times; ++i) {
            std::array<std::byte, 1> into{};
            std::atomic<bool> is_done = false;
            auto read = connect(async_read(pair.ours, io_request<bytes_type>{into}), any_receiver{&is_done});
            read.start();
            read.cancel();
            while (not is_done.load())
                (void)loop().try_run();
        }
    });
    for (int i = 0; i < times; ++i) {
        std::atomic<bool> is_done = false;
        auto sends = connect(async_send_file(file, pair.ours, {}), any_receiver{&is_done});
        sends.start();
        while (not is_done.load())
            (void)loop().try_run();
        EXPECT_TRUE(send_file_to(file, pair.ours, {}, 20s).has_value());
        EXPECT_EQ(pair.hear().size(), 14U);
    }
    reader.join();
    EXPECT_FALSE(known.native.nonblocking);
}

// Otherwise the ring keeps the polled end open.
TEST_P(attempts_by_threads, a_handle_is_closed_while_another_thread_sleeps) {
    std::optional<io_multiplexer::work_guard> promise(loop());
    std::jthread sleeper([this] {
        while (loop().run().value_or(0) > 0) {}
    });
    std::atomic<int> code = -1;
    std::atomic<bool> is_done = false;
    auto state = connect(async_ready(pipe.reader, direction::in), receiver{&code, &is_done});
    state.start(initiation::batched);
    state.cancel();
    while (not is_done.load())
        std::this_thread::yield();
    EXPECT_EQ(code.load(), ECANCELED);
    ASSERT_TRUE(pipe.reader.close().has_value());
    pollfd other{.fd = pipe.writer.descriptor(), .events = 0, .revents = 0};
    EXPECT_EQ(::poll(&other, 1, 10'000), 1);
    promise.reset();
}

}  // namespace
}  // namespace sluice::io

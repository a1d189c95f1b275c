#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/io/best_available.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

namespace sluice::io {
namespace {

std::span<const std::byte> text(std::string_view s) {
    return std::as_bytes(std::span(s));
}

// A multiplexer with a thread that runs it until the test is over.
class loop {
public:
    void start() {
        guard_.emplace(*multiplexer);
        thread_ = std::thread([this] {
            while (multiplexer->run().value_or(0) > 0) {}
        });
    }
    void finish() {
        guard_.reset();
        if (thread_.joinable()) thread_.join();
    }

    const std::unique_ptr<io_multiplexer> multiplexer = best_available(1, 0).value();

private:
    std::optional<io_multiplexer::work_guard> guard_;
    std::thread thread_;
};

void await(std::atomic<int>& counter, int at_least) {
    for (int now = 0; (now = counter.load(std::memory_order_acquire)) < at_least;)
        // Pairs with the release of the counting thread.
        counter.wait(now, std::memory_order_acquire);
}

void count_one(std::atomic<int>& counter) {
    counter.fetch_add(1, std::memory_order_release);  // pairs with await()
    counter.notify_all();
}

// Counts signals, and signals done in a way that lets the waiting thread destroy the state.
struct meter {
    std::atomic<int> values{0}, dones{0}, cancelled{0};

    struct receiver {
        meter* to;
        void set_value(io_result<bytes_type>&& outcome) noexcept {
            to->values.fetch_add(1, std::memory_order_relaxed);  // ordered by `dones`
            if (not outcome) to->cancelled.fetch_add(1, std::memory_order_relaxed);
        }
        // The state may be destroyed as soon as it is counted: nothing here is read after that.
        void set_done() noexcept { count_one(to->dones); }
    };

    void wait_for(int count) { await(dones, count); }
};

class atomic_sender_threads : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(ends.reader.set_multiplexer(running.multiplexer.get()).has_value());
        running.start();
    }
    void TearDown() override { running.finish(); }

    auto read() { return atomic_async_read(ends.reader, io_request<bytes_type>{into}); }

    loop running;  // its thread ends in TearDown, before anything is destroyed
    pipe_handle::pair ends = pipe_handle::anonymous().value();
    std::array<std::byte, 16> into{};
    meter counted;
};

TEST_F(atomic_sender_threads, a_start_from_another_thread_completes_on_the_loop) {
    for (int round = 1; round <= 200; ++round) {
        auto state = connect(read(), meter::receiver{&counted});
        state.start();
        ASSERT_TRUE(ends.writer.write({.buffers = text("x")}).has_value());
        counted.wait_for(round);
        EXPECT_FALSE(state.started());
        EXPECT_TRUE(state.completed());
        EXPECT_TRUE(state.poll());
    }
    EXPECT_EQ(counted.values.load(), 200);
    EXPECT_EQ(counted.cancelled.load(), 0);
}

// The state is destroyed as soon as done has been signalled, while another thread has just
// cancelled it: the sanitizers, or the queue's ENSURE, would detect a dangling item.
TEST_F(atomic_sender_threads, a_cancel_racing_completion_leaves_nothing_behind) {
    constexpr int rounds = 3000;
    std::atomic<int> round{0};
    std::atomic<atomic_operation*> victim{nullptr};
    std::thread canceller([&] {
        for (int mine = 1; mine <= rounds; ++mine) {
            // acquire: pairs with the stores below, so the state exists.
            while (round.load(std::memory_order_acquire) < mine)
                std::this_thread::yield();
            for (int spin = 0; spin < mine % 97; ++spin) {
                (void)round.load(std::memory_order_relaxed);
            }
            victim.load(std::memory_order_relaxed)->cancel();
            // No longer inside: it may be destroyed.
            victim.store(nullptr, std::memory_order_release);
        }
    });
    for (int i = 1; i <= rounds; ++i) {
        auto state = std::make_unique<atomic_io_operation_connection<
            decltype(async_read(ends.reader, io_request<bytes_type>{})), meter::receiver>>(
            connect(read(), meter::receiver{&counted}));
        victim.store(state.get(), std::memory_order_relaxed);
        state->start();
        round.store(i, std::memory_order_release);
        ASSERT_TRUE(ends.writer.write({.buffers = text("x")}).has_value());
        counted.wait_for(i);
        while (victim.load(std::memory_order_acquire) != nullptr)
            std::this_thread::yield();
        state.reset();
        if (counted.cancelled.load(std::memory_order_relaxed) % 8 == 7) {
            (void)ends.reader.try_read(
                io_request<bytes_type>{into});  // the remaining byte of cancelled reads
        }
    }
    canceller.join();
    EXPECT_EQ(counted.values.load(), rounds);
}

TEST_F(atomic_sender_threads, exactly_one_of_many_starting_threads_wins_each_round) {
    constexpr int rounds = 300, threads = 3;
    auto state = connect(read(), meter::receiver{&counted});
    std::atomic<int> go{0}, wins{0}, finished{0};
    std::vector<std::thread> starters;
    for (int t = 0; t < threads; ++t) {
        starters.emplace_back([&] {
            for (int mine = 1; mine <= rounds; ++mine) {
                await(go, mine);
                if (state.try_start()) wins.fetch_add(1, std::memory_order_relaxed);
                (void)state.started();
                state.cancel();
                count_one(finished);
            }
        });
    }
    int signalled = 0;
    for (int i = 1; i <= rounds; ++i) {
        count_one(go);
        await(finished, i * threads);
        // Each start is cancelled by its thread; a later one of this round may win again after it.
        const int won = wins.load(std::memory_order_relaxed);
        EXPECT_GT(won, signalled);
        counted.wait_for(won);
        signalled = won;
    }
    for (auto& each : starters)
        each.join();
    EXPECT_EQ(counted.dones.load(), wins.load());
    EXPECT_EQ(counted.values.load(), wins.load());
}

TEST_F(atomic_sender_threads, the_loop_may_cancel_and_poll_operations_that_others_start) {
    auto state = connect(read(), meter::receiver{&counted});
    for (int i = 1; i <= 200; ++i) {
        state.start();
        ASSERT_TRUE(running.multiplexer
                        ->post([&state]() noexcept {
                            if (not state.poll()) state.cancel();
                        })
                        .has_value());
        counted.wait_for(i);
    }
    EXPECT_EQ(counted.cancelled.load(), 200);
}

}  // namespace
}  // namespace sluice::io

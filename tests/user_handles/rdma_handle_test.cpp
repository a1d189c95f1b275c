#include "tests/user_handles/rdma_handle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/with_deadline.hpp"

// A handle that a user adds, with its own buffers, requests, results and operations: remote memory,
// accessed through a card that completes requests in its own order.

namespace sluice::user_handles {
namespace {

using namespace std::chrono_literals;
using io::task;

class queue_pairs : public io::coroutine_test {
protected:
    static constexpr std::size_t depth = 64;

    queue_pairs() {
        std::ranges::generate(theirs_, [i = 0]() mutable { return std::byte(i++); });
    }

    [[nodiscard]] rdma_transfer slice(std::size_t at, std::size_t length) const {
        return {.local = {.memory = &here_, .offset = at, .length = length},
                .remote = {.key = there_.key(), .offset = at}};
    }
    [[nodiscard]] bool have_same(std::size_t at, std::size_t length) const {
        return std::equal(ours_.begin() + static_cast<std::ptrdiff_t>(at),
                          ours_.begin() + static_cast<std::ptrdiff_t>(at + length),
                          theirs_.begin() + static_cast<std::ptrdiff_t>(at));
    }

    rdma_nic nic_{7, depth};
    std::array<std::byte, 4096> ours_{};
    std::array<std::byte, 4096> theirs_{};
    registered_memory here_{nic_, ours_};
    registered_memory there_{nic_, theirs_};
    queue_pair_handle pair_{nic_, *multiplexer_};
};

struct counting {
    int* dones;
    int* last_code;
    void set_value(transfer_result&& got) noexcept { *last_code = got ? 0 : got.error().code(); }
    void set_done() noexcept { ++*dones; }
};

TEST_P(queue_pairs, complete_in_the_order_of_the_card) {
    std::vector<int> order;
    struct noting {
        std::vector<int>* order;
        int number;
        void set_value(transfer_result&& got) noexcept {
            EXPECT_TRUE(got.has_value());
            order->push_back(number);
        }
        void set_done() noexcept {}
    };
    using state_type = decltype(io::connect(pair_.async_read({}), noting{}));
    std::vector<std::unique_ptr<state_type>> states;
    for (int i = 0; i < 32; ++i) {
        auto made =
            io::connect(pair_.async_read(slice(static_cast<std::size_t>(i) * 64, 64)), noting{&order, i});
        states.push_back(std::make_unique<state_type>(std::move(made)));
        states.back()->start();
    }
    while (nic_.step()) {}
    while (order.size() < 32)
        ASSERT_TRUE(multiplexer_->run().has_value());
    EXPECT_FALSE(std::ranges::is_sorted(order));
    std::ranges::sort(order);
    for (int i = 0; i < 32; ++i)
        EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_TRUE(have_same(0, 2048));
}

TEST_P(queue_pairs, are_awaited_while_another_thread_runs_the_card) {
    std::atomic<bool> is_over{false};
    std::jthread card([&] {
        while (not is_over.load(std::memory_order_relaxed)) {
            if (not nic_.step()) std::this_thread::yield();
        }
    });
    const auto copy_all = [&]() -> task<int> {
        int failures = 0;
        for (std::size_t at = 0; at < ours_.size(); at += 128) {
            const auto got = co_await pair_.async_read(slice(at, 128));
            failures += got.has_value() ? 0 : 1;
        }
        co_return failures;
    };
    EXPECT_EQ(run(copy_all()), 0);
    EXPECT_TRUE(have_same(0, ours_.size()));
    ours_.fill(std::byte{9});
    EXPECT_TRUE(pair_.read(slice(0, 4096)).has_value()) << "the blocking form";
    EXPECT_TRUE(have_same(0, ours_.size()));
    is_over.store(true, std::memory_order_relaxed);
}

TEST_P(queue_pairs, add_atomically_whatever_the_order) {
    theirs_.fill(std::byte{0});
    std::uint64_t sum = 0;
    const auto add = [&](std::uint64_t addend) -> task<void> {
        const auto fetched = co_await pair_.async_fetch_and_add(
            {.remote = {.key = there_.key(), .offset = 8}, .addend = addend});
        EXPECT_TRUE(fetched.has_value());
    };
    io::task_group group(*multiplexer_);
    for (std::uint64_t i = 1; i <= 50; ++i) {
        group.spawn(add(i));
        sum += i;
    }
    while (nic_.step()) {}
    run([&]() -> task<void> { co_await group.join(); }());
    std::uint64_t stored = 0;
    std::memcpy(&stored, theirs_.data() + 8, sizeof stored);
    EXPECT_EQ(stored, sum);
}

TEST_P(queue_pairs, refuse_memory_that_is_not_registered_and_a_full_queue) {
    int dones = 0;
    int code = 0;
    auto stray = io::connect(pair_.async_write({.local = {.memory = &here_, .length = 8}, .remote = {}}),
                             counting{&dones, &code});
    stray.start();
    while (nic_.step()) {}
    while (dones == 0)
        ASSERT_TRUE(multiplexer_->run().has_value());
    EXPECT_EQ(code, EACCES);

    using state_type = decltype(stray);
    std::vector<std::unique_ptr<state_type>> states;
    for (std::size_t i = 0; i <= depth; ++i) {
        states.push_back(std::make_unique<state_type>(
            io::connect(pair_.async_read(slice(0, 8)), counting{&dones, &code})));
        states.back()->start();
    }
    EXPECT_EQ(dones, 2) << "the last one did not fit";
    EXPECT_EQ(code, ENOMEM);
    while (nic_.step()) {}
    while (dones < static_cast<int>(depth) + 2)
        ASSERT_TRUE(multiplexer_->run().has_value());
}

TEST_P(queue_pairs, keep_deadlines_and_cancellation) {
    const auto one = [&](deadline within) -> task<int> {
        const auto got = co_await pair_.async_read(slice(0, 8), within);
        co_return got ? 0 : got.error().code();
    };
    EXPECT_EQ(run(one(1ms)), ETIMEDOUT);
    EXPECT_EQ(run(one(deadline::zero())), ETIMEDOUT);
    EXPECT_EQ(run(io::with_deadline(*multiplexer_, one({}), 1ms)).error().code(), ETIMEDOUT);
    EXPECT_FALSE(nic_.step()) << "nothing is left with the card";
}

TEST_P(queue_pairs, are_started_from_any_thread) {
    int dones = 0;
    int code = -1;
    ASSERT_TRUE(multiplexer_->try_run().has_value());  // it belongs to this thread
    auto state = io::connect(io::atomic(pair_.async_read(slice(64, 64))), counting{&dones, &code});
    const io::io_multiplexer::work_guard more(*multiplexer_);
    std::jthread other([&] {
        state.start();
        while (not nic_.step())
            std::this_thread::yield();
    });
    while (dones == 0)
        ASSERT_TRUE(multiplexer_->run().has_value());
    EXPECT_EQ(code, 0);
    EXPECT_TRUE(have_same(64, 64));
}

SLUICE_TEST_COROUTINES_OVER_ALL(queue_pairs);

}  // namespace
}  // namespace sluice::user_handles

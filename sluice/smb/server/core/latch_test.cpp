#include "sluice/smb/server/core/latch.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/core/event.hpp"

namespace sluice::smb::server {
namespace {

TEST(server_latch, lets_one_thread_in_at_a_time) {
    server_latch latch;
    std::uint64_t count = 0;  // not atomic: TSan and the sum tell
    constexpr std::uint64_t each = 20'000;
    std::vector<std::thread> threads;
    for (int i = 0; i != 3; ++i) {
        threads.emplace_back([&] {
            for (std::uint64_t n = 0; n != each; ++n) {
                const server_latch::hold held(latch);
                ++count;
            }
        });
    }
    for (std::thread& one : threads)
        one.join();
    EXPECT_EQ(count, 3 * each);
}

TEST(server_latch, wakes_who_sleeps_for_it) {
    server_latch latch;
    latch.lock();
    bool was_in = false;
    std::thread other([&] {
        const server_latch::hold held(latch);
        was_in = true;
    });
    while (latch.sleeps() == 0)
        std::this_thread::yield();
    EXPECT_FALSE(was_in);
    latch.unlock();
    other.join();
    EXPECT_TRUE(was_in);
}

TEST(server_latch, is_free_again_when_given_back_as_often_as_taken) {
    server_latch latch;
    latch.lock();
    latch.lock();
    latch.unlock();
    EXPECT_TRUE(latch.is_mine());
    {
        const server_latch::pause computing(latch);
        EXPECT_FALSE(latch.is_mine());
    }
    EXPECT_TRUE(latch.is_mine());
    latch.unlock();
    EXPECT_FALSE(latch.is_mine());
}

class unlatched_work : public testing::Test {
protected:
    io::task<bool> is_mine() { co_return latch_.is_mine(); }

    io::task<bool> hold_and_run() {
        const server_latch::hold held(latch_);
        io::task<bool> looking = is_mine();
        const bool during = co_await unlatched(latch_, std::move(looking));
        EXPECT_TRUE(latch_.is_mine()) << "afterwards it is had again";
        co_return during;
    }
    io::task<void> wait_for(event<int>& what, bool& has_gone_on) {
        const int value = co_await unlatched(latch_, what.wait());
        EXPECT_EQ(value, 7);
        EXPECT_TRUE(latch_.is_mine());
        has_gone_on = true;
    }

    std::unique_ptr<io::simulated_multiplexer> loop_ = io::make_simulated_multiplexer({}).value();
    server_latch latch_;
};

TEST_F(unlatched_work, releases_the_latch_while_a_task_runs) {
    EXPECT_FALSE(io::sync_wait(*loop_, hold_and_run()));
    EXPECT_FALSE(latch_.is_mine());
}

TEST_F(unlatched_work, gives_the_latch_back_while_it_waits_for_an_event) {
    event<int> happened(*loop_);
    bool has_gone_on = false;
    io::task_group tasks(*loop_);
    tasks.spawn(latched(latch_, *loop_, wait_for(happened, has_gone_on)));
    EXPECT_FALSE(latch_.is_mine());
    happened.set(7);
    EXPECT_FALSE(has_gone_on) << "from the loop, not from set()";
    while (loop_->run().value_or(0) > 0) {}
    EXPECT_TRUE(has_gone_on);
    EXPECT_FALSE(latch_.is_mine());
}

TEST_F(unlatched_work, that_was_spawned_by_who_has_the_latch_begins_from_the_loop) {
    event<int> happened(*loop_);
    bool has_gone_on = false;
    io::task_group tasks(*loop_);
    {
        const server_latch::hold held(latch_);
        tasks.spawn(latched(latch_, *loop_, wait_for(happened, has_gone_on)));
        EXPECT_TRUE(latch_.is_mine());
    }
    happened.set(7);
    while (loop_->run().value_or(0) > 0) {}
    EXPECT_TRUE(has_gone_on);
    EXPECT_FALSE(latch_.is_mine());
}

}  // namespace
}  // namespace sluice::smb::server

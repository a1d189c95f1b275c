#include "sluice/smb/server/core/loop_activity.hpp"

#include <gtest/gtest.h>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/core/loop_wait.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/core/timer_queue.hpp"

namespace sluice::smb::server {
namespace {

constexpr int thread = 77;
constexpr loop_work read_in_one{.command = wire::command::read, .domain = 1};
constexpr loop_work create_in_two{.command = wire::command::create, .domain = 2};

class loop_activities : public testing::Test {
protected:
    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    loop_activity activity{*loop};
};

TEST_F(loop_activities, name_the_last_work_of_the_thread) {
    const loop_activity::use here(activity, thread);
    EXPECT_EQ(activity.look().work, std::nullopt);
    EXPECT_EQ(activity.thread(), thread);
    loop_activity::begin(read_in_one);
    loop_activity::begin(create_in_two);
    EXPECT_EQ(activity.look().work, create_in_two);
    EXPECT_EQ(loop_activity::current(), create_in_two);
}

TEST_F(loop_activities, name_the_turn_of_the_work) {
    const loop_activity::use here(activity, thread);
    std::uint64_t turn = 0;
    ASSERT_TRUE(loop->post([&] {
        turn = loop->turn();
        loop_activity::begin(read_in_one);
    }));
    EXPECT_GT(loop->run().value_or(0), 0);
    EXPECT_EQ(activity.look().turn, turn);
    EXPECT_NE(loop->turn(), turn);
}

TEST_F(loop_activities, do_not_change_by_work_of_threads_that_run_no_loop) {
    loop_activity::begin(read_in_one);
    EXPECT_EQ(activity.look().work, std::nullopt);
    EXPECT_EQ(activity.thread(), 0);
    EXPECT_EQ(loop_activity::current(), std::nullopt);
}

io::task<void> work_that_waits(one_shot_event<bool>& until, std::optional<loop_work>& resumed) {
    loop_activity::begin(read_in_one);
    (void)co_await within_work(until.wait());
    resumed = loop_activity::current();
}

io::task<void> end_of(io::task_group& tasks) {
    co_await tasks.join();
}

TEST_F(loop_activities, name_a_request_again_when_it_resumes_after_a_wait) {
    const loop_activity::use here(activity, thread);
    one_shot_event<bool> until(*loop);
    std::optional<loop_work> resumed;
    io::task_group tasks(*loop);
    ASSERT_TRUE(loop->post([&] {
        tasks.spawn(work_that_waits(until, resumed));
        loop_activity::begin(create_in_two);
        until.set(true);
    }));
    EXPECT_GT(loop->run().value_or(0), 0);
    io::sync_wait(*loop, end_of(tasks));
    EXPECT_EQ(resumed, read_in_one);
}

TEST_F(loop_activities, name_no_request_while_a_task_of_the_server_runs_timers) {
    const loop_activity::use here(activity, thread);
    simulated_clock clock;
    background_work background(*loop);
    timer_queue later(clock, background);
    std::optional<loop_work> due = read_in_one;
    ASSERT_TRUE(loop->post([&] {
        loop_activity::begin(create_in_two);
        later.add(std::chrono::milliseconds(1), [&]() noexcept { due = loop_activity::current(); });
        EXPECT_EQ(loop_activity::current(), create_in_two) << "the request goes on";
        clock.advance(std::chrono::milliseconds(1));
    }));
    while (due == read_in_one)
        EXPECT_TRUE(loop->run().has_value());
    EXPECT_EQ(due, std::nullopt);
}

}  // namespace
}  // namespace sluice::smb::server

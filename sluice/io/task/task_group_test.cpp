#include "sluice/io/task/task_group.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/frame_pool.hpp"
#include "sluice/io/task/when_all.hpp"

namespace sluice::io {
namespace {

class groups : public coroutine_test {};

task<void> count_a_byte(pipe_handle& from, int& count, int& cancelled) {
    const int code = co_await read_one(from);
    if (code == 0) ++count;
    if (code == ECANCELED) ++cancelled;
}

task<void> join(task_group& group) {
    co_await group.join();
}

TEST_P(groups, a_thousand_children_are_joined) {
    std::vector<pipe_handle::pair> pipes;
    for (int i = 0; i < 100; ++i)
        pipes.push_back(make_pipe());
    int count = 0, cancelled = 0;
    task_group group(*multiplexer_);
    for (int i = 0; i < 1000; ++i)
        group.spawn(count_a_byte(pipes[static_cast<std::size_t>(i) % pipes.size()].reader, count, cancelled));
    EXPECT_EQ(group.size(), 1000U);
    for (int i = 0; i < 1000; ++i)
        ASSERT_TRUE(write_one(pipes[static_cast<std::size_t>(i) % pipes.size()].writer).has_value());
    run(join(group));
    EXPECT_EQ(count, 1000);
    EXPECT_EQ(group.size(), 0U);
}

TEST_P(groups, a_child_that_ends_at_once_is_destroyed_when_spawn_returns) {
    auto pipe = make_pipe();
    ASSERT_TRUE(write_one(pipe.writer).has_value());
    int count = 0, cancelled = 0;
    task_group group(*multiplexer_);
    group.spawn(count_a_byte(pipe.reader, count, cancelled));
    EXPECT_EQ(group.size(), 0U);
    EXPECT_EQ(count, 1);
}

TEST_P(groups, a_million_children_spawned_in_a_loop_do_not_grow_the_stack) {
    const auto nothing = [](int& count) -> task<void> {
        ++count;
        co_return;
    };
    int count = 0;
    task_group group(*multiplexer_);
    for (int i = 0; i < 1'000'000; ++i)
        group.spawn(nothing(count));
    EXPECT_EQ(count, 1'000'000);
}

TEST_P(groups, cancelling_a_group_ends_its_children_and_later_ones) {
    auto pipe = make_pipe();
    int count = 0, cancelled = 0;
    task_group group(*multiplexer_);
    group.spawn(count_a_byte(pipe.reader, count, cancelled));
    group.cancel();
    group.spawn(count_a_byte(pipe.reader, count, cancelled));
    run(join(group));
    EXPECT_EQ(cancelled, 2);
}

TEST_P(groups, cancelling_the_task_that_joins_cancels_the_group) {
    auto pipe = make_pipe();
    int count = 0, cancelled = 0;
    task_group group(*multiplexer_);
    group.spawn(count_a_byte(pipe.reader, count, cancelled));
    cancel_scope scope;
    ASSERT_TRUE(multiplexer_->post([&scope]() noexcept { scope.cancel(); }).has_value());
    run(in_scope(scope, join(group)));
    EXPECT_EQ(cancelled, 1);
}

TEST_P(groups, a_child_may_spawn_others_and_they_are_joined_too) {
    struct spawner {
        static task<void> run(task_group& group, io_multiplexer& multiplexer, int levels, int& ended) {
            co_await yield(multiplexer);
            if (levels > 0) {
                group.spawn(run(group, multiplexer, levels - 1, ended));
                group.spawn(run(group, multiplexer, levels - 1, ended));
            }
            ++ended;
        }
    };
    int ended = 0;
    task_group group(*multiplexer_);
    group.spawn(spawner::run(group, *multiplexer_, 6, ended));
    run(join(group));
    EXPECT_EQ(ended, 127);
}

TEST_P(groups, a_group_can_be_destroyed_by_the_task_that_joined_it) {
    auto pipe = make_pipe();
    int count = 0, cancelled = 0;
    const auto serve = [](std::unique_ptr<task_group> group, pipe_handle& to) -> task<void> {
        EXPECT_TRUE(write_one(to).has_value());
        co_await group->join();
        group.reset();
    };
    auto group = std::make_unique<task_group>(*multiplexer_);
    group->spawn(count_a_byte(pipe.reader, count, cancelled));
    run(serve(std::move(group), pipe.writer));
    EXPECT_EQ(count, 1);
}

TEST_P(groups, the_frames_of_children_return_to_their_pool_as_they_end) {
    frame_pool pool(std::size_t{64} << 10);
    const frame_pool::use use(pool);
    auto pipe = make_pipe();
    int count = 0, cancelled = 0;
    task_group group(*multiplexer_);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(write_one(pipe.writer).has_value());
        group.spawn(count_a_byte(pipe.reader, count, cancelled));
        run(join(group));
    }
    EXPECT_EQ(count, 1000);
    EXPECT_EQ(pool.statistics().heap_frames, 0U);
    EXPECT_EQ(pool.statistics().live, 0U);
}

TEST_P(groups, destroying_a_group_with_children_stops_the_program) {
    auto pipe = make_pipe();
    EXPECT_DEATH(
        {
            int count = 0;
            int cancelled = 0;
            task_group group(*multiplexer_);
            group.spawn(count_a_byte(pipe.reader, count, cancelled));
        },
        "join a task group before it is destroyed");
}

SLUICE_TEST_COROUTINES_OVER_ALL(groups);

}  // namespace
}  // namespace sluice::io

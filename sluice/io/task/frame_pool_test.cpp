#include "sluice/io/task/frame_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::io {
namespace {

class frame_pools : public testing::Test {
protected:
    template <class T>
    T run(task<T> root) {
        return sync_wait(*multiplexer_, std::move(root));
    }
    std::unique_ptr<io_multiplexer> multiplexer_ = make_epoll_multiplexer(0).value();
};

// Not inlined, here and below: the compiler may put the frame of a task that it sees into its
// parent's.
[[gnu::noinline]] task<int> leaf(int n) {
    co_return n;
}
[[gnu::noinline]] task<int> sum(int times) {
    int total = 0;
    for (int i = 0; i < times; ++i)
        total += co_await leaf(1);
    co_return total;
}
task<int> deep(int levels) {
    if (levels == 0) co_return 0;
    const int below = co_await deep(levels - 1);
    co_return below + 1;
}

TEST_F(frame_pools, tasks_called_while_a_pool_is_in_use_take_their_frames_from_it) {
    frame_pool pool(std::size_t{16} << 10);
    {
        const frame_pool::use use(pool);
        EXPECT_EQ(run(sum(1000)), 1000);
    }
    EXPECT_EQ(run(sum(10)), 10);  // from the heap again
    const auto seen = pool.statistics();
    EXPECT_EQ(seen.heap_frames, 0U);
    EXPECT_EQ(seen.live, 0U);
    EXPECT_EQ(seen.live_max, 2U);
    EXPECT_GT(seen.arena_bytes_used, 0U);
    EXPECT_LE(seen.arena_bytes_used, 1024U) << "every leaf is cut from the same block";
}

TEST_F(frame_pools, a_pool_that_is_used_up_takes_frames_from_the_heap_and_counts_them) {
    alignas(64) std::array<std::byte, 1024> memory;
    frame_pool pool(memory);
    const frame_pool::use use(pool);
    EXPECT_EQ(run(deep(100)), 100);
    const auto seen = pool.statistics();
    EXPECT_GT(seen.heap_frames, 80U);
    EXPECT_LT(seen.heap_frames, 101U);
    EXPECT_EQ(seen.live, 0U);
    EXPECT_EQ(seen.live_max, 101U);
    EXPECT_LE(seen.arena_bytes_used, memory.size());
}

TEST_F(frame_pools, a_pool_without_memory_serves_from_the_heap) {
    frame_pool pool(std::size_t{0});
    const frame_pool::use use(pool);
    EXPECT_EQ(run(sum(3)), 3);
    EXPECT_EQ(pool.statistics().heap_frames, 4U);
}

[[gnu::noinline]] task<int> in_given(std::allocator_arg_t, frame_pool&, int n) {
    co_return n;
}
struct server {
    int base = 40;
    task<int> in_given(std::allocator_arg_t, frame_pool&, int n) { co_return base + n; }
};

TEST_F(frame_pools, a_pool_given_as_an_argument_is_preferred) {
    frame_pool given(std::size_t{4} << 10);
    frame_pool current(std::size_t{4} << 10);
    const frame_pool::use use(current);
    EXPECT_EQ(run(in_given(std::allocator_arg, given, 1)), 1);
    EXPECT_EQ(given.statistics().live_max, 1U);
    server object;
    auto of_member = object.in_given(std::allocator_arg, given, 2);
    const auto lambda = [](std::allocator_arg_t, frame_pool&, int n) -> task<int> { co_return n; };
    auto of_lambda = lambda(std::allocator_arg, given, 3);
    EXPECT_EQ(given.statistics().live, 2U);
    EXPECT_EQ(run(std::move(of_member)), 42);
    EXPECT_EQ(run(std::move(of_lambda)), 3);
    EXPECT_EQ(current.statistics().live_max, 0U);
    EXPECT_EQ(given.statistics().live, 0U);
}

TEST_F(frame_pools, a_use_within_a_use_ends_with_its_scope) {
    frame_pool outer(std::size_t{4} << 10);
    frame_pool inner(std::size_t{4} << 10);
    const frame_pool::use use_outer(outer);
    {
        const frame_pool::use use_inner(inner);
        EXPECT_EQ(frame_pool::current(), &inner);
        const frame_pool::use none(nullptr);
        EXPECT_EQ(frame_pool::current(), nullptr);
    }
    EXPECT_EQ(frame_pool::current(), &outer);
}

[[gnu::noinline]] task<int> count_up(std::array<int, frame_pool::block_bytes_max>& numbers) {
    for (int& n : numbers)
        ++n;
    co_return numbers.back();
}
[[gnu::noinline]] task<int> large() {
    std::array<int, frame_pool::block_bytes_max> held{};
    const int first = co_await count_up(held);
    const int second = co_await count_up(held);
    co_return first + second;
}

TEST_F(frame_pools, a_frame_larger_than_any_block_comes_from_the_heap) {
    frame_pool pool(std::size_t{64} << 10);
    const frame_pool::use use(pool);
    EXPECT_EQ(run(large()), 3);
    EXPECT_EQ(pool.statistics().heap_frames, 1U);
}

TEST_F(frame_pools, blocks_of_one_size_do_not_overlap) {
    frame_pool pool(std::size_t{16} << 10);
    std::vector<std::byte*> frames;
    for (std::size_t i = 0; i < 64; ++i) {
        frames.push_back(static_cast<std::byte*>(frame_pool::take_frame(&pool, 120)));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frames.back()) % alignof(std::max_align_t), 0U);
        std::fill_n(frames.back(), 120, static_cast<std::byte>(i));
    }
    for (std::size_t i = 0; i < 64; ++i) {
        EXPECT_EQ(frames[i][0], static_cast<std::byte>(i));
        EXPECT_EQ(frames[i][119], static_cast<std::byte>(i));
        frame_pool::release_frame(frames[i], 120);
    }
    EXPECT_EQ(pool.statistics().heap_frames, 0U);
}

TEST_F(frame_pools, destroying_a_pool_before_its_frames_stops_the_program) {
    EXPECT_DEATH(
        {
            frame_pool pool(std::size_t{4} << 10);
            auto kept = in_given(std::allocator_arg, pool, 1).release();
            (void)kept;
        },
        "a frame pool is destroyed before the tasks");
}

}  // namespace
}  // namespace sluice::io

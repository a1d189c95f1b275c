// Counts every allocation of this program: a separate test program, because malloc is replaced.

#include <gtest/gtest.h>

#include <array>
#include "bench/harness/allocation_counter.hpp"
#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/frame_pool.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/when_all.hpp"
#include "sluice/io/task/with_deadline.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

class coroutine_allocations : public coroutine_test {
protected:
    // Returns the allocations of a second run: the first one warms the pool.
    template <class Work>
    std::uint64_t allocations_once_warm(Work work, int times) {
        const frame_pool::use use(pool_);
        sync_wait(*multiplexer_, work(*multiplexer_, pipe_, 10));
        const std::uint64_t before = bench::allocations();
        sync_wait(*multiplexer_, work(*multiplexer_, pipe_, times));
        const std::uint64_t counted_now = bench::allocations() - before;
        EXPECT_EQ(pool_.statistics().heap_frames, 0U);
        return counted_now;
    }

    pipe_handle::pair pipe_ = make_pipe();
    frame_pool pool_{std::size_t{64} << 10};
};

// Not inlined, here and below: the compiler may put the frame of a task that it sees into its
// parent's.
[[gnu::noinline]] task<std::size_t> transfer(pipe_handle& from, pipe_handle& to) {
    std::array<std::byte, 1> one{};
    const auto wrote = co_await co_write(to, io_request<const_bytes_type>{one});
    const auto read = co_await co_read(from, io_request<bytes_type>{one});
    co_return wrote.bytes_transferred() + read.bytes_transferred();
}

[[gnu::noinline]] task<void> transfers(io_multiplexer&, pipe_handle::pair& pipe, int times) {
    for (int i = 0; i < times; ++i) {
        const auto moved = co_await transfer(pipe.reader, pipe.writer);
        EXPECT_EQ(moved, 2U);
    }
}

TEST_P(coroutine_allocations, a_million_operations_in_half_a_million_tasks_allocate_nothing) {
    EXPECT_EQ(allocations_once_warm(transfers, 500'000), 0U);
}

[[gnu::noinline]] task<void> read_byte(pipe_handle& from) {
    std::array<std::byte, 1> one{};
    const auto read = co_await co_read(from, io_request<bytes_type>{one});
    EXPECT_EQ(read.bytes_transferred(), 1U);
}
[[gnu::noinline]] task<void> write_byte(pipe_handle& to) {
    std::array<std::byte, 1> one{};
    const auto wrote = co_await co_write(to, io_request<const_bytes_type>{one});
    EXPECT_EQ(wrote.bytes_transferred(), 1U);
}

[[gnu::noinline]] task<void> structured_transfers(io_multiplexer& multiplexer, pipe_handle::pair& pipe,
                                                  int times) {
    for (int i = 0; i < times; ++i) {
        auto both = with_deadline(multiplexer, read_byte(pipe.reader), 1h);
        const auto [read, wrote] = co_await when_all(std::move(both), write_byte(pipe.writer));
        EXPECT_TRUE(read.has_value());
        (void)wrote;
    }
}

TEST_P(coroutine_allocations, deadlines_and_waiting_for_several_allocate_nothing) {
    EXPECT_EQ(allocations_once_warm(structured_transfers, 10'000), 0U);
}

[[gnu::noinline]] task<void> spawned_transfers(io_multiplexer& multiplexer, pipe_handle::pair& pipe,
                                               int times) {
    task_group group(multiplexer);
    for (int i = 0; i < times; ++i) {
        group.spawn(read_byte(pipe.reader));
        group.spawn(write_byte(pipe.writer));
        co_await group.join();
    }
}

TEST_P(coroutine_allocations, spawning_and_joining_allocates_nothing) {
    EXPECT_EQ(allocations_once_warm(spawned_transfers, 10'000), 0U);
}

TEST_P(coroutine_allocations, without_a_pool_every_task_is_one_allocation) {
    const std::uint64_t before = bench::allocations();
    sync_wait(*multiplexer_, transfers(*multiplexer_, pipe_, 100));
    EXPECT_EQ(bench::allocations() - before, 101U);
}

SLUICE_TEST_COROUTINES_OVER_ALL(coroutine_allocations);

}  // namespace
}  // namespace sluice::io

// Counts every allocation of this program, which is a separate one because it replaces malloc.

#include <gtest/gtest.h>

#include <array>

#include "bench/harness/allocation_counter.hpp"
#include "sluice/sync/range_lock_sender.hpp"
#include "sluice/sync/range_lock_testing.hpp"
#include "tests/execution_model/execution.hpp"

SLUICE_EXECUTION_TRAITS(model, execution_model, execution_model, _t);

namespace sluice::sync {
namespace {

void ask_in_every_form(range_lock& lock, std::uint64_t rounds) {
    for (std::uint64_t round = 0; round != rounds; ++round) {
        range_guard held = lock.lock(exclusive(round, round + 9));
        basic_remembered_request<real_atomics> waiting;
        (void)lock.lock_async(waiting, shared(round + 5, round + 20));
        (void)lock.try_lock_for(shared(round, round), std::chrono::nanoseconds(1));
        std::array<range_guard, 2> several;
        (void)lock.try_lock_all(std::array{shared(2000, 2001), exclusive(2002, 2003)}, several);
        range_guard rest;
        held.split(round + 5, rest);
        held.downgrade();
        rest.unlock();
        ASSERT_TRUE(waiting.is_granted);
        const range_guard moved = waiting.take();
    }
}

TEST(range_lock, allocates_nothing_before_many_grants_next_to_others_and_once_it_has_buckets) {
    range_lock lock;
    const std::uint64_t before = bench::allocations();
    ask_in_every_form(lock, 10);
    EXPECT_EQ(bench::allocations() - before, 0U);
    EXPECT_EQ(lock.bytes_allocated(), 0U);
    ask_in_every_form(lock, 1000);
    EXPECT_EQ(bench::allocations() - before, 1U) << "the buckets";
    EXPECT_EQ(lock.bytes_allocated(), (1U << range_lock_tuning::buckets_log2_first) * 64U + 128U);
    const std::uint64_t warm = bench::allocations();
    ask_in_every_form(lock, 5'000);
    EXPECT_EQ(bench::allocations() - warm, 0U);
}

TEST(range_lock, allocates_nothing_for_one_range_at_a_time) {
    range_lock lock;
    const std::uint64_t before = bench::allocations();
    for (std::uint64_t round = 0; round != 10'000; ++round) {
        const range_guard held = lock.lock(exclusive(round, round + 9));
        EXPECT_FALSE(lock.try_lock(shared(round, round)));
    }
    EXPECT_EQ(bench::allocations() - before, 0U);
}

struct counting_receiver {
    using receiver_concept = execution_model::receiver_t;
    void set_value(range_guard) && noexcept { ++*grants; }
    void set_stopped() && noexcept {}
    int* grants;
};

TEST(lock_sender, allocates_nothing_whether_it_waits_or_not) {
    range_lock lock;
    int grants = 0;
    const std::uint64_t before = bench::allocations();
    for (int round = 0; round != 1000; ++round) {
        auto at_once = async_lock<model>(lock, exclusive(0, 9)).connect(counting_receiver{&grants});
        at_once.start();
        range_guard held = lock.lock(exclusive(0, 9));
        auto later = async_lock<model>(lock, shared(5, 20)).connect(counting_receiver{&grants});
        later.start();
        held.unlock();
    }
    EXPECT_EQ(grants, 2000);
    EXPECT_EQ(bench::allocations() - before, 0U);
}

}  // namespace
}  // namespace sluice::sync

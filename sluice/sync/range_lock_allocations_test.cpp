// Counts every allocation of this program: a test program of its own, because malloc is replaced.

#include <gtest/gtest.h>

#include <array>

#include "bench/harness/allocation_counter.hpp"
#include "sluice/sync/range_lock_sender.hpp"
#include "sluice/sync/range_lock_testing.hpp"
#include "tests/execution_model/execution.hpp"

SLUICE_EXECUTION_TRAITS(model, execution_model, execution_model, _t);

namespace sluice::sync {
namespace {

TEST(range_lock, allocates_nothing_in_whatever_form_it_is_asked) {
    range_lock lock;
    const std::uint64_t before = bench::allocations();
    for (std::uint64_t round = 0; round != 1000; ++round) {
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

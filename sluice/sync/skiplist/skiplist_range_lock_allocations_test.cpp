// Counts every allocation of this program, which is a separate one because it replaces malloc.

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "bench/harness/allocation_counter.hpp"
#include "sluice/sync/skiplist/skiplist_range_lock.hpp"
#include "sluice/sync/skiplist/skiplist_testing.hpp"

namespace sluice::sync {
namespace {

// Sixteen ranges at a time, some of them refused, as in the benchmark W2.
void lock_in_batches(skiplist_range_lock& lock, std::uint64_t seed, int batches) {
    seeded_random random(seed);
    std::array<skiplist_range_guard, 16> held;
    for (int batch = 0; batch != batches; ++batch) {
        for (skiplist_range_guard& one : held) {
            const std::uint64_t slot = random.below(5000);
            one = lock.try_lock(bytes(slot * 1024, slot * 1024 + 1023));
        }
        for (skiplist_range_guard& one : held)
            one.unlock();
    }
}

TEST(skiplist_range_lock, allocates_nothing_once_it_has_as_many_nodes_as_are_used) {
    skiplist_range_lock lock({.ranges_reserved = 1});
    std::vector<skiplist_range_guard> most;
    for (std::uint64_t i = 0; i != 2000; ++i)
        most.push_back(lock.try_lock(bytes(i, i)));
    most.clear();
    const std::uint64_t before = bench::allocations();
    lock_in_batches(lock, 1, 2000);
    EXPECT_EQ(bench::allocations() - before, 0U);
}

TEST(skiplist_range_lock, allocates_nothing_within_the_reserved_ranges) {
    skiplist_range_lock lock({.ranges_reserved = 100});
    const std::uint64_t before = bench::allocations();
    lock_in_batches(lock, 2, 2000);
    EXPECT_EQ(bench::allocations() - before, 0U);
}

TEST(skiplist_range_lock, keeps_its_memory_flat_over_millions_of_pairs) {
    constexpr int threads = 4;
    skiplist_range_lock lock({.ranges_reserved = 1});
    const auto run = [&](int batches) {
        std::vector<std::thread> all;
        for (std::uint64_t i = 0; i != threads; ++i)
            all.emplace_back([&, i] { lock_in_batches(lock, i, batches); });
        for (std::thread& one : all)
            one.join();
    };
    run(40'000);  // 2.6 million pairs
    EXPECT_LE(lock.nodes(), threads * 16 + skiplist_range_lock::spare_nodes_max);
    EXPECT_TRUE(lock.try_lock(byte_range::whole()));
}

}  // namespace
}  // namespace sluice::sync

#include "sluice/sync/skiplist/skiplist_range_lock.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "sluice/sync/skiplist/skiplist_testing.hpp"

namespace sluice::sync {
namespace {

constexpr std::uint64_t last_byte = ~std::uint64_t{0};

template <class Lock>
void expect_no_difference() {
    for (const unsigned height_max : {1U, 2U, 13U}) {
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            Lock lock({.height_max = height_max, .ranges_reserved = 2});
            ASSERT_EQ(first_difference(lock, seed, 2000), "") << "seed " << seed;
            ASSERT_TRUE(lock.try_lock(byte_range::whole())) << "seed " << seed;
        }
    }
}

TEST(skiplist_range_lock, does_the_same_as_a_list_of_all_held_ranges) {
    expect_no_difference<skiplist_range_lock>();
}

TEST(skiplist_range_lock, does_the_same_while_entry_points_come_and_go) {
    expect_no_difference<basic_skiplist_range_lock<real_atomics, maintenance_steps>>();
}

TEST(skiplist_range_lock, refuses_overlapping_ranges_and_grants_adjacent_ones) {
    skiplist_range_lock lock;
    const skiplist_range_guard held = lock.try_lock(bytes(10, 19));
    ASSERT_TRUE(held);
    EXPECT_EQ(held.where(), bytes(10, 19));
    EXPECT_FALSE(lock.try_lock(bytes(10, 19)));
    EXPECT_FALSE(lock.try_lock(bytes(0, 10)));
    EXPECT_FALSE(lock.try_lock(bytes(19, 30)));
    EXPECT_FALSE(lock.try_lock(bytes(12, 13)));
    EXPECT_FALSE(lock.try_lock(bytes(0, 100)));
    EXPECT_TRUE(lock.try_lock(bytes(0, 9)));
    EXPECT_TRUE(lock.try_lock(bytes(20, 30)));
}

TEST(skiplist_range_lock, locks_the_first_byte_the_last_one_and_each_byte) {
    skiplist_range_lock lock;
    for (int round = 0; round != 3; ++round) {
        skiplist_range_guard first = lock.try_lock(bytes(0, 10));
        skiplist_range_guard last = lock.try_lock(bytes(last_byte, last_byte));
        EXPECT_TRUE(first);
        EXPECT_TRUE(last);
        EXPECT_FALSE(lock.try_lock(bytes(0, 0)));
        EXPECT_FALSE(lock.try_lock(byte_range::from(last_byte)));
        EXPECT_FALSE(lock.try_lock(byte_range::whole()));
        EXPECT_TRUE(lock.try_lock(bytes(11, last_byte - 1)));
        first.unlock();
        last.unlock();
        EXPECT_TRUE(lock.try_lock(byte_range::whole()));
    }
}

TEST(skiplist_range_lock, locks_empty_ranges_between_two_bytes) {
    skiplist_range_lock lock;
    const skiplist_range_guard between = lock.try_lock(byte_range::none_at(10));
    const skiplist_range_guard again = lock.try_lock(byte_range::none_at(10));
    EXPECT_TRUE(between);
    EXPECT_TRUE(again);
    EXPECT_FALSE(lock.try_lock(bytes(9, 10)));
    EXPECT_TRUE(lock.try_lock(bytes(0, 9)));
    const skiplist_range_guard next = lock.try_lock(bytes(10, 20));
    EXPECT_TRUE(next);
    EXPECT_FALSE(lock.try_lock(byte_range::none_at(11)));
    EXPECT_TRUE(lock.try_lock(byte_range::none_at(21)));
    const skiplist_range_guard nowhere = lock.try_lock(byte_range::none_at(0));
    EXPECT_TRUE(nowhere);
    EXPECT_TRUE(lock.try_lock(bytes(0, 9)));
}

TEST(skiplist_range_lock, releases_once_with_the_guard_that_holds_it_last) {
    skiplist_range_lock lock;
    skiplist_range_guard held = lock.try_lock(bytes(0, 9));
    skiplist_range_guard moved = std::move(held);
    held.unlock();
    EXPECT_FALSE(lock.try_lock(bytes(5, 5)));
    moved = lock.try_lock(bytes(20, 29));
    EXPECT_TRUE(lock.try_lock(bytes(5, 5)));
    EXPECT_FALSE(lock.try_lock(bytes(25, 25)));
    moved.unlock();
    moved.unlock();
    EXPECT_TRUE(lock.try_lock(byte_range::whole()));
}

TEST(skiplist_range_lock, times_out_at_the_deadline_and_leaves_no_request) {
    skiplist_range_lock lock;
    skiplist_range_guard held = lock.try_lock(bytes(0, 9));
    const auto start = deadline::steady_clock::now();
    EXPECT_FALSE(lock.try_lock_for(bytes(5, 15), std::chrono::milliseconds(20)));
    EXPECT_FALSE(lock.try_lock_until(bytes(5, 15), start + std::chrono::milliseconds(30)));
    EXPECT_GE(deadline::steady_clock::now() - start, std::chrono::milliseconds(30));
    EXPECT_TRUE(lock.try_lock(bytes(10, 15)));
    held.unlock();
    EXPECT_TRUE(lock.try_lock_for(bytes(5, 15), std::chrono::milliseconds(20)));
}

TEST(skiplist_range_lock, wakes_all_waiters_of_a_released_range) {
    skiplist_range_lock lock;
    skiplist_range_guard held = lock.try_lock(bytes(0, 99));
    std::vector<std::thread> waiting;
    for (std::uint64_t i = 0; i != 4; ++i)
        waiting.emplace_back([&lock, i] { EXPECT_TRUE(lock.lock(bytes(i * 10, i * 10 + 9))); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held.unlock();
    for (std::thread& one : waiting)
        one.join();
    EXPECT_TRUE(lock.try_lock(byte_range::whole()));
}

TEST(skiplist_range_lock, creates_no_more_nodes_than_are_used_at_once) {
    skiplist_range_lock lock({.ranges_reserved = 1});
    for (std::uint64_t round = 0; round != 200'000; ++round) {
        const skiplist_range_guard a = lock.try_lock(bytes(round, round));
        const skiplist_range_guard b = lock.try_lock(bytes(round + 5, round + 9));
        ASSERT_FALSE(lock.try_lock(bytes(round, round + 5)));
    }
    EXPECT_LE(lock.nodes(), 3 + skiplist_range_lock::posts_max);
}

TEST(skiplist_range_lock, grows_with_the_held_ranges_and_reuses_all_nodes) {
    skiplist_range_lock lock({.ranges_reserved = 1});
    std::size_t nodes_of_first_round = 0;
    for (int round = 0; round != 3; ++round) {
        std::vector<skiplist_range_guard> held;
        for (std::uint64_t i = 0; i != 20'000; ++i) {
            const std::uint64_t at = i * 7919 % 20'000 * 10;  // every number, in no order
            held.push_back(lock.try_lock(bytes(at, at + 8)));
            ASSERT_TRUE(held.back());
        }
        EXPECT_FALSE(lock.try_lock(bytes(100'005, 100'005)));
        EXPECT_GE(lock.height(), 6U);
        held.clear();
        EXPECT_TRUE(lock.try_lock(byte_range::whole()));
        if (round == 0) nodes_of_first_round = lock.nodes();
    }
    EXPECT_GE(nodes_of_first_round, 20'000U);
    EXPECT_LE(lock.nodes(), 20'001 + skiplist_range_lock::spare_nodes_max);
}

TEST(skiplist_range_lock, searches_few_levels_again_once_few_ranges_are_held) {
    skiplist_range_lock lock;
    std::vector<skiplist_range_guard> held;
    for (std::uint64_t i = 0; i != 5000; ++i)
        held.push_back(lock.try_lock(bytes(i * 2, i * 2)));
    const unsigned height_of_many = lock.height();
    held.clear();
    for (int round = 0; round != 50; ++round)
        EXPECT_TRUE(lock.try_lock(bytes(1, 1)));
    EXPECT_GE(height_of_many, 5U);
    EXPECT_LE(lock.height(), 3U);
}

TEST(skiplist_range_lock, builds_no_tower_above_the_given_height) {
    skiplist_range_lock lock({.height_max = 3});
    std::vector<skiplist_range_guard> held;
    for (std::uint64_t i = 0; i != 5000; ++i)
        held.push_back(lock.try_lock(bytes(i * 2, i * 2)));
    EXPECT_EQ(lock.height(), 3U);
}

}  // namespace
}  // namespace sluice::sync

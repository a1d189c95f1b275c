#include "sluice/sync/skiplist/node_pool.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sync/atomics.hpp"

namespace sluice::sync::skiplist {
namespace {

using pool = node_pool<real_atomics>;

// The owner of each node, to detect a node with two owners.
struct owners {
    std::unique_ptr<std::atomic<int>[]> of = std::make_unique<std::atomic<int>[]>(1U << 16);
    std::atomic<int> violations{0};

    void change(node_number number, int from, int to) {
        if (not of[number].compare_exchange_strong(from, to, std::memory_order_relaxed))
            violations.fetch_add(1, std::memory_order_relaxed);
    }
};

// Holds up to `held_max` nodes, more than fit into a stripe, and returns them in any order.
void take_and_give(pool& nodes, owners& seen, int who, std::size_t held_max, int rounds) {
    seeded_random random(static_cast<std::uint64_t>(who));
    std::vector<pool::taken> held;
    for (int round = 0; round < rounds or not held.empty(); ++round) {
        const std::uint64_t at = random.below(held_max);
        if (at < held.size()) {
            std::swap(held[at], held.back());
            seen.change(held.back().number, who, 0);
            nodes.give(held.back());
            held.pop_back();
        } else if (round < rounds) {
            held.push_back(nodes.take());
            seen.change(held.back().number, 0, who);
        }
    }
}

TEST(node_pool, gives_no_node_to_two_threads_at_once_and_creates_no_more_than_documented) {
    constexpr int threads = 20;  // more than stripes
    constexpr std::size_t held_max = 60;
    pool nodes({.nodes_reserved = 1});
    owners seen;
    std::vector<std::thread> all;
    for (int who = 1; who <= threads; ++who)
        all.emplace_back([&, who] { take_and_give(nodes, seen, who, held_max, 20'000); });
    for (std::thread& one : all)
        one.join();
    EXPECT_EQ(seen.violations.load(), 0);
    EXPECT_LE(nodes.nodes(), threads * held_max + pool::idle_max);
}

TEST(node_pool, has_no_end_among_its_nodes_and_finds_each_by_its_number) {
    pool nodes({.nodes_reserved = 3});
    std::vector<pool::taken> held;
    for (int i = 0; i != 5000; ++i) {
        held.push_back(nodes.take());
        EXPECT_NE(held.back().number, the_end);
        EXPECT_EQ(&nodes.at(held.back().number), held.back().what);
        // None lies in another's tower.
        for (unsigned level = 0; level != held.back().height; ++level)
            held.back().what->at(level).store(held.back().number, std::memory_order_relaxed);
    }
    for (const pool::taken& one : held)
        for (unsigned level = 0; level != one.height; ++level)
            EXPECT_EQ(one.what->at(level).load(std::memory_order_relaxed), one.number);
}

TEST(node_pool, draws_a_quarter_of_the_towers_higher_with_each_level) {
    pool nodes({.nodes_reserved = 1});
    std::vector<int> higher_than(height_max + 1);
    constexpr int draws = 100'000;
    std::vector<pool::taken> many;
    for (int i = 0; i != 20'000; ++i)
        many.push_back(nodes.take());
    for (int i = 0; i != draws; ++i) {
        const pool::taken one = nodes.take();
        for (unsigned level = 0; level != one.height; ++level)
            ++higher_than[level];
        nodes.give(one);
    }
    EXPECT_EQ(higher_than[0], draws);
    for (unsigned level = 1; level != 5; ++level)
        EXPECT_NEAR(higher_than[level] * 4.0 / higher_than[level - 1], 1.0, 0.2) << "level " << level;
}

}  // namespace
}  // namespace sluice::sync::skiplist

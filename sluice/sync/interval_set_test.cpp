#include "sluice/sync/interval_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice::sync {
namespace {

class held_node final : public interval_node {};

[[nodiscard]] byte_range random_range(random_source& random) {
    const std::uint64_t first = random.below(4) == 0 ? ~std::uint64_t{0} - random.below(3) : random.below(60);
    switch (random.below(8)) {
        case 0:
            return byte_range::none_at(std::max<std::uint64_t>(first, 1));
        case 1:
            return byte_range::from(first);
        default:
            return byte_range::of({.offset = first, .length = 1 + random.below(10)})
                .value_or(byte_range::from(first));
    }
}

std::vector<const interval_node*> overlaps_of(const interval_set& set, const byte_range& where,
                                              visiting whom) {
    std::vector<const interval_node*> found;
    EXPECT_TRUE(set.for_each_overlap({.where = where, .whom = whom}, [&](const interval_node& one) {
        found.push_back(&one);
        return true;
    }));
    return found;
}

std::vector<const interval_node*> expected_overlaps(const std::array<held_node, 64>& nodes,
                                                    const byte_range& where, visiting whom) {
    std::vector<const interval_node*> found;
    for (const held_node& one : nodes)
        if (one.is_in_set() and one.where().overlaps(where) and (whom == visiting::all or one.is_writer()))
            found.push_back(&one);
    std::ranges::sort(found, [](const interval_node* a, const interval_node* b) {
        return std::pair(a->where().first(), a->number()) < std::pair(b->where().first(), b->number());
    });
    return found;
}

TEST(interval_set, finds_the_overlaps_of_any_set_in_order_as_a_search_of_all_ranges_does) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        seeded_random random(seed);
        interval_set set;
        priority_source priorities;
        std::array<held_node, 64> nodes;
        std::uint64_t number = 0;
        for (int step = 0; step != 2000; ++step) {
            held_node& one = nodes[random.below(nodes.size())];
            held_node& other = nodes[random.below(nodes.size())];
            if (not one.is_in_set()) {
                one.describe(random_range(random), random.below(2) == 0);
                set.insert(one, ++number, priorities.draw());
            } else if (random.below(4) == 0) {
                set.set_writer(one, not one.is_writer());
            } else if (random.below(3) == 0 and not other.is_in_set()) {
                other.describe(one.where(), one.is_writer());
                set.relocate(one, other);
            } else {
                set.erase(one);
            }
            const byte_range where = random_range(random);
            for (const auto whom : {visiting::all, visiting::writers})
                ASSERT_EQ(overlaps_of(set, where, whom), expected_overlaps(nodes, where, whom))
                    << "seed " << seed << " step " << step;
        }
        for (held_node& one : nodes)
            if (one.is_in_set()) set.erase(one);
        EXPECT_TRUE(set.is_empty());
    }
}

std::vector<std::uint32_t> some_of(priority_source& from) {
    std::vector<std::uint32_t> drawn;
    for (int i = 0; i != 8; ++i)
        drawn.push_back(from.draw());
    return drawn;
}

// A client that knows the priorities in advance, and chooses the ranges, can make the tree
// degenerate to a list.
TEST(interval_set, has_priorities_that_differ_from_one_source_to_the_next) {
    priority_source one;
    priority_source other;
    EXPECT_NE(some_of(one), some_of(other));
    priority_source seeded(7);
    priority_source alike(7);
    priority_source unlike(8);
    const auto expected = some_of(seeded);
    EXPECT_EQ(some_of(alike), expected);
    EXPECT_NE(some_of(unlike), expected);
}

TEST(interval_set, visits_every_node_once_in_order_and_stops_on_request) {
    interval_set set;
    priority_source priorities;
    std::array<held_node, 10> nodes;
    for (std::uint64_t i = 0; i != nodes.size(); ++i) {
        nodes[i].describe(byte_range::between({.first = (i * 7) % 10, .last = 20}), false);
        set.insert(nodes[i], i, priorities.draw());
    }
    std::uint64_t expected = 0;
    set.for_each([&](const interval_node& one) { EXPECT_EQ(one.where().first(), expected++); });
    EXPECT_EQ(expected, nodes.size());
    int visited = 0;
    EXPECT_FALSE(set.for_each_overlap({.where = byte_range::whole()},
                                      [&](const interval_node&) { return ++visited != 3; }));
    EXPECT_EQ(visited, 3);
    for (held_node& one : nodes)
        set.erase(one);
}

}  // namespace
}  // namespace sluice::sync

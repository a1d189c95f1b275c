#include "sluice/fat/engine/allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sluice/base/random.hpp"

// The map of free clusters, and the allocation policy.

namespace sluice::fat {
namespace {

free_map all_free(std::uint32_t count) {
    free_map map(2, count);
    map.give({.first = 2, .length = count});
    return map;
}

std::uint32_t clusters_in(const std::vector<cluster_extent>& extents);

void reuse_all(allocator& from, const std::vector<cluster_extent>& released) {
    from.reuse(released, clusters_in(released));
}

std::uint32_t clusters_in(const std::vector<cluster_extent>& extents) {
    std::uint32_t sum = 0;
    for (const auto& each : extents)
        sum += each.length;
    return sum;
}

TEST(free_map, agrees_with_an_array_over_random_calls) {
    seeded_random random(11);
    constexpr std::uint32_t count = 70'000;
    free_map map(2, count);
    std::vector<bool> model(count, false);
    std::uint32_t free = 0;
    for (int i = 0; i < 4000; ++i) {
        const auto start = static_cast<std::uint32_t>(random.below(count));
        const auto most = static_cast<std::uint32_t>(1 + random.below(random.below(10) == 0 ? 40'000 : 200));
        std::uint32_t length = 0;
        while (length < most and start + length < count and model[start + length] == model[start])
            ++length;
        if (model[start]) {
            ASSERT_EQ(map.free_from(start + 2, most), length);
            map.take({.first = start + 2, .length = length});
            free -= length;
        } else {
            ASSERT_EQ(map.free_from(start + 2, most), 0U);
            map.give({.first = start + 2, .length = length});
            free += length;
        }
        std::fill_n(model.begin() + start, length, not model[start]);
        ASSERT_EQ(map.free_count(), free);
    }
    for (std::uint32_t i = 0; i < count; ++i)
        ASSERT_EQ(map.is_free(i + 2), model[i]);
    EXPECT_FALSE(map.is_free(0) or map.is_free(1) or map.is_free(count + 2) or map.is_free(UINT32_MAX));
}

TEST(free_map, free_if_allocated_skips_free_bits) {
    free_map map(2, 200);
    map.give({.first = 60, .length = 10});
    map.free_if_allocated({.first = 50, .length = 100});
    EXPECT_EQ(map.free_count(), 100U);
    EXPECT_EQ(map.free_from(50, 200), 100U);
    map.free_if_allocated({.first = 50, .length = 100});
    EXPECT_EQ(map.free_count(), 100U);
}

TEST(free_map, finds_the_nearest_run_that_is_long_enough_or_else_the_longest) {
    free_map map(2, 100'000);
    map.give({.first = 100, .length = 10});
    map.give({.first = 500, .length = 30});
    map.give({.first = 90'000, .length = 20});
    EXPECT_EQ(map.find_run(2, 10), (cluster_extent{.first = 100, .length = 10}));
    EXPECT_EQ(map.find_run(2, 11), (cluster_extent{.first = 500, .length = 11}));
    EXPECT_EQ(map.find_run(600, 11), (cluster_extent{.first = 90'000, .length = 11}));
    EXPECT_EQ(map.find_run(90'005, 16), (cluster_extent{.first = 500, .length = 16}))
        << "continues from the start";
    EXPECT_EQ(map.find_run(90'005, 1000), (cluster_extent{.first = 500, .length = 30})) << "the longest";
    EXPECT_EQ(map.find_run(UINT32_MAX, 1), (cluster_extent{.first = 100, .length = 1}));
    EXPECT_FALSE(free_map(2, 100).find_run(2, 1).has_value());
}

TEST(allocator, two_files_that_grow_concurrently_have_few_runs) {
    constexpr std::uint32_t clusters = 600'000;
    allocator from(all_free(clusters), 2);
    reservation first(from);
    reservation second(from);
    std::vector<cluster_extent> extents[2];
    reservation* const own[2] = {&first, &second};
    for (std::uint32_t i = 0; i < 2 * 262'144 / 16; ++i) {  // 1 GiB each, in writes of 64 KiB
        auto& mine = extents[i % 2];
        const std::uint32_t size = clusters_in({mine.empty() ? cluster_extent() : mine.back()});
        const std::uint32_t goal = mine.empty() ? 0 : mine.back().first + mine.back().length;
        ASSERT_TRUE(from.allocate({.goal = goal, .wanted = 16, .ahead = std::max(256U, size * 2)},
                                  *own[i % 2], mine));
    }
    for (const auto& mine : extents) {
        EXPECT_EQ(clusters_in(mine), 262'144U);
        EXPECT_LE(mine.size(), 16U);
    }
}

TEST(allocator, sequential_writes_use_the_reservation_from_the_front) {
    allocator from(all_free(1000), 2);
    reservation own(from);
    std::vector<cluster_extent> taken;
    ASSERT_TRUE(from.allocate({.wanted = 1, .ahead = 100}, own, taken));
    for (std::uint32_t i = 1; i < 101; ++i) {
        ASSERT_TRUE(from.allocate({.goal = 2 + i, .wanted = 1}, own, taken));
        ASSERT_EQ(from.free_count(), 999 - i);
    }
    EXPECT_EQ(taken, (std::vector<cluster_extent>{{.first = 2, .length = 101}}));
    // The reservation is used up, and is not listed any more.
    reservation other(from);
    ASSERT_TRUE(from.allocate({.goal = 103, .wanted = 899}, other, taken));
    EXPECT_EQ(from.allocate({.goal = 103, .wanted = 1}, own, taken).error().code(), ENOSPC);
}

TEST(allocator, small_files_created_one_after_another_are_adjacent) {
    allocator from(all_free(10'000), 2);
    std::vector<cluster_extent> taken;
    for (int i = 0; i < 5; ++i) {
        reservation own(from);
        ASSERT_TRUE(from.allocate({.wanted = 3, .ahead = 256}, own, taken));
    }
    EXPECT_EQ(taken, (std::vector<cluster_extent>{{.first = 2, .length = 15}}));
    EXPECT_EQ(from.next(), 17U);
}

TEST(allocator, reservations_are_released_when_no_other_clusters_are_free) {
    allocator from(all_free(100), 2);
    reservation own(from);
    reservation other(from);
    std::vector<cluster_extent> taken;
    ASSERT_TRUE(from.allocate({.wanted = 1, .ahead = 80}, own, taken));
    EXPECT_EQ(from.free_count(), 99U) << "reserved clusters are free";
    ASSERT_TRUE(from.allocate({.wanted = 99}, other, taken));
    EXPECT_EQ(clusters_in(taken), 100U);
    const auto more = from.allocate({.wanted = 1}, own, taken);
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().code(), ENOSPC);
}

TEST(allocator, released_clusters_are_not_allocated_before_the_release_is_durable) {
    allocator from(all_free(10), 2);
    reservation own(from);
    std::vector<cluster_extent> taken;
    ASSERT_TRUE(from.allocate({.wanted = 10}, own, taken));
    from.release({.first = 4, .length = 3});
    EXPECT_EQ(from.free_count(), 3U);
    std::vector<cluster_extent> again;
    EXPECT_EQ(from.allocate({.wanted = 3}, own, again).error().code(), EAGAIN);
    EXPECT_EQ(from.allocate({.wanted = 4}, own, again).error().code(), ENOSPC);
    const auto released = from.take_released();
    EXPECT_EQ(from.allocate({.wanted = 3}, own, again).error().code(), EAGAIN)
        << "the release is not durable yet";
    reuse_all(from, released);
    ASSERT_TRUE(from.allocate({.wanted = 3}, own, again));
    EXPECT_EQ(again, (std::vector<cluster_extent>{{.first = 4, .length = 3}}));
    EXPECT_EQ(from.free_count(), 0U);
}

// On a damaged volume, two files release the same clusters.
TEST(allocator, clusters_that_are_freed_twice_are_free_once) {
    allocator from(all_free(10), 2);
    reservation own(from);
    std::vector<cluster_extent> taken;
    ASSERT_TRUE(from.allocate({.wanted = 10}, own, taken));
    for (int i = 0; i < 2; ++i) {
        from.release({.first = 4, .length = 3});
        reuse_all(from, from.take_released());
        EXPECT_EQ(from.free_count(), 3U);
    }
    from.undo({{.first = 3, .length = 3}});
    EXPECT_EQ(from.free_count(), 4U);
}

// 2^32 releases of 2^27 clusters: 32 files have the same clusters.
TEST(allocator, releases_of_the_same_clusters_are_counted_beyond_32_bits) {
    constexpr std::uint32_t count = 1U << 27;
    allocator from(free_map(2, count), 2);
    for (int i = 0; i < 32; ++i)
        from.release({.first = 2, .length = count});
    EXPECT_EQ(from.free_count(), count);
    reservation own(from);
    std::vector<cluster_extent> taken;
    EXPECT_EQ(from.allocate({.wanted = 1}, own, taken).error().code(), EAGAIN);
    const auto released = from.take_released();
    from.reuse({released.front()}, std::uint64_t{count} * 32);
    EXPECT_EQ(from.free_count(), count);
    EXPECT_TRUE(from.allocate({.wanted = 1}, own, taken));
}

TEST(allocator, random_calls_never_allocate_a_cluster_twice) {
    seeded_random random(17);
    constexpr std::uint32_t count = 5000;
    allocator from(all_free(count), 2);
    struct file {
        explicit file(allocator& with) : own(with) {}
        reservation own;
        std::vector<cluster_extent> extents;
    };
    std::vector<std::unique_ptr<file>> files;
    for (int i = 0; i < 6; ++i)
        files.push_back(std::make_unique<file>(from));
    std::vector<bool> used(count + 2, false);
    std::uint32_t in_use = 0;
    for (int i = 0; i < 20'000; ++i) {
        file& mine = *files[random.below(files.size())];
        if (random.below(3) != 0) {
            std::vector<cluster_extent> taken;
            const auto wanted = static_cast<std::uint32_t>(1 + random.below(40));
            const std::uint32_t goal =
                mine.extents.empty() ? 0 : mine.extents.back().first + mine.extents.back().length;
            const auto done = from.allocate(
                {.goal = goal, .wanted = wanted, .ahead = static_cast<std::uint32_t>(random.below(100))},
                mine.own, taken);
            if (not done) {
                ASSERT_TRUE(taken.empty());
                if (done.error().code() == EAGAIN) reuse_all(from, from.take_released());
                continue;
            }
            ASSERT_EQ(clusters_in(taken), wanted);
            for (const auto& each : taken) {
                for (std::uint32_t c = each.first; c < each.first + each.length; ++c) {
                    ASSERT_FALSE(used[c]);
                    used[c] = true;
                }
                mine.extents.push_back(each);
            }
            in_use += wanted;
        } else if (not mine.extents.empty()) {
            const cluster_extent gone = mine.extents.back();
            mine.extents.pop_back();
            std::fill_n(used.begin() + gone.first, gone.length, false);
            in_use -= gone.length;
            from.release(gone);
            if (random.below(4) == 0) reuse_all(from, from.take_released());
        }
        ASSERT_EQ(from.free_count(), count - in_use);
    }
}

}  // namespace
}  // namespace sluice::fat

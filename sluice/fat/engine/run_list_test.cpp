#include "sluice/fat/engine/run_list.hpp"

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"

namespace sluice::fat {
namespace {

// Follows the model's chain from the known clusters, as a file does; counts the steps.
struct found {
    std::uint32_t disk_cluster = 0;
    std::uint32_t steps = 0;
};
found locate(const run_list& list, const std::vector<std::uint32_t>& chain, std::uint32_t file_cluster,
             run_list::hint& hint) {
    const cluster_run near = list.nearest(file_cluster, hint);
    EXPECT_LE(near.file_cluster, file_cluster);
    for (std::uint32_t i = 0; i < near.length; ++i)
        EXPECT_EQ(chain[near.file_cluster + i], near.disk_cluster + i);
    return {.disk_cluster = chain[file_cluster], .steps = file_cluster - near.file_cluster};
}

void check(const run_list& list, const std::vector<std::uint32_t>& chain) {
    ASSERT_LE(list.mapped(), chain.size());
    std::uint32_t next = 0;
    for (const cluster_run& each : list.runs()) {
        ASSERT_EQ(each.file_cluster, next);
        ASSERT_NE(each.length, 0U);
        next += each.length;
    }
    ASSERT_EQ(next, list.exact());
    if (list.mapped() != 0) {
        ASSERT_EQ(list.tail()->file_cluster, list.mapped() - 1);
        ASSERT_EQ(list.tail()->disk_cluster, chain[list.mapped() - 1]);
    } else {
        ASSERT_FALSE(list.tail().has_value());
    }
}

TEST(run_list, a_contiguous_file_is_one_run_however_it_grows) {
    run_list list;
    for (std::uint32_t i = 0; i < 1000; ++i)
        list.append(50 + i, 1);
    list.append(1050, 500'000);
    EXPECT_EQ(list.run_count(), 1U);
    run_list::hint hint;
    EXPECT_EQ(list.nearest(400'000, hint),
              (cluster_run{.file_cluster = 400'000, .disk_cluster = 400'050, .length = 101'000}));
}

TEST(run_list, a_stale_hint_or_one_of_another_list_does_no_damage) {
    run_list list;
    for (std::uint32_t i = 0; i < 10; ++i)
        list.append(1000 * (i + 1), 3);
    for (const std::size_t run : {0U, 3U, 9U, 10U, 1000U}) {
        run_list::hint hint{.run = run};
        EXPECT_EQ(list.nearest(13, hint).disk_cluster, 5001U);
        EXPECT_EQ(hint.run, 4U);
    }
}

class run_list_model : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(seed, run_list_model, testing::Range<std::uint64_t>(1, 6));

// Compares with a plain array of all clusters: appends, cuts and lookups, with few and with many
// stored runs.
TEST_P(run_list_model, random_calls_agree_with_an_array) {
    seeded_random random(GetParam());
    const std::size_t runs_max = GetParam() % 2 == 0 ? 8 : 1'000'000;
    run_list list(runs_max);
    std::vector<std::uint32_t> chain;
    run_list::hint hint;
    for (int i = 0; i < 3000; ++i) {
        const std::uint64_t what = random.below(10);
        if (what < 6) {
            const bool joins = random.below(3) == 0 and not chain.empty();
            const std::uint32_t start =
                joins ? chain.back() + 1 : 2 + static_cast<std::uint32_t>(random.below(1U << 28));
            const auto length =
                static_cast<std::uint32_t>(1 + random.below(random.below(20) == 0 ? 3000 : 4));
            list.append(start, length);
            for (std::uint32_t j = 0; j < length; ++j)
                chain.push_back(start + j);
        } else if (what == 6) {
            const auto kept = static_cast<std::uint32_t>(random.below(chain.size() + 1));
            list.cut(kept);
            // Down to an anchor, which is less than the spacing away.
            ASSERT_LE(list.mapped(), kept);
            ASSERT_LT(kept - list.mapped(), run_list::anchor_spacing);
            if (kept <= list.exact()) ASSERT_EQ(list.mapped(), kept);
            chain.resize(list.mapped());
        } else if (list.mapped() != 0) {
            const auto wanted = static_cast<std::uint32_t>(random.below(list.mapped()));
            const found there = locate(list, chain, wanted, hint);
            ASSERT_LT(there.steps, run_list::anchor_spacing);
            if (wanted < list.exact()) ASSERT_EQ(there.steps, 0U);
        }
        check(list, chain);
        ASSERT_LE(list.run_count(), runs_max);
    }
}

TEST(run_list, a_file_in_millions_of_fragments_needs_little_memory) {
    run_list list;
    constexpr std::uint32_t clusters = 8U << 20;
    for (std::uint32_t i = 0; i < clusters; ++i)
        list.append(2 + i * 2, 1);
    EXPECT_EQ(list.mapped(), clusters);
    EXPECT_LT(list.bytes_allocated(), 2U << 20);
    run_list::hint hint;
    const cluster_run near = list.nearest(clusters - 1, hint);
    EXPECT_LT(clusters - 1 - near.file_cluster, run_list::anchor_spacing);
    EXPECT_EQ(near.disk_cluster, 2 + near.file_cluster * 2);
}

}  // namespace
}  // namespace sluice::fat

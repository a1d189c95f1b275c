#include "sluice/smb/server/net/credit_window.hpp"

#include <gtest/gtest.h>

#include <set>

#include "sluice/base/random.hpp"

namespace sluice::smb::server {
namespace {

TEST(credit_window, begins_with_one_id_that_can_be_used_once) {
    credit_window window;
    EXPECT_TRUE(window.use(0, 1));
    EXPECT_FALSE(window.use(0, 1));
    EXPECT_FALSE(window.use(1, 1));
}

TEST(credit_window, gives_at_least_one_to_a_client_that_has_none) {
    credit_window window;
    ASSERT_TRUE(window.use(0, 1));
    EXPECT_EQ(window.grant(0, limits::credits_max), 1);
    EXPECT_TRUE(window.use(1, 1));
}

TEST(credit_window, takes_ids_in_any_order) {
    credit_window window;
    EXPECT_EQ(window.grant(9, limits::credits_max), 9);
    for (const std::uint64_t id : {7, 3, 0, 9, 1})
        EXPECT_TRUE(window.use(id, 1)) << id;
    EXPECT_FALSE(window.use(3, 1));
    EXPECT_TRUE(window.use(2, 1));
}

TEST(credit_window, refuses_a_charge_that_overlaps_a_used_id_and_uses_nothing) {
    credit_window window;
    EXPECT_EQ(window.grant(9, limits::credits_max), 9);
    ASSERT_TRUE(window.use(4, 1));
    EXPECT_FALSE(window.use(2, 4));
    EXPECT_TRUE(window.use(2, 2));
    EXPECT_TRUE(window.use(5, 5));
    EXPECT_FALSE(window.use(10, 1));
}

TEST(credit_window, refuses_ids_whose_sum_with_the_charge_wraps) {
    credit_window window;
    EXPECT_FALSE(window.use(~std::uint64_t{0}, 65535));
}

TEST(credit_window, never_has_more_outstanding_than_allowed) {
    credit_window window;
    EXPECT_EQ(window.grant(65535, 100), 99);
    EXPECT_EQ(window.grant(1, 100), 0);
}

TEST(credit_window, does_not_grow_for_a_client_that_never_uses_its_lowest_id) {
    credit_window window;
    std::uint64_t next = 1;
    std::uint64_t used = 0;
    for (int round = 0; round != 100'000; ++round) {
        if (window.grant(1, limits::credits_max) == 0) break;
        ASSERT_TRUE(window.use(next++, 1));
        ++used;
    }
    EXPECT_LT(used, credit_window::capacity);
    EXPECT_TRUE(window.use(0, 1));
    EXPECT_GT(window.grant(10, limits::credits_max), 0) << "the window moves on once the lowest is used";
}

TEST(credit_window, agrees_with_a_set_of_ids_in_random_use) {
    seeded_random random(7);
    credit_window window;
    std::set<std::uint64_t> free{0};
    std::uint64_t end = 1;
    for (int round = 0; round != 20'000; ++round) {
        if (random.below(3) == 0) {
            const std::uint16_t granted = window.grant(static_cast<std::uint16_t>(random.below(64)), 512);
            for (std::uint16_t i = 0; i != granted; ++i)
                free.insert(end++);
        } else {
            const std::uint64_t base = free.empty() ? end : *free.begin();
            const std::uint64_t id = base + random.below(8);
            const auto charge = static_cast<std::uint16_t>(1 + random.below(4));
            bool allowed = true;
            for (std::uint64_t used = id; used != id + charge; ++used)
                allowed = allowed and free.contains(used);
            ASSERT_EQ(window.use(id, charge), allowed);
            if (allowed)
                for (std::uint64_t used = id; used != id + charge; ++used)
                    free.erase(used);
        }
        ASSERT_EQ(window.outstanding(), free.size());
    }
}

}  // namespace
}  // namespace sluice::smb::server

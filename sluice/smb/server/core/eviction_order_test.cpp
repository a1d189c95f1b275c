#include "sluice/smb/server/core/eviction_order.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::smb::server {
namespace {

using order = eviction_order<std::string, int>;

TEST(eviction_order, drops_the_oldest_entry_of_the_client_with_most_entries) {
    order all;
    EXPECT_EQ(all.victim(), std::nullopt);
    (void)all.add("honest", 1);
    const auto oldest = all.add("attacker", 2);
    (void)all.add("attacker", 3);
    EXPECT_EQ(all.victim(), 2);
    EXPECT_EQ(all.most(), 2U);
    all.remove(oldest);
    EXPECT_EQ(all.victim(), 1) << "of clients with as many entries, the one with the oldest";
    EXPECT_EQ(all.size(), 2U);
}

TEST(eviction_order, drops_entries_of_many_clients_by_age_whatever_they_are_called) {
    order all;
    const auto first = all.add("m", 1);
    (void)all.add("a", 2);
    (void)all.add("z", 3);
    EXPECT_EQ(all.victim(), 1);
    all.remove(first);
    EXPECT_EQ(all.victim(), 2);
    (void)all.add("m", 4);
    EXPECT_EQ(all.victim(), 2);
}

TEST(eviction_order, keeps_the_few_entries_of_a_client_while_another_one_floods_it) {
    order all;
    (void)all.add("honest", 0);
    constexpr std::size_t size_max = 16;
    std::map<int, order::entry> entries;
    for (int i = 1; i != 1000; ++i) {
        if (all.size() == size_max) {
            const int dropped = all.victim().value();
            ASSERT_NE(dropped, 0);
            all.remove(entries.at(dropped));
        }
        entries[i] = all.add("attacker", i);
    }
    EXPECT_EQ(all.size(), size_max);
}

TEST(eviction_order, is_empty_again_after_every_entry_was_removed) {
    order all;
    std::vector<order::entry> entries;
    for (int i = 0; i != 100; ++i)
        entries.push_back(all.add(std::to_string(i % 7), i));
    for (const auto& one : entries)
        all.remove(one);
    EXPECT_EQ(all.size(), 0U);
    EXPECT_EQ(all.most(), 0U);
    EXPECT_EQ(all.victim(), std::nullopt);
}

}  // namespace
}  // namespace sluice::smb::server

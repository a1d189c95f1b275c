#include "sluice/smb/server/net/server_loop.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

TEST(loop_choice, spreads_the_connections_of_one_client_over_all_loops) {
    loop_choice loops(3);
    std::vector<std::size_t> homes;
    for (int i = 0; i != 6; ++i)
        homes.push_back(loops.enter("a"));
    EXPECT_EQ(homes, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2}));
}

TEST(loop_choice, gives_the_first_connections_of_different_clients_to_different_loops) {
    loop_choice loops(2);
    EXPECT_EQ(loops.enter("a"), 0U);
    EXPECT_EQ(loops.enter("b"), 1U);
    EXPECT_EQ(loops.enter("c"), 0U);
}

TEST(loop_choice, balances_the_connections_of_a_client_before_those_of_all) {
    loop_choice loops(2);
    EXPECT_EQ(loops.enter("a"), 0U);
    for (int i = 0; i != 8; ++i)
        loops.enter("others", 1);
    EXPECT_EQ(loops.enter("a"), 1U) << "though the other loop has fewer connections";
}

TEST(loop_choice, forgets_connections_that_have_gone) {
    loop_choice loops(2);
    EXPECT_EQ(loops.enter("a"), 0U);
    EXPECT_EQ(loops.enter("a"), 1U);
    loops.leave("a", 0);
    EXPECT_EQ(loops.enter("a"), 0U);
    loops.leave("a", 0);
    loops.leave("a", 1);
    EXPECT_EQ(loops.enter("a"), 0U);
}

TEST(loop_choice, knows_where_a_client_has_connections) {
    loop_choice loops(2);
    EXPECT_FALSE(loops.has("a", 0));
    loops.enter("a", 1);
    EXPECT_FALSE(loops.has("a", 0));
    EXPECT_TRUE(loops.has("a", 1));
    EXPECT_FALSE(loops.has("b", 1));
    loops.leave("a", 1);
    EXPECT_FALSE(loops.has("a", 1));
}

}  // namespace
}  // namespace sluice::smb::server

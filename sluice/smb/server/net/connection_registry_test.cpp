#include "sluice/smb/server/net/connection_registry.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/core/threads_testing.hpp"

namespace sluice::smb::server {
namespace {

constexpr std::size_t threads = 4;
constexpr int rounds = 1000;

TEST(connection_registry, takes_no_more_sockets_than_it_may) {
    connection_registry connections;
    std::atomic<int> taken{0};
    run_at_once(threads, [&](std::size_t) {
        for (int i = 0; i != rounds; ++i) {
            if (not connections.take_socket(2)) continue;
            EXPECT_LE(taken.fetch_add(1), 1);
            taken.fetch_sub(1);
            connections.release_socket();
        }
    });
    EXPECT_EQ(connections.size(), 0U);
    EXPECT_FALSE(connections.is_stopping());
    EXPECT_TRUE(connections.stop().empty());
    EXPECT_TRUE(connections.is_stopping());
}

TEST(loop_choice, counts_the_connections_that_several_loops_enter_and_leave) {
    loop_choice homes(2);
    run_at_once(threads, [&](std::size_t) {
        for (int i = 0; i != rounds; ++i) {
            const std::size_t loop = homes.enter("client");
            EXPECT_TRUE(homes.has("client", loop));
            homes.leave("client", loop);
        }
    });
    EXPECT_FALSE(homes.has("client", 0) or homes.has("client", 1));
}

}  // namespace
}  // namespace sluice::smb::server

// Channels that are lost under load, in simulated time: a WRITE of a lost channel may still be in
// progress when it is repeated on another one.

#include "sluice/vfs/memory/memory_volume.hpp"
#include "tests/smb_client/channel_storm.hpp"
#include "tests/smb_client/rig.hpp"

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component

void have_slow_files(smb::server::server_configuration& of) {
    static_cast<vfs::memory_volume&>(*of.shares.front().volume)
        .set_faults({.delay_max = std::chrono::milliseconds(3)});
}

io::task<void> record_end(channel_storm& of, int operations, bool& is_over) {
    auto running = of.run([operations]() mutable { return --operations < 0; });
    co_await std::move(running);
    is_over = true;
}

[[nodiscard]] channel_storm::tally weather(std::uint64_t seed, encryption protection) {
    rig world(have_slow_files, seed, {.seed = seed, .short_transfers = 200});
    channel_storm storm(world.dependencies(),
                        [&](const connection_options& how) {
                            return connection::open(world.dependencies(), world.connect(), how);
                        },
                        rig::who(),
                        {.seed = seed, .connection = {.server_name = "server", .encryption = protection}});
    bool is_over = false;
    world.clients.spawn(record_end(storm, 400, is_over));
    while (not is_over and world.loop->run().value_or(0) > 0) {}
    EXPECT_TRUE(is_over) << world.loop->stalled();
    return storm.result();
}

TEST(channels_killed_under_load, lose_no_bytes_and_restore_no_old_ones) {
    std::uint64_t kills = 0;
    for (std::uint64_t seed = 1; seed != 7; ++seed) {
        const auto came =
            weather(seed, seed % 3 == 0 ? encryption::required : encryption::as_server_requires);
        ASSERT_EQ(came.problem, "") << "seed " << seed;
        EXPECT_GT(came.reads, 100U);
        EXPECT_GT(came.writes, 100U);
        kills += came.kills;
    }
    EXPECT_GT(kills, 30U) << "too few channels were killed";
}

}  // namespace
}  // namespace sluice::smb_client_testing

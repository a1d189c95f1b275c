#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/task_group.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/user_database.hpp"
#include "sluice/vfs/memory_volume.hpp"
#include "tests/simulation.hpp"
#include "tests/smb_simulation/unruly_client.hpp"

// Logging off, closing, disconnecting, breaking, cancelling and hanging up in every order: whatever clients
// do, when they are gone nothing of theirs is left.

namespace sluice::smb_simulation {
namespace {

using smb::server::smb_server;

class silent_log final : public smb::server::event_log {
public:
    void write(smb::server::event_severity, std::string_view,
               std::initializer_list<smb::server::event_field>) noexcept override {}
};

struct world {
    world(const io::simulation_options& options, std::uint64_t seed)
        : loop(io::make_simulated_multiplexer(options).value()),
          clock(loop->clock_of_simulation()),
          secrets(seed),
          clients(*loop) {
        EXPECT_TRUE(users.set_for_now("u", "p"));
        smb::server::server_configuration configuration;
        configuration.signing = smb::server::protection::offered;
        configuration.shares.push_back({});
        configuration.shares.back().name = "files";
        configuration.shares.back().volume = std::make_unique<vfs::memory_volume>(*loop, clock);
        server = std::make_unique<smb_server>(
            smb::server::server_seams{
                .loop = *loop, .clock = clock, .random = secrets, .accounts = users, .log = log},
            std::move(configuration));
        EXPECT_TRUE(server->start({}));
    }

    unruly_client& connect(const unruly_client::habits& how) {
        auto pair = io::socket_handle::pair().value();
        EXPECT_TRUE(pair.first.set_multiplexer(loop.get()));
        EXPECT_TRUE(pair.second.set_multiplexer(loop.get()));
        server->adopt(std::move(pair.first), io::socket_address::loopback_v4(1));
        all.push_back(std::make_unique<unruly_client>(*loop, std::move(pair.second), clock, how));
        return *all.back();
    }

    void run() {
        while (loop->run() > 0) {}
    }

    std::unique_ptr<io::simulated_multiplexer> loop;
    simulated_clock& clock;
    predictable_secrets_for_simulation secrets;
    smb::server::user_database users;
    silent_log log;
    std::unique_ptr<smb_server> server;
    io::task_group clients;
    std::vector<std::unique_ptr<unruly_client>> all;
};

io::task<void> finish(smb_server& server, bool& is_done) {
    io::task<void> ending = server.done();
    co_await std::move(ending);
    is_done = true;
}

void live_and_leave(std::uint64_t seed, const io::simulation_options& options, bool loses_connections) {
    world simulated(options, seed);
    seeded_random random(seed);
    const std::uint64_t count = 2 + random.below(4);
    for (std::uint64_t i = 0; i != count; ++i) {
        unruly_client& client = simulated.connect(
            {.seed = seed * 100 + i, .requests = static_cast<unsigned>(20 + random.below(200))});
        simulated.clients.spawn(client.live());
    }
    simulated.run();
    ASSERT_EQ(simulated.clients.size(), 0U) << "a client waits for ever: " << simulated.loop->stalled();

    unsigned successes = 0;
    for (const auto& client : simulated.all) {
        EXPECT_EQ(client->complaint(), "");
        successes += client->successes();
    }
    if (not loses_connections) EXPECT_GT(successes, count * 4) << "clients got in, and something done";
    const auto left = simulated.server->gauges();
    EXPECT_EQ(left.connections, 0U) << simulated.loop->stalled();
    EXPECT_EQ(left.sessions, 0U) << "no session outlives its connection";

    simulated.server->stop();
    bool is_done = false;
    io::task_group ending(*simulated.loop);
    ending.spawn(finish(*simulated.server, is_done));
    simulated.run();
    ASSERT_TRUE(is_done) << simulated.loop->stalled();
    const auto after = simulated.server->gauges();
    EXPECT_EQ(after.opens, 0U) << "no open outlives its session";
    EXPECT_EQ(after.files, 0U) << "no file stays locked or shared";
    EXPECT_EQ(after.buffers, 0U) << "every buffer is given back";
}

TEST(smb_server, is_empty_again_after_clients_that_end_everything_in_every_order) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        live_and_leave(seed, io::simulation_options::rough(seed), false);
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(smb_server, is_empty_again_after_connections_that_break_at_any_byte) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        live_and_leave(seed, io::simulation_options::hostile(seed), true);
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(smb_server, does_the_same_again_from_the_same_seed) {
    std::uint64_t digests[2] = {};
    for (std::uint64_t& digest : digests) {
        world simulated(io::simulation_options::rough(5), 5);
        simulated.clients.spawn(simulated.connect({.seed = 5}).live());
        simulated.run();
        digest = simulated.loop->digest();
        simulated.server->stop();
        bool is_done = false;
        io::task_group ending(*simulated.loop);
        ending.spawn(finish(*simulated.server, is_done));
        simulated.run();
        EXPECT_TRUE(is_done);
    }
    EXPECT_EQ(digests[0], digests[1]);
}

}  // namespace
}  // namespace sluice::smb_simulation

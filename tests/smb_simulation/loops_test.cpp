#include <gtest/gtest.h>

#include <filesystem>

#include "sluice/io/best_available.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_client/channel_storm.hpp"
#include "tests/smb_simulation/clients/nonconforming_client.hpp"
#include "tests/smb_simulation/world/server_on_loops.hpp"

// A server on several real loops, and clients that carry out all operations on the same files in
// random order, each on its own thread. Errors are detected by TSan, and by ENSUREs of the server.

namespace sluice::smb_simulation {
namespace {

[[nodiscard]] std::filesystem::path directory_of_test() {
    return std::filesystem::path(testing::TempDir()) / ("sluice-loops-" + std::to_string(::getpid()));
}

[[nodiscard]] std::unique_ptr<vfs::volume> in_directory(io::io_multiplexer& loop, clock_source&) {
    std::filesystem::create_directories(directory_of_test());
    return vfs::host_volume::open(loop, directory_of_test().c_str()).value();
}

// Like a directory on a file system that may hang: every call runs on a worker.
[[nodiscard]] std::unique_ptr<vfs::volume> in_offloaded_directory(io::io_multiplexer& loop,
                                                                  clock_source& clock) {
    std::unique_ptr<vfs::volume> directory = in_directory(loop, clock);
    directory->set_domain(std::make_shared<vfs::fs_domain>(
        vfs::fs_domain_options{.name = "directory", .policy = vfs::call_policy::never_inline}));
    return directory;
}

struct outcome {
    unsigned replies = 0;
    unsigned successes = 0;
    std::string problem;
};

void misbehave(io::socket_handle socket, const clock_source& clock, const nonconforming_client::habits& how,
               outcome& into) {
    const auto loop = io::best_available().value();
    ASSERT_TRUE(socket.set_multiplexer(loop.get()));
    nonconforming_client client(*loop, std::move(socket), clock, how);
    io::sync_wait(*loop, client.live());
    into = {client.replies(), client.successes(), client.problem()};
}

void let_clients_live(std::size_t loops,
                      std::unique_ptr<vfs::volume> (*make)(io::io_multiplexer&, clock_source&)) {
    constexpr std::size_t count = 6;
    for (std::uint64_t round = 0; round != 3; ++round) {
        server_on_loops served(loops, make);
        std::vector<outcome> outcomes(count);
        std::vector<std::function<void()>> clients;
        for (std::size_t i = 0; i != count; ++i) {
            auto socket =
                std::make_shared<io::socket_handle>(served.connect(static_cast<std::uint16_t>(i + 1)));
            clients.emplace_back([&, i, round, socket] {
                misbehave(std::move(*socket), served.clock(), {.seed = round * 100 + i + 1, .requests = 300},
                          outcomes[i]);
            });
        }
        served.serve(std::move(clients));
        unsigned successes = 0;
        for (const outcome& one : outcomes) {
            EXPECT_EQ(one.problem, "");
            successes += one.successes;
        }
        EXPECT_GT(successes, count * 4) << "clients connected and succeeded";
    }
}

TEST(server_on_several_loops, is_empty_after_clients_that_end_everything_in_random_order) {
    let_clients_live(3, in_memory);
}

TEST(server_on_several_loops, serves_a_directory_to_such_clients) {
    let_clients_live(3, in_directory);
    std::filesystem::remove_all(directory_of_test());
}

TEST(server_on_several_loops, serves_a_directory_whose_calls_run_on_workers_to_such_clients) {
    let_clients_live(3, in_offloaded_directory);
    std::filesystem::remove_all(directory_of_test());
}

// A client of several channels, each on its own loop, on a separate thread.
void rage(server_on_loops& served, std::uint16_t number, int operations,
          smb_client_testing::channel_storm::tally& came) {
    const auto loop = io::best_available().value();
    system_random secrets;
    const smb::client::dependencies world{.loop = *loop, .random = secrets, .clock = served.clock()};
    smb::auth::credentials who{.user = "u",
                               .domain = {},
                               .workstation = {},
                               .target_name = "cifs/server",
                               .hash = smb::auth::nt_hash::of_password("p").value()};
    smb_client_testing::channel_storm storm(world,
                                            [&](const smb::client::connection_options& how) {
                                                auto socket = served.connect_from_thread(number);
                                                EXPECT_TRUE(socket.set_multiplexer(loop.get()));
                                                return smb::client::connection::open(world, std::move(socket),
                                                                                     how);
                                            },
                                            std::move(who),
                                            {.seed = number,
                                             .file = "storm" + std::to_string(number),
                                             .workers = 4,
                                             .connection = {.server_name = "server"}});
    io::sync_wait(*loop, storm.run([operations]() mutable { return --operations < 0; }));
    came = storm.result();
}

TEST(server_on_several_loops, serves_one_session_over_channels_on_all_loops_while_channels_are_lost) {
    std::array<smb_client_testing::channel_storm::tally, 2> came;
    {
        server_on_loops served(3, in_directory);
        std::vector<std::function<void()>> clients;
        for (std::uint16_t i = 0; i != 2; ++i)
            // Channels are killed after some time: this number of operations takes long enough.
            clients.emplace_back([&served, &came, i] { rage(served, i + 1, 3000, came[i]); });
        served.serve(std::move(clients));
    }
    for (const auto& of_one : came) {
        EXPECT_EQ(of_one.problem, "");
        EXPECT_GT(of_one.reads + of_one.writes, 200U);
    }
    EXPECT_GT(came[0].kills + came[1].kills, 4U);
    std::filesystem::remove_all(directory_of_test());
}

TEST(server_on_several_loops, serves_such_clients_on_one_loop_as_well) {
    let_clients_live(1, in_directory);
    std::filesystem::remove_all(directory_of_test());
}

}  // namespace
}  // namespace sluice::smb_simulation

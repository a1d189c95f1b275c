#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/io/sync_wait.hpp"
#include "sluice/vfs/host_volume.hpp"
#include "sluice/vfs/memory_volume.hpp"
#include "tests/smb_client/channel_storm.hpp"
#include "tests/smb_simulation/unruly_client.hpp"
#include "tests/smb_simulation/world.hpp"

// A server on several real loops, and clients that do everything to the same files in every order, each on a
// thread of its own. What goes wrong here is for TSan to see, and for the server's own ENSUREs.

namespace sluice::smb_simulation {
namespace {

using smb::server::event;
using smb::server::smb_server;

/// A loop run by a thread of its own while this lives.
class running_loop {
public:
    running_loop()
        : until_end_(std::in_place, *multiplexer_), runner_([this] {
              while (multiplexer_->run() > 0) {}
          }) {}
    ~running_loop() {
        until_end_.reset();
        runner_.join();
    }
    [[nodiscard]] io::io_multiplexer& multiplexer() noexcept { return *multiplexer_; }

private:
    std::unique_ptr<io::io_multiplexer> multiplexer_ = io::best_available().value();
    std::optional<io::io_multiplexer::work_guard> until_end_;
    std::thread runner_;
};

/// A server on `count` loops, the first of them this thread's.
class server_on_loops {
public:
    server_on_loops(std::size_t count,
                    std::unique_ptr<vfs::volume> (*make)(io::io_multiplexer&, clock_source&))
        : ended_(*first_) {
        std::vector<io::io_multiplexer*> others;
        for (std::size_t i = 1; i != count; ++i) {
            others_.push_back(std::make_unique<running_loop>());
            others.push_back(&others_.back()->multiplexer());
        }
        const smb::server::user_database::admission only{.name = "u", .password = "p"};
        EXPECT_TRUE(users_.admit(std::span(&only, 1)));
        smb::server::server_configuration configuration;
        configuration.signing = smb::server::protection::offered;
        configuration.shares.push_back({});
        configuration.shares.back().name = "files";
        configuration.shares.back().volume = make(*first_, clock_);
        server_ = std::make_unique<smb_server>(smb::server::server_seams{.loop = *first_,
                                                                         .clock = clock_,
                                                                         .random = secrets_,
                                                                         .accounts = users_,
                                                                         .log = log_,
                                                                         .other_loops = others},
                                               std::move(configuration));
        EXPECT_TRUE(server_->start({}));
    }

    [[nodiscard]] smb_server& server() noexcept { return *server_; }
    [[nodiscard]] clock_source& clock() noexcept { return clock_; }

    /// The client's end of a new connection of the client of that number.
    [[nodiscard]] io::socket_handle connect(std::uint16_t client) {
        auto pair = io::socket_handle::pair().value();
        server_->adopt(std::move(pair.first), io::socket_address::loopback_v4(client));
        return std::move(pair.second);
    }

    /// The same, for who is on a thread of his own.
    [[nodiscard]] io::socket_handle connect_from_thread(std::uint16_t client) {
        auto pair = io::socket_handle::pair().value();
        EXPECT_TRUE(first_->post([this, given = std::move(pair.first), client]() mutable noexcept {
            server_->adopt(std::move(given), io::socket_address::loopback_v4(client));
        }));
        return std::move(pair.second);
    }

    /// Serves until every one of `clients`, each run by a thread, has returned; then stops.
    void serve(std::vector<std::function<void()>> clients) {
        std::atomic<std::size_t> left = clients.size();
        std::vector<std::thread> threads;
        for (auto& client : clients) {
            threads.emplace_back([&] {
                client();
                if (left.fetch_sub(1) == 1) (void)first_->post([this]() noexcept { ended_.set(true); });
            });
        }
        io::sync_wait(*first_, until_ended());
        for (std::thread& one : threads)
            one.join();
        const auto gauges = server_->gauges();
        EXPECT_EQ(gauges.connections, 0U);
        EXPECT_EQ(gauges.sessions, 0U) << "no session outlives its connections";
        EXPECT_EQ(gauges.opens, 0U) << "no open outlives its session";
        EXPECT_EQ(gauges.files, 0U) << "no file stays locked or shared";
        EXPECT_EQ(gauges.buffers, 0U) << "every buffer is given back";
    }

private:
    io::task<void> until_ended() {
        (void)co_await ended_.wait();
        server_->stop();
        io::task<void> ending = server_->done();
        co_await std::move(ending);
    }

    std::unique_ptr<io::io_multiplexer> first_ = io::best_available().value();
    std::vector<std::unique_ptr<running_loop>> others_;
    event<bool> ended_;
    system_clock_source clock_;
    system_random secrets_;
    smb::server::user_database users_;
    silent_log log_;
    std::unique_ptr<smb_server> server_;
};

[[nodiscard]] std::unique_ptr<vfs::volume> in_memory(io::io_multiplexer& loop, clock_source& clock) {
    return std::make_unique<vfs::memory_volume>(loop, clock);
}

[[nodiscard]] std::filesystem::path folder_of_test() {
    return std::filesystem::path(testing::TempDir()) / ("sluice-loops-" + std::to_string(::getpid()));
}

[[nodiscard]] std::unique_ptr<vfs::volume> in_folder(io::io_multiplexer& loop, clock_source&) {
    std::filesystem::create_directories(folder_of_test());
    return vfs::host_volume::open(loop, folder_of_test().c_str()).value();
}

struct outcome {
    unsigned replies = 0;
    unsigned successes = 0;
    std::string complaint;
};

void misbehave(io::socket_handle socket, const clock_source& clock, const unruly_client::habits& how,
               outcome& into) {
    const auto loop = io::best_available().value();
    ASSERT_TRUE(socket.set_multiplexer(loop.get()));
    unruly_client client(*loop, std::move(socket), clock, how);
    io::sync_wait(*loop, client.live());
    into = {client.replies(), client.successes(), client.complaint()};
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
            EXPECT_EQ(one.complaint, "");
            successes += one.successes;
        }
        EXPECT_GT(successes, count * 4) << "clients got in, and something done";
    }
}

TEST(server_on_several_loops, is_empty_again_after_clients_that_end_everything_in_every_order) {
    let_clients_live(3, in_memory);
}

TEST(server_on_several_loops, serves_a_folder_to_such_clients) {
    let_clients_live(3, in_folder);
    std::filesystem::remove_all(folder_of_test());
}

// A client of several channels, each on a loop of its own, on a thread of its own.
void rage(server_on_loops& served, std::uint16_t number, int operations,
          smb_client_testing::channel_storm::tally& came) {
    const auto loop = io::best_available().value();
    system_random secrets;
    const smb::client::seams world{.loop = *loop, .random = secrets, .clock = served.clock()};
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

TEST(server_on_several_loops, serves_one_session_over_channels_on_all_of_them_while_these_die) {
    std::array<smb_client_testing::channel_storm::tally, 2> came;
    {
        server_on_loops served(3, in_folder);
        std::vector<std::function<void()>> clients;
        for (std::uint16_t i = 0; i != 2; ++i)
            clients.emplace_back([&served, &came, i] { rage(served, i + 1, 300, came[i]); });
        served.serve(std::move(clients));
    }
    for (const auto& of_one : came) {
        EXPECT_EQ(of_one.complaint, "");
        EXPECT_GT(of_one.reads + of_one.writes, 200U);
    }
    EXPECT_GT(came[0].kills + came[1].kills, 4U);
    std::filesystem::remove_all(folder_of_test());
}

TEST(server_on_several_loops, serves_them_on_one_loop_as_well) {
    let_clients_live(1, in_folder);
    std::filesystem::remove_all(folder_of_test());
}

}  // namespace
}  // namespace sluice::smb_simulation

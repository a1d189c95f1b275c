// "Allocates: nothing once warm": reads and writes of a client that has made as many before. The
// server is a separate process, whose allocations do not count.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "bench/harness/allocation_counter.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/task/frame_pool.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "tests/smb_client/rig.hpp"

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component

// Serves until the process is killed.
[[noreturn]] void serve(io::socket_handle socket) {
    const auto loop = io::best_available().value();
    system_clock_source clock;
    system_random secrets;
    smb_simulation::silent_log log;
    smb::server::user_database users;
    const smb::server::user_database::admission only{.name = "u", .password = "p"};
    if (not users.admit(std::span(&only, 1))) ::_exit(1);
    smb::server::server_configuration configuration;
    configuration.shares.push_back({});
    configuration.shares.back().name = "files";
    configuration.shares.back().volume = std::make_unique<vfs::memory_volume>(*loop, clock);
    smb::server::smb_server server(
        {.loop = *loop, .clock = clock, .random = secrets, .accounts = users, .log = log},
        std::move(configuration));
    if (not server.start({})) ::_exit(1);
    server.adopt(std::move(socket), io::socket_address::loopback_v4(1));
    while (loop->run().value_or(0) > 0) {}
    ::_exit(0);
}

class server_process {
public:
    server_process() {
        auto pair = io::socket_handle::pair().value();
        id_ = ::fork();
        if (id_ == 0) {
            (void)pair.first.close();
            serve(std::move(pair.second));
        }
        socket = std::move(pair.first);
    }
    ~server_process() {
        ::kill(id_, SIGKILL);
        ::waitpid(id_, nullptr, 0);
    }

    io::socket_handle socket;

private:
    pid_t id_ = -1;
};

constexpr std::size_t file_bytes = 1U << 20;
constexpr int runs_until_warm = 8;

// Transfers pieces of the file concurrently, so that they wait for one another, for credits and for
// the kernel.
io::task<void> there_and_back(remote_file& file, std::span<std::byte> piece, std::size_t at,
                              std::size_t& good) {
    auto writing = file.co_write(piece, at);
    const auto wrote = co_await std::move(writing);
    auto reading = file.co_read(piece, at);
    const auto read = co_await std::move(reading);
    if (wrote and read and *read == piece.size()) ++good;
}

io::task<std::uint64_t> allocations_of(int rounds, io::io_multiplexer& loop, remote_file& file,
                                       std::size_t piece_bytes) {
    std::vector<std::byte> data(file_bytes);
    io::task_group workers(loop);
    std::size_t good = 0;
    const std::uint64_t before = bench::allocations();
    for (int i = 0; i != rounds; ++i) {
        for (std::size_t at = 0; at != file_bytes; at += piece_bytes)
            workers.spawn(there_and_back(file, std::span(data).subspan(at, piece_bytes), at, good));
        co_await workers.join();
    }
    const std::uint64_t made = bench::allocations() - before;
    EXPECT_EQ(good, static_cast<std::size_t>(rounds) * (file_bytes / piece_bytes));
    co_return made;
}

io::task<void> measure(connection& over, io::io_multiplexer& loop) {
    const smb::auth::credentials who = rig::who();
    auto logging_on = session::log_on(over, who);
    const auto logged_on = co_await std::move(logging_on);
    auto connecting = tree::connect(**logged_on, "files");
    const auto in = co_await std::move(connecting);
    auto opening = (*in)->open("f", {.access = smb::wire::file_generic_read | smb::wire::file_generic_write,
                                     .disposition = smb::wire::create_disposition::open_if});
    const auto file = co_await std::move(opening);
    for (const std::size_t piece_bytes : {4096U, 65536U}) {
        // How many transfers are in progress at once depends on the scheduler: a client that has
        // had as many before is warm.
        std::uint64_t made = 1;
        for (int runs = 0; made != 0 and runs != runs_until_warm; ++runs) {
            auto counting = allocations_of(20, loop, **file, piece_bytes);
            made = co_await std::move(counting);
        }
        EXPECT_EQ(made, 0U) << piece_bytes;
    }
}

class client_allocations : public testing::TestWithParam<encryption> {};

TEST_P(client_allocations, are_none_for_reads_and_writes_once_warm) {
    server_process server;
    io::frame_pool frames(4U << 20);
    const io::frame_pool::use all_tasks(frames);
    const auto loop = io::best_available().value();
    system_clock_source clock;
    system_random secrets;
    ASSERT_TRUE(server.socket.set_multiplexer(loop.get()));
    auto opened = io::sync_wait(*loop, connection::open({*loop, secrets, clock}, std::move(server.socket),
                                                        {.server_name = "server", .encryption = GetParam()}));
    ASSERT_TRUE(opened) << opened.error().message();
    io::sync_wait(*loop, measure(**opened, *loop));
    io::sync_wait(*loop, (*opened)->close());
}
INSTANTIATE_TEST_SUITE_P(signed_or_encrypted, client_allocations,
                         testing::Values(encryption::as_server_requires, encryption::required));

}  // namespace
}  // namespace sluice::smb_client_testing

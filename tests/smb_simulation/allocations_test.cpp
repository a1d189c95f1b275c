// Counts how often a server allocates memory for requests like those it has served before. A
// separate program, because malloc is replaced. The client shares the thread and allocates nothing
// itself, once warm.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "bench/harness/allocation_counter.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/frame_pool.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_simulation/clients/steady_client.hpp"
#include "tests/smb_simulation/world/world.hpp"

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol

constexpr const char* directory_name = "directory";
// Too long for the internal buffer of any std::string.
constexpr const char* file_name = "a file with a name as long as names of files are.txt";
constexpr unsigned rounds_to_warm_up = 200;
constexpr unsigned rounds = 10'000;
constexpr unsigned rounds_of_window = 500;
constexpr int windows_max = 2000;

class allocations : public testing::TestWithParam<bool> {  // with io_uring
protected:
    allocations() {
        auto made = GetParam() ? io::make_uring_multiplexer() : io::make_epoll_multiplexer();
        if (not made) return;
        loop_ = std::move(*made);
        std::filesystem::create_directories(directory_ / directory_name);
        const server::user_database::admission only{.name = "u", .password = "p"};
        EXPECT_TRUE(users_.admit(std::span(&only, 1)));
        server::server_configuration configuration;
        configuration.signing = server::protection::offered;
        configuration.shares.push_back({});
        configuration.shares.back().name = "files";
        configuration.shares.back().volume = vfs::host_volume::open(*loop_, directory_.c_str()).value();
        volume_ = configuration.shares.back().volume;
        server_ = std::make_unique<server::smb_server>(
            server::server_dependencies{
                .loop = *loop_, .clock = clock_, .random = secrets_, .accounts = users_, .log = log_},
            std::move(configuration));
        EXPECT_TRUE(server_->start({}));
        auto pair = io::socket_handle::pair().value();
        EXPECT_TRUE(pair.first.set_multiplexer(loop_.get()));
        EXPECT_TRUE(pair.second.set_multiplexer(loop_.get()));
        server_->adopt(std::move(pair.first), io::socket_address::loopback_v4(1));
        client_ = std::make_unique<steady_client>(
            std::move(pair.second), clock_,
            steady_client::files{.directory = directory_name, .name = file_name});
        EXPECT_TRUE(io::sync_wait(*loop_, client_->begin()));
    }
    ~allocations() override {
        if (loop_ == nullptr) return;
        client_->close_connection();
        server_->stop();
        io::sync_wait(*loop_, server_->done());
        std::filesystem::remove_all(directory_);
    }

    using step = io::task<bool> (steady_client::*)();
    static io::task<bool> repeat(steady_client& client, step what, unsigned times) {
        for (unsigned i = 0; i != times; ++i) {
            io::task<bool> doing = (client.*what)();
            if (not co_await std::move(doing)) co_return false;
        }
        co_return true;
    }
    // Returns the allocations per round, once warm. A transfer that would block, as under the load
    // of other programs, runs on a worker, whose thread allocates: such windows do not count.
    [[nodiscard]] double of_each(step what) {
        EXPECT_TRUE(io::sync_wait(*loop_, repeat(*client_, what, rounds_to_warm_up)));
        std::uint64_t counted = 0;
        std::uint64_t allocated = 0;
        for (int window = 0; counted < rounds and window != windows_max; ++window) {
            const io::call_statistics then = volume_->domain().statistics();
            const std::uint64_t before = bench::allocations();
            EXPECT_TRUE(io::sync_wait(*loop_, repeat(*client_, what, rounds_of_window)));
            const std::uint64_t after = bench::allocations();
            const io::call_statistics now = volume_->domain().statistics();
            const bool had_workers = now.completed != then.completed or now.threads != then.threads or
                                     now.running != 0 or then.running != 0;
            if (had_workers) continue;
            counted += rounds_of_window;
            allocated += after - before;
        }
        EXPECT_EQ(counted, rounds) << "calls run on workers all the time";
        return static_cast<double>(allocated) / rounds;
    }

    io::frame_pool frames_{std::size_t{1} << 20};
    io::frame_pool::use from_pool_{frames_};
    std::filesystem::path directory_ =
        std::filesystem::path(testing::TempDir()) / ("sluice-allocations-" + std::to_string(::getpid()));
    std::unique_ptr<io::io_multiplexer> loop_;
    system_clock_source clock_;
    system_random secrets_;
    server::user_database users_;
    silent_log log_;
    std::shared_ptr<vfs::volume> volume_;
    std::unique_ptr<server::smb_server> server_;
    std::unique_ptr<steady_client> client_;
};

TEST_P(allocations, are_none_for_an_echo_a_read_and_a_write_once_warm) {
    if (loop_ == nullptr) GTEST_SKIP() << "this machine does not support the multiplexer";
    EXPECT_EQ(of_each(&steady_client::echo), 0.0);
    EXPECT_EQ(of_each(&steady_client::read), 0.0);
    EXPECT_EQ(of_each(&steady_client::write), 0.0);
}

TEST_P(allocations, are_none_for_open_query_and_close_once_warm) {
    if (loop_ == nullptr) GTEST_SKIP() << "this machine does not support the multiplexer";
    EXPECT_EQ(of_each(&steady_client::ask), 0.0);
    EXPECT_EQ(of_each(&steady_client::open_and_close), 0.0);
    EXPECT_EQ(of_each(&steady_client::open_with_lease_and_close), 0.0);
    EXPECT_EQ(of_each(&steady_client::open_ask_and_close), 0.0);
}

// Allocated are the buffer for the kernel's entries, the position of the scan, and the name of the
// parent directory.
TEST_P(allocations, are_few_for_listing_a_directory) {
    if (loop_ == nullptr) GTEST_SKIP() << "this machine does not support the multiplexer";
    const double each = of_each(&steady_client::list);
    RecordProperty("for_a_listing", std::to_string(each));
    EXPECT_GT(each, 0.0) << "otherwise the counter does not work";
    EXPECT_LE(each, 4.0);
}

INSTANTIATE_TEST_SUITE_P(of_a_server, allocations, testing::Bool(),
                         [](const auto& which) { return which.param ? "by_io_uring" : "by_epoll"; });

}  // namespace
}  // namespace sluice::smb_simulation

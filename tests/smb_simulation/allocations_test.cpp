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
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_simulation/simulated_client.hpp"
#include "tests/smb_simulation/world.hpp"

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;

constexpr std::size_t read_bytes = 4096;
constexpr std::size_t write_bytes = 3072;  // the room in a message of the simulated client
constexpr const char* directory_name = "directory";
// Too long for the internal buffer of any std::string.
constexpr const char* file_name = "directory\\a file with a name as long as names of files are.txt";
constexpr unsigned rounds_to_warm_up = 200;
constexpr unsigned rounds = 10'000;

/// A client that sends one request after another, each after the previous reply.
class steady_client final : private simulated_client {
public:
    steady_client(io::socket_handle socket, const clock_source& clock)
        : simulated_client(std::move(socket), clock, 1),
          file_name_(wire::utf16_of(file_name).value()),
          directory_name_(wire::utf16_of(directory_name).value()) {}

    io::task<bool> begin() {
        io::task<bool> setting_up = set_up();
        if (not co_await std::move(setting_up)) co_return false;
        signer_.reset();
        io::task<bool> opening = open(for_everything());
        if (not co_await std::move(opening)) co_return false;
        file_ = opened_;
        io::task<bool> writing = write();
        co_return co_await std::move(writing);
    }
    io::task<bool> echo() {
        put(command::echo, wire::echo_args{});
        return answered();
    }
    io::task<bool> read() {
        put(command::read, wire::read_args{.file = file_, .length_bytes = read_bytes});
        return answered();
    }
    io::task<bool> write() {
        put(command::write, wire::write_args{.file = file_, .data = data_});
        return answered();
    }
    io::task<bool> ask() {
        put(command::query_info, question(file_));
        return answered();
    }
    io::task<bool> open_and_close() {
        io::task<bool> opening = open(for_everything());
        if (not co_await std::move(opening)) co_return false;
        io::task<bool> close_task = close();
        co_return co_await std::move(close_task);
    }
    io::task<bool> open_with_lease_and_close() {
        wire::create_args how = for_everything();
        how.oplock_level = wire::oplock_level::lease;
        how.contexts.lease = {.key = {}, .state = wire::lease_state::read | wire::lease_state::handle};
        io::task<bool> opening = open(how);
        if (not co_await std::move(opening)) co_return false;
        io::task<bool> close_task = close();
        co_return co_await std::move(close_task);
    }
    /// All in one frame, like clients that inspect a file.
    io::task<bool> open_ask_and_close() {
        begin_compound();
        put(command::create, for_everything());
        is_related_ = true;
        put(command::query_info, question(wire::file_id_of_previous));
        put(command::close, wire::close_args{.file = wire::file_id_of_previous});
        is_related_ = false;
        end_compound();
        return answered();
    }
    io::task<bool> list() {
        wire::create_args how = for_everything();
        how.name = std::as_bytes(std::span(directory_name_));
        io::task<bool> opening = open(how);
        if (not co_await std::move(opening)) co_return false;
        do {
            put(command::query_directory,
                wire::query_directory_args{.information_class = static_cast<wire::directory_class>(
                                               wire::file_information_class::id_both_directory),
                                           .file = opened_,
                                           .pattern = std::as_bytes(std::span(everything_)),
                                           .output_bytes_max = 65536});
            io::task<bool> listing = answered();
            (void)co_await std::move(listing);
        } while (is_good_);
        io::task<bool> close_task = close();
        co_return co_await std::move(close_task);
    }
    void close_connection() { EXPECT_TRUE(socket_.close()); }

private:
    [[nodiscard]] wire::create_args for_everything() const {
        return {.desired_access = wire::file_all_access,
                .share_access = wire::share_access(7),
                .disposition = wire::create_disposition::open_if,
                .name = std::as_bytes(std::span(file_name_))};
    }
    [[nodiscard]] static wire::query_info_args question(const wire::file_id& file) {
        return {.information_class = static_cast<std::uint8_t>(wire::file_information_class::network_open),
                .output_bytes_max = 1024,
                .file = file};
    }
    io::task<bool> open(const wire::create_args& how) {
        put(command::create, how);
        return answered();
    }
    io::task<bool> close() {
        put(command::close, wire::close_args{.file = opened_});
        return answered();
    }
    io::task<bool> answered() {
        io::task<bool> sending = send();
        if (not co_await std::move(sending)) co_return false;
        io::task<bool> taking = take_reply();
        co_return co_await std::move(taking) and is_good_;
    }
    void take_message(const wire::message_view& message) override {
        // The last reply of a compound; after a failed request, the later ones fail, too.
        is_good_ = message.header().status == wire::nt_status::success;
        if (is_good_ and message.header().command == command::create)
            opened_ = wire::decode_create_reply(message)->file;
    }
    void adjust(wire::header& header) override { header.credits = 4; }

    std::string file_name_;
    std::string directory_name_;
    std::array<std::byte, 2> everything_{std::byte{'*'}, {}};
    wire::file_id file_{};
    wire::file_id opened_{};
    std::array<std::byte, write_bytes> data_{};
    bool is_good_ = false;
};

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
        server_ = std::make_unique<server::smb_server>(
            server::server_dependencies{
                .loop = *loop_, .clock = clock_, .random = secrets_, .accounts = users_, .log = log_},
            std::move(configuration));
        EXPECT_TRUE(server_->start({}));
        auto pair = io::socket_handle::pair().value();
        EXPECT_TRUE(pair.first.set_multiplexer(loop_.get()));
        EXPECT_TRUE(pair.second.set_multiplexer(loop_.get()));
        server_->adopt(std::move(pair.first), io::socket_address::loopback_v4(1));
        client_ = std::make_unique<steady_client>(std::move(pair.second), clock_);
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
    // Returns the allocations per round, once warm.
    [[nodiscard]] double of_each(step what) {
        EXPECT_TRUE(io::sync_wait(*loop_, repeat(*client_, what, rounds_to_warm_up)));
        const std::uint64_t before = bench::allocations();
        EXPECT_TRUE(io::sync_wait(*loop_, repeat(*client_, what, rounds)));
        return static_cast<double>(bench::allocations() - before) / rounds;
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

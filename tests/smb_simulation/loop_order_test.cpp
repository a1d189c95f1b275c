#include <poll.h>

#include <chrono>

#include "sluice/io/best_available.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/server_on_loops.hpp"
#include "tests/smb_simulation/simulated_client.hpp"

// The order in which a client receives messages on connections of different loops.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

/// A client that sends one request at a time and waits for the reply; breaks in between are
/// ignored.
class asking_client final : private simulated_client {
public:
    asking_client(io::io_multiplexer& loop, io::socket_handle socket, const clock_source& clock)
        : simulated_client(std::move(socket), clock, 1), loop_(loop) {
        EXPECT_TRUE(socket_.set_multiplexer(&loop));
        EXPECT_TRUE(io::sync_wait(loop_, set_up()));
    }

    nt_status open(std::string_view name, wire::share_access share,
                   wire::oplock_level level = wire::oplock_level::none) {
        const std::string utf16 = wire::utf16_of(name).value();
        return answer_to(command::create, wire::create_args{.oplock_level = level,
                                                            .desired_access = wire::file_all_access,
                                                            .share_access = share,
                                                            .disposition = wire::create_disposition::open_if,
                                                            .name = std::as_bytes(std::span(utf16))});
    }
    /// Writes to the file that was opened last.
    nt_status write() {
        const std::array<std::byte, 1> data{};
        return answer_to(command::write, wire::write_args{.file = file_, .data = data});
    }
    /// Returns whether the server has sent something that was not read yet.
    [[nodiscard]] bool is_told_something() const {
        pollfd one{.fd = socket_.native().descriptor, .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, 0) == 1;
    }
    void close_connection() { EXPECT_TRUE(socket_.close()); }

private:
    template <class Args>
    nt_status answer_to(command code, const Args& args) {
        status_ = nt_status::pending;
        put(code, args);
        EXPECT_TRUE(io::sync_wait(loop_, send()));
        while (status_ == nt_status::pending)
            if (not io::sync_wait(loop_, take_reply())) return nt_status::network_name_deleted;
        return status_;
    }
    void take_message(const wire::message_view& message) override {
        if (message.header().message_id == ~std::uint64_t{0}) return;
        status_ = message.header().status;
        if (message.header().command == command::create and status_ == nt_status::success)
            file_ = wire::decode_create_reply(message)->file;
    }
    void adjust(wire::header& header) override { header.credits = 4; }

    io::io_multiplexer& loop_;
    nt_status status_ = nt_status::success;
    wire::file_id file_{};
};

constexpr wire::share_access shared_by_all{7};

/// Releases a blocked loop after a server without the required order would have replied.
class late_release {
public:
    explicit late_release(std::binary_semaphore& what)
        : waiting_([&what] {
              std::this_thread::sleep_for(std::chrono::milliseconds(200));
              what.release();
          }) {}

private:
    std::jthread waiting_;
};

TEST(server_on_several_loops, sends_a_break_before_a_dependent_reply_on_another_loop) {
    server_on_loops served(2, in_memory);
    io::socket_handle on_first = served.connect(1);
    io::socket_handle on_second = served.connect(1);
    served.serve({[&] {
        const auto loop = io::best_available().value();
        asking_client writer(*loop, std::move(on_first), served.clock());
        asking_client reader(*loop, std::move(on_second), served.clock());
        ASSERT_EQ(reader.open("f", shared_by_all, wire::oplock_level::level_2), nt_status::success);
        ASSERT_EQ(writer.open("f", shared_by_all), nt_status::success);
        ASSERT_FALSE(reader.is_told_something());
        std::binary_semaphore until(0);
        served.hold_up(1, until);
        const late_release releasing(until);
        EXPECT_EQ(writer.write(), nt_status::success);
        EXPECT_TRUE(reader.is_told_something()) << "the cached data has changed";
    }});
}

TEST(server_on_several_loops, has_detected_a_disconnection_on_another_loop_when_the_client_logs_on_again) {
    server_on_loops served(2, in_memory);
    io::socket_handle on_first = served.connect(1);
    io::socket_handle on_second = served.connect(1);
    served.serve({[&] {
        const auto loop = io::best_available().value();
        asking_client stays(*loop, std::move(on_first), served.clock());
        std::optional<asking_client> before(std::in_place, *loop, std::move(on_second), served.clock());
        ASSERT_EQ(before->open("f", wire::share_access::none), nt_status::success);
        ASSERT_EQ(stays.open("f", shared_by_all), nt_status::sharing_violation);
        std::binary_semaphore until(0);
        served.hold_up(1, until);
        const late_release releasing(until);
        before->close_connection();
        before.reset();
        asking_client again(*loop, served.connect_from_thread(1), served.clock());
        EXPECT_EQ(again.open("f", wire::share_access::none), nt_status::success);
    }});
}

}  // namespace
}  // namespace sluice::smb_simulation

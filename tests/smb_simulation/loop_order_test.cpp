#include <chrono>

#include "sluice/io/best_available.hpp"
#include "tests/smb_simulation/clients/asking_client.hpp"
#include "tests/smb_simulation/world/server_on_loops.hpp"

// The order in which a client receives messages on connections of different loops.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::nt_status;

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
        ASSERT_FALSE(reader.has_unread_bytes());
        std::binary_semaphore until(0);
        served.hold_up(1, until);
        const late_release releasing(until);
        EXPECT_EQ(writer.write(), nt_status::success);
        EXPECT_TRUE(reader.has_unread_bytes()) << "the cached data has changed";
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

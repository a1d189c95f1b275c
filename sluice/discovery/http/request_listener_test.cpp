#include "sluice/discovery/http/request_listener.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sluice/io/best_available.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::http {
namespace {

[[nodiscard]] io::task<void> answer_nothing(io::socket_handle&) noexcept {
    co_return;
}

class request_listener_test : public testing::Test {
protected:
    [[nodiscard]] static result<io::listening_socket_handle> listen(io::io_multiplexer& loop,
                                                                    const io::socket_address& at) {
        auto listener = io::listening_socket_handle::listen(at, {.replace_stale = true, .file_mode = 0600});
        if (listener)
            if (const auto attached = listener->set_multiplexer(&loop); not attached)
                return failure(attached.error());
        return listener;
    }
};

TEST_F(request_listener_test, after_its_stop_a_successor_can_use_its_port) {
    const auto loop = io::best_available();
    ASSERT_TRUE(loop.has_value());
    auto listener = listen(**loop, io::socket_address::loopback_v4(0));
    ASSERT_TRUE(listener.has_value()) << listener.error().message();
    const auto at = listener->local_address().value();
    request_listener running(**loop, *std::move(listener), answer_nothing);
    running.start();
    EXPECT_FALSE(listen(**loop, at).has_value());
    running.stop();
    io::sync_wait(**loop, running.done());
    EXPECT_TRUE(listen(**loop, at).has_value());
}

TEST_F(request_listener_test, it_removes_its_own_file_and_not_that_of_its_successor) {
    const auto loop = io::best_available();
    ASSERT_TRUE(loop.has_value());
    std::string directory = "/tmp/sluice_listener_XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    const std::string path = directory + "/socket";
    const auto at = io::socket_address::local(path).value();
    struct stat found{};
    {
        auto listener = listen(**loop, at);
        ASSERT_TRUE(listener.has_value()) << listener.error().message();
        request_listener running(**loop, *std::move(listener), answer_nothing);
        running.remove_at_end(path);
        running.start();
        running.stop();
        io::sync_wait(**loop, running.done());
        EXPECT_NE(::stat(path.c_str(), &found), 0);
        const auto successor = listen(**loop, at);
        EXPECT_TRUE(successor.has_value());
    }
    EXPECT_EQ(::stat(path.c_str(), &found), 0);
    (void)::unlink(path.c_str());
    (void)::rmdir(directory.c_str());
}

}  // namespace
}  // namespace sluice::http

#include "sluice/io/stream/listening_socket_handle.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "sluice/io/stream/socket_sender.hpp"
#include "sluice/io/stream/socket_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace test_kit;

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

class temporary_path {
public:
    explicit temporary_path(std::string_view name)
        : path_(std::filesystem::temp_directory_path() / ("sluice_" + std::to_string(::getpid()) + "_")) {
        path_ += name;
        std::filesystem::remove(path_);
    }
    ~temporary_path() { std::filesystem::remove(path_); }
    temporary_path(const temporary_path&) = delete;
    temporary_path& operator=(const temporary_path&) = delete;

    [[nodiscard]] socket_address address() const { return socket_address::local(path_.string()).value(); }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// Occupies all descriptors until it is destroyed.
class no_descriptors_left {
public:
    no_descriptors_left() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const int lowest_free = ::fcntl(0, F_DUPFD, 0);
        ::close(lowest_free);
        const rlimit none{.rlim_cur = static_cast<rlim_t>(lowest_free), .rlim_max = before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    ~no_descriptors_left() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    no_descriptors_left(const no_descriptors_left&) = delete;
    no_descriptors_left& operator=(const no_descriptors_left&) = delete;

private:
    rlimit before_{};
};

TEST(listening_socket_handle, accepts_connections_and_returns_their_peers) {
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    const auto at = listener.local_address().value();
    EXPECT_NE(at.port(), 0);
    auto client = socket_handle::connect(at).value();
    auto taken = listener.accept(5s).value();
    EXPECT_EQ(taken.peer, client.local_address().value());
    EXPECT_EQ(taken.socket.peer_address().value(), taken.peer);
    EXPECT_TRUE(taken.socket.native().stream);
}

TEST(listening_socket_handle, seqpacket_connections_keep_messages_apart) {
    const temporary_path path("seqpacket");
    auto listener = listening_socket_handle::listen(path.address(), socket_type::seqpacket, {}).value();
    auto client = socket_handle::connect(path.address(), socket_type::seqpacket, {}).value();
    auto taken = listener.accept(5s).value();
    EXPECT_FALSE(taken.socket.native().stream);
    EXPECT_EQ(taken.socket.peer_credentials().value().process, ::getpid());
}

TEST(listening_socket_handle, accept_without_a_connection_times_out_though_signals_interrupt_it) {
    const signal_storm storm;
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    EXPECT_EQ(listener.try_accept().error(), std::errc::timed_out);
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(listener.accept(20ms).error(), std::errc::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 20ms);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 2s);
}

TEST(listening_socket_handle, accept_waits_for_a_connection) {
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    std::thread later([at = listener.local_address().value()] {
        std::this_thread::sleep_for(20ms);
        EXPECT_TRUE(socket_handle::connect(at).has_value());
    });
    EXPECT_TRUE(listener.accept().has_value());
    later.join();
}

TEST(listening_socket_handle, a_port_in_use_is_named) {
    auto first = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    const auto at = first.local_address().value();
    const auto second = listening_socket_handle::listen(at);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error(), std::errc::address_in_use);
    EXPECT_NE(second.error().message().find(at.text()), std::string::npos) << second.error().message();
}

TEST(listening_socket_handle, listeners_that_all_reuse_a_port_share_it) {
    const listen_options sharing{.reuse_port = true};
    auto first = listening_socket_handle::listen(socket_address::loopback_v4(0), sharing).value();
    EXPECT_TRUE(listening_socket_handle::listen(first.local_address().value(), sharing).has_value());
}

TEST(listening_socket_handle, a_v6_listener_also_accepts_v4_unless_configured_otherwise) {
    auto both = listening_socket_handle::listen(socket_address::any_v6(0));
    if (not both.has_value()) GTEST_SKIP() << "this machine has no IPv6: " << both.error().message();
    const auto port = both->local_address().value().port();
    EXPECT_TRUE(socket_handle::connect(socket_address::loopback_v4(port)).has_value());
    EXPECT_EQ(both->accept(5s).value().peer.family(), address_family::ip_v6);
    auto only = listening_socket_handle::listen(socket_address::any_v6(0), {.v6_only = true}).value();
    EXPECT_EQ(
        socket_handle::connect(socket_address::loopback_v4(only.local_address().value().port())).error(),
        std::errc::connection_refused);
}

TEST(listening_socket_handle, a_stale_socket_file_is_named_with_the_remedy_or_replaced) {
    const temporary_path path("stale");
    { const auto dead = listening_socket_handle::listen(path.address()).value(); }
    const auto refused = listening_socket_handle::listen(path.address());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), std::errc::address_in_use);
    const std::string message = refused.error().message();
    EXPECT_NE(message.find(path.path().string()), std::string::npos) << message;
    EXPECT_NE(message.find("replace_stale"), std::string::npos) << message;
    EXPECT_TRUE(listening_socket_handle::listen(path.address(), {.replace_stale = true}).has_value());
}

TEST(listening_socket_handle, a_live_server_and_a_plain_file_are_never_replaced) {
    const temporary_path path("live");
    {
        auto live = listening_socket_handle::listen(path.address()).value();
        const auto refused = listening_socket_handle::listen(path.address(), {.replace_stale = true});
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error(), std::errc::address_in_use);
        EXPECT_TRUE(socket_handle::connect(path.address()).has_value());
    }
    std::filesystem::remove(path.path());
    ::close(::open(path.path().c_str(), O_CREAT | O_WRONLY, 0600));
    EXPECT_EQ(listening_socket_handle::listen(path.address(), {.replace_stale = true}).error(),
              std::errc::address_in_use);
    EXPECT_TRUE(std::filesystem::exists(path.path()));
}

TEST(listening_socket_handle, out_of_descriptors_accept_fails_and_the_connection_keeps_waiting) {
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    auto client = socket_handle::connect(listener.local_address().value()).value();
    {
        const no_descriptors_left none;
        EXPECT_EQ(listener.accept(5s).error(), std::errc::too_many_files_open);
    }
    EXPECT_TRUE(listener.accept(5s).has_value());
}

class async_accept_test : public with_multiplexer {
protected:
    void SetUp() override {
        with_multiplexer::SetUp();
        if (IsSkipped()) return;
        listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
        ASSERT_TRUE(listener.set_multiplexer(multiplexer.get()).has_value());
        at = listener.local_address().value();
    }
    void TearDown() override { listener = {}; }

    listening_socket_handle listener;
    socket_address at;
};

TEST_P(async_accept_test, a_result_that_is_dropped_closes_the_connection) {
    struct ignores {
        int* dones;
        void set_value(result<accepted>&&) noexcept {}
        void set_done() noexcept { ++*dones; }
    };
    const std::size_t before = open_descriptors();
    int dones = 0;
    auto state = connect(async_accept(listener), ignores{&dones});
    auto client = socket_handle::connect(at).value();
    state.start();
    ASSERT_TRUE(run_until([&] { return dones == 1; }));
    ASSERT_TRUE(client.close().has_value());
    EXPECT_EQ(open_descriptors(), before);
}

TEST_P(async_accept_test, accepts_that_wait_are_served_one_connection_each) {
    recorded first(async_accept(listener));
    recorded second(async_accept(listener));
    first.start();
    second.start();
    auto one = socket_handle::connect(at).value();
    ASSERT_TRUE(run_until([&] { return first.done(); }));
    EXPECT_FALSE(second.done());
    auto two = socket_handle::connect(at).value();
    ASSERT_TRUE(run_until([&] { return second.done(); }));
    EXPECT_EQ(first.value().value().peer, one.local_address().value());
    EXPECT_EQ(second.value().value().peer, two.local_address().value());
}

TEST_P(async_accept_test, a_deadline_and_a_cancellation_end_a_waiting_accept) {
    recorded timed(async_accept(listener, 10ms));
    timed.start();
    ASSERT_TRUE(run_until([&] { return timed.done(); }));
    EXPECT_EQ(timed.value().error(), std::errc::timed_out);
    recorded waiting(async_accept(listener));
    waiting.start();
    waiting.cancel();
    ASSERT_TRUE(run_until([&] { return waiting.done(); }));
    EXPECT_EQ(waiting.value().error(), std::errc::operation_canceled);
}

TEST_P(async_accept_test, cancelling_in_a_race_with_connections_leaks_no_descriptor) {
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 50; ++i) {
        recorded waiting(async_accept(listener));
        waiting.start(i % 2 == 0 ? initiation::batched : initiation::automatic);
        (void)multiplexer->complete_io();
        auto client = socket_handle::connect(at).value();
        if (i % 3 == 0) (void)multiplexer->complete_io(0);
        waiting.cancel();
        ASSERT_TRUE(run_until([&] { return waiting.done(); }));
        if (waiting.value().has_value()) continue;
        EXPECT_EQ(waiting.value().error(), std::errc::operation_canceled);
        EXPECT_TRUE(listener.accept(5s).has_value());  // it is still in the queue
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST_P(async_accept_test, out_of_descriptors_is_an_error_and_the_connection_keeps_waiting) {
    recorded waiting(async_accept(listener));
    waiting.start();
    auto client = socket_handle::connect(at).value();
    {
        const no_descriptors_left none;
        ASSERT_TRUE(run_until([&] { return waiting.done(); }));
        EXPECT_EQ(waiting.value().error(), std::errc::too_many_files_open);
    }
    waiting.start();
    ASSERT_TRUE(run_until([&] { return waiting.done(); }));
    EXPECT_TRUE(waiting.value().has_value());
}

INSTANTIATE_TEST_SUITE_P(over, async_accept_test, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

TEST(listening_socket_handle, adopts_a_socket_that_listens) {
    auto made = listening_socket_handle::listen(socket_address::loopback_v6(0));
    ASSERT_TRUE(made);
    const int descriptor = ::fcntl(made->descriptor(), F_DUPFD, 0);  // without close-on-exec
    auto adopted = listening_socket_handle::adopt(descriptor, {});
    ASSERT_TRUE(adopted);
    EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(adopted->local_address().value(), made->local_address().value());
    EXPECT_EQ(adopted->try_accept().error(), std::errc::timed_out) << "it does not wait in the kernel";
    const auto client = socket_handle::connect(made->local_address().value());
    ASSERT_TRUE(client);
    EXPECT_TRUE(adopted->accept(std::chrono::seconds(30)));
}

TEST(listening_socket_handle, does_not_adopt_what_does_not_listen) {
    const auto pair = socket_handle::pair();
    ASSERT_TRUE(pair);
    EXPECT_EQ(listening_socket_handle::adopt(pair->first.descriptor(), {}).error(),
              std::errc::invalid_argument);
    EXPECT_TRUE(pair->first.is_valid());
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    EXPECT_EQ(listening_socket_handle::adopt(ends[0], {}).error(), std::errc::not_a_socket);
    EXPECT_EQ(::close(ends[0]) + ::close(ends[1]), 0);
    EXPECT_EQ(listening_socket_handle::adopt(-1, {}).error(), std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace sluice::io

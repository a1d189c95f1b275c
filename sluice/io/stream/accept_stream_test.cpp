#include "sluice/io/stream/accept_stream.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "sluice/io/stream/socket_testing.hpp"

namespace sluice::io {
namespace {

using namespace test_kit;

// The connections and the outcome of a stream.
struct connections {
    std::vector<accepted> taken;
    std::vector<error> errors;
    int dones = 0;
    std::function<void()> on_value = [] {};
    std::function<void()> on_done = [] {};
};

struct collector {
    connections* into;
    void set_value(result<accepted>&& outcome) noexcept {
        EXPECT_EQ(into->dones, 0) << "a value after done";
        EXPECT_TRUE(into->errors.empty()) << "a value after the error that ends it";
        if (outcome) {
            into->taken.push_back(std::move(*outcome));
        } else {
            into->errors.push_back(outcome.error());
        }
        into->on_value();
    }
    void set_done() noexcept {
        ++into->dones;
        into->on_done();
    }
};

class accept_streams : public with_multiplexer {
protected:
    void SetUp() override {
        with_multiplexer::SetUp();
        if (IsSkipped()) return;
        listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
        ASSERT_TRUE(listener.set_multiplexer(multiplexer.get()).has_value());
        at = listener.local_address().value();
    }
    void TearDown() override { (void)listener.close(); }

    socket_handle client() { return socket_handle::connect(at).value(); }
    void expect_ended_with(std::errc code) {
        ASSERT_TRUE(run_until([&] { return came.dones != 0; }));
        EXPECT_EQ(came.dones, 1);
        ASSERT_EQ(came.errors.size(), 1U);
        EXPECT_EQ(came.errors[0], code);
        EXPECT_EQ(multiplexer->pending(), 0U);
    }

    listening_socket_handle listener;
    socket_address at;
    connections came;
};

TEST_P(accept_streams, accepts_every_connection_and_returns_its_peer) {
    accept_stream stream(listener, collector{&came});
    stream.start();
    std::vector<socket_handle> clients;
    std::set<unsigned> ports;
    for (std::size_t i = 0; i < 200; ++i) {
        clients.push_back(client());
        ports.insert(clients.back().local_address().value().port());
        if (i % 7 == 0) (void)multiplexer->try_run();
    }
    ASSERT_TRUE(run_until([&] { return came.taken.size() == 200; }));
    for (const accepted& one : came.taken) {
        EXPECT_EQ(one.socket.peer_address().value(), one.peer);
        EXPECT_EQ(ports.erase(one.peer.port()), 1U);
    }
    EXPECT_TRUE(stream.started());
    stream.cancel();
    expect_ended_with(std::errc::operation_canceled);
    EXPECT_FALSE(stream.started());
}

TEST_P(accept_streams, cancelled_before_the_first_connection_it_ends) {
    accept_stream stream(listener, collector{&came});
    stream.start();
    (void)multiplexer->try_run();
    stream.cancel();
    stream.cancel();
    expect_ended_with(std::errc::operation_canceled);
    stream.cancel();
    EXPECT_EQ(came.dones, 1);
}

TEST_P(accept_streams, cancelled_by_its_receiver_it_accepts_no_more) {
    accept_stream stream(listener, collector{&came});
    came.on_value = [&] {
        if (came.taken.size() == 3) stream.cancel();
    };
    std::vector<socket_handle> clients;
    for (int i = 0; i < 10; ++i)
        clients.push_back(client());
    stream.start();
    expect_ended_with(std::errc::operation_canceled);
    EXPECT_EQ(came.taken.size(), 3U);
    EXPECT_TRUE(listener.try_accept().has_value()) << "the others are still in the queue";
}

TEST_P(accept_streams, may_be_started_again_or_destroyed_from_done) {
    auto stream = std::make_unique<accept_stream<collector>>(listener, collector{&came});
    int rounds = 0;
    came.on_done = [&] {
        if (++rounds == 1) {
            came.errors.clear();
            came.dones = 0;
            stream->start();
        } else {
            stream.reset();
        }
    };
    stream->start();
    stream->cancel();
    ASSERT_TRUE(run_until([&] { return rounds == 1; }));
    const auto other = client();
    ASSERT_TRUE(run_until([&] { return came.taken.size() == 1; }));
    stream->cancel();
    expect_ended_with(std::errc::operation_canceled);
    EXPECT_EQ(stream, nullptr);
}

TEST_P(accept_streams, out_of_descriptors_it_ends_and_the_connection_stays) {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const int lowest_free = ::fcntl(0, F_DUPFD, 0);
    ::close(lowest_free);
    // Before it starts, because the kernel stores the limit for its own accepts.
    const rlimit few{.rlim_cur = static_cast<rlim_t>(lowest_free) + 8, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    accept_stream stream(listener, collector{&came});
    stream.start();
    (void)multiplexer->try_run();
    const auto waiting = client();
    std::vector<int> all_others;
    for (int each = ::dup(0); each >= 0; each = ::dup(0))
        all_others.push_back(each);
    const bool ended = run_until([&] { return came.dones != 0; });
    for (const int each : all_others)
        ::close(each);
    ::setrlimit(RLIMIT_NOFILE, &before);
    ASSERT_TRUE(ended);
    expect_ended_with(std::errc::too_many_files_open);
    EXPECT_TRUE(listener.try_accept().has_value());
}

TEST_P(accept_streams, may_be_moved_before_it_is_started) {
    accept_stream first(listener, collector{&came});
    accept_stream stream(std::move(first));
    stream.start();
    const auto other = client();
    ASSERT_TRUE(run_until([&] { return came.taken.size() == 1; }));
    stream.cancel();
    expect_ended_with(std::errc::operation_canceled);
}

INSTANTIATE_TEST_SUITE_P(every, accept_streams, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io

#include "sluice/io/stream/socket_handle.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "sluice/base/bytes.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/stream/receive_queue.hpp"
#include "sluice/io/stream/send_queue.hpp"
#include "sluice/io/stream/socket_sender.hpp"
#include "sluice/io/stream/socket_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace test_kit;

int option(const socket_handle& socket, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    ::getsockopt(socket.descriptor(), level, name, &value, &length);
    return value;
}

bool hangs_up_soon(const socket_handle& peer_of) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (not peer_of.is_peer_closed() and std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(1ms);
    return peer_of.is_peer_closed();
}

std::vector<std::byte> read_all(socket_handle& from, std::size_t piece = 5000) {
    std::vector<std::byte> all;
    std::vector<std::byte> into(piece);
    for (;;) {
        const auto got = from.read(io_request<bytes_type>{into}, 5s);
        if (not got or got->empty()) return all;
        all.insert(all.end(), got->begin(), got->end());
    }
}

constexpr socket_options tiny{.send_buffer_bytes = 1, .receive_buffer_bytes = 1};

TEST(socket_handle, every_socket_is_closed_on_exec_and_in_blocking_mode) {
    const auto made = socket_handle::create(address_family::local).value();
    EXPECT_EQ(::fcntl(made.descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    EXPECT_EQ(::fcntl(made.descriptor(), F_GETFL) & O_NONBLOCK, 0);
    for (const auto& kind : stream_kinds()) {
        const auto both = connect_streams(kind);
        for (const auto* end : {&both.client, &both.server}) {
            EXPECT_EQ(::fcntl(end->descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
            EXPECT_EQ(::fcntl(end->descriptor(), F_GETFL) & O_NONBLOCK, 0);
        }
    }
}

TEST(socket_handle, options_are_set_and_those_of_a_listener_are_inherited) {
    const socket_options options{.keep_alive = true,
                                 .keep_alive_after = {.idle = std::chrono::seconds(60),
                                                      .interval = std::chrono::seconds(10),
                                                      .probes = 3,
                                                      .user_timeout = std::chrono::seconds(90)},
                                 .send_buffer_bytes = 30'000,
                                 .receive_buffer_bytes = 20'000};
    const auto both = connect_streams({"", socket_address::loopback_v4(0)}, options);
    for (const auto* end : {&both.client, &both.server}) {
        EXPECT_NE(option(*end, IPPROTO_TCP, TCP_NODELAY), 0);
        EXPECT_NE(option(*end, SOL_SOCKET, SO_KEEPALIVE), 0);
        EXPECT_EQ(option(*end, IPPROTO_TCP, TCP_KEEPIDLE), 60);
        EXPECT_EQ(option(*end, IPPROTO_TCP, TCP_KEEPINTVL), 10);
        EXPECT_EQ(option(*end, IPPROTO_TCP, TCP_KEEPCNT), 3);
        EXPECT_EQ(option(*end, IPPROTO_TCP, TCP_USER_TIMEOUT), 90'000);
        EXPECT_EQ(option(*end, SOL_SOCKET, SO_SNDBUF), 60'000);  // the kernel doubles
        EXPECT_EQ(option(*end, SOL_SOCKET, SO_RCVBUF), 40'000);
    }
    const auto delaying = connect_streams({"", socket_address::loopback_v4(0)}, {.no_delay = false});
    EXPECT_EQ(option(delaying.client, IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_EQ(option(delaying.server, IPPROTO_TCP, TCP_NODELAY), 0);
}

TEST(socket_handle, bytes_of_one_end_are_read_at_the_other_over_every_family) {
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind);
        ASSERT_EQ(both.client.write({.buffers = text("hello")}).bytes_transferred(), 5U);
        std::array<std::byte, 16> into{};
        const auto got = both.server.read(io_request<bytes_type>{into}, 5s);
        ASSERT_TRUE(got.has_value());
        EXPECT_EQ(string_of(*got), "hello");
        ASSERT_TRUE(both.client.shutdown(direction::out).has_value());
        EXPECT_EQ(both.server.read(io_request<bytes_type>{into}, 5s).value().size(), 0U);
        ASSERT_EQ(both.server.write({.buffers = text("bye")}).bytes_transferred(), 3U);
        EXPECT_EQ(string_of(both.client.read(io_request<bytes_type>{into}, 5s).value()), "bye");
    }
}

TEST(socket_handle, a_peer_that_shut_down_or_closed_is_reported_before_all_was_read) {
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind);
        ASSERT_EQ(both.client.write({.buffers = text("last")}).bytes_transferred(), 4U);
        EXPECT_FALSE(both.server.is_peer_closed());
        ASSERT_TRUE(both.client.shutdown(direction::out).has_value());
        EXPECT_TRUE(hangs_up_soon(both.server));
        EXPECT_FALSE(both.client.is_peer_closed());
        ASSERT_TRUE(both.server.close().has_value());
        EXPECT_TRUE(both.server.is_peer_closed());
        EXPECT_TRUE(hangs_up_soon(both.client));
    }
}

TEST(socket_handle, both_ends_know_each_others_addresses) {
    const auto both = connect_streams({"", socket_address::loopback_v4(0)});
    EXPECT_EQ(both.client.local_address().value(), both.server.peer_address().value());
    EXPECT_EQ(both.client.peer_address().value(), both.server.local_address().value());
    const auto alone = socket_handle::create(address_family::ip_v4).value();
    EXPECT_EQ(alone.peer_address().error(), std::errc::not_connected);
}

TEST(socket_handle, the_kernel_vouches_for_the_peer_of_a_unix_socket) {
    const auto both = socket_handle::pair().value();
    const auto peer = both.first.peer_credentials().value();
    EXPECT_EQ(peer.process, ::getpid());
    EXPECT_EQ(peer.user, ::getuid());
    EXPECT_EQ(peer.group, ::getgid());
    const auto tcp = connect_streams({"", socket_address::loopback_v4(0)});
    EXPECT_EQ(tcp.client.peer_credentials().error(), std::errc::operation_not_supported);
    const auto alone = socket_handle::create(address_family::local).value();
    EXPECT_EQ(alone.peer_credentials().error(), std::errc::not_connected);
}

TEST(socket_handle, written_bytes_are_undelivered_until_the_peer_has_read_them) {
    auto both = socket_handle::pair().value();
    EXPECT_EQ(undelivered_bytes(both.first).value(), 0U);
    ASSERT_EQ(both.first.write({.buffers = text("hello")}).bytes_transferred(), 5U);
    EXPECT_GE(undelivered_bytes(both.first).value(), 5U);
    std::array<std::byte, 5> into{};
    ASSERT_EQ(both.second.read(io_request<bytes_type>{into}, 5s).value().size(), 5U);
    EXPECT_EQ(undelivered_bytes(both.first).value(), 0U);
}

TEST(socket_handle, received_bytes_of_a_tcp_socket_can_be_discarded_unread) {
    auto both = connect_streams({"", socket_address::loopback_v4(0)});
    EXPECT_EQ(discard_received(both.server, 100), 0U) << "nothing is there";
    ASSERT_EQ(both.client.write({.buffers = text("hello, world")}).bytes_transferred(), 12U);
    std::array<std::byte, 1> first{};
    // It has arrived.
    ASSERT_EQ(both.server.read(io_request<bytes_type>{first}, 5s).value().size(), 1U);
    EXPECT_EQ(discard_received(both.server, 6), 6U);
    std::array<std::byte, 5> rest{};
    ASSERT_EQ(both.server.read(io_request<bytes_type>{rest}, 5s).value().size(), 5U);
    EXPECT_EQ(bytes_view(rest), bytes_view(std::as_bytes(std::span(std::string_view("world")))));
    (void)both.client.close();
    std::array<std::byte, 1> none{};
    EXPECT_EQ(both.server.read(io_request<bytes_type>{none}, 5s).value().size(), 0U);
    EXPECT_EQ(discard_received(both.server, 100), 0U) << "the stream has ended";
    const auto local = socket_handle::pair().value();
    EXPECT_EQ(discard_received(local.first, 100), 0U);
}

TEST(socket_handle, a_read_of_a_quiet_socket_times_out) {
    for (const auto& kind : stream_kinds()) {
        auto both = connect_streams(kind);
        std::array<std::byte, 16> into{};
        EXPECT_EQ(both.client.try_read(io_request<bytes_type>{into}).error(), std::errc::timed_out);
        EXPECT_EQ(both.client.try_read_for(io_request<bytes_type>{into}, 5ms).error(), std::errc::timed_out);
    }
}

TEST(socket_handle, writing_to_a_closed_peer_is_an_error_and_raises_no_signal) {
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind);
        ASSERT_TRUE(both.server.close().has_value());
        io_result<const_bytes_type> written = both.client.write({.buffers = text("x")});
        for (int i = 0; i < 1000 and written.has_value(); ++i) {
            std::this_thread::sleep_for(1ms);
            written = both.client.write({.buffers = text("x")});
        }
        ASSERT_FALSE(written.has_value());
        EXPECT_TRUE(written.error() == std::errc::broken_pipe or
                    written.error() == std::errc::connection_reset);
    }
}

TEST(socket_handle, a_reset_by_the_peer_is_reported_to_the_reader) {
    auto both = connect_streams({"", socket_address::loopback_v4(0)});
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(both.server.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ASSERT_TRUE(both.server.close().has_value());
    std::array<std::byte, 16> into{};
    EXPECT_EQ(both.client.read(io_request<bytes_type>{into}, 5s).error(), std::errc::connection_reset);
}

TEST(socket_handle, a_long_write_passes_tiny_buffers_completely_although_signals_interrupt_it) {
    const signal_storm storm;
    const auto sent = pattern(100'000);
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind, tiny);
        std::thread writer([&] {
            EXPECT_EQ(both.client.write({.buffers = std::span(sent)}, 20s).bytes_transferred(), sent.size());
            EXPECT_TRUE(both.client.shutdown(direction::out).has_value());
        });
        EXPECT_EQ(read_all(both.server), sent);
        writer.join();
    }
}

TEST(socket_handle, a_write_that_times_out_returns_how_much_was_sent) {
    const auto sent = pattern(10'000'000);
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind, tiny);
        const auto written = both.client.write({.buffers = std::span(sent)}, 20ms);
        ASSERT_TRUE(written.has_value());
        EXPECT_GT(written.bytes_transferred(), 0U);
        EXPECT_LT(written.bytes_transferred(), sent.size());
        ASSERT_TRUE(both.client.shutdown(direction::out).has_value());
        EXPECT_EQ(read_all(both.server).size(), written.bytes_transferred());
    }
}

TEST(socket_handle, messages_keep_their_boundaries) {
    for (const auto type : {socket_type::seqpacket, socket_type::datagram}) {
        auto both = socket_handle::pair(type).value();
        EXPECT_FALSE(both.first.native().stream);
        ASSERT_TRUE(both.first.write({.buffers = text("one")}).has_value());
        ASSERT_TRUE(both.first.write({.buffers = text("two")}).has_value());
        std::array<std::byte, 16> into{};
        EXPECT_EQ(string_of(both.second.read(io_request<bytes_type>{into}).value()), "one");
        EXPECT_EQ(string_of(both.second.read(io_request<bytes_type>{std::span(into).first(2)}).value()),
                  "tw");
        EXPECT_EQ(both.second.try_read(io_request<bytes_type>{into}).error(), std::errc::timed_out);
    }
}

TEST(socket_handle, a_message_in_more_pieces_than_one_call_takes_is_refused_and_the_limit_named) {
    for (const auto type : {socket_type::seqpacket, socket_type::datagram}) {
        auto both = socket_handle::pair(type).value();
        std::vector<std::byte> bytes(limits::pieces_per_call_max + 1, std::byte{1});
        std::vector<const_buffer> outgoing;
        std::vector<buffer> incoming;
        for (std::byte& each : bytes) {
            outgoing.emplace_back(&each, 1);
            incoming.emplace_back(&each, 1);
        }
        const auto put = both.first.write(io_request<const_buffers_type>{outgoing});
        EXPECT_EQ(put.error(), std::errc::message_size);
        EXPECT_NE(put.error().message().find("pieces_per_call_max"), std::string::npos);
        outgoing.pop_back();
        EXPECT_EQ(both.first.write(io_request<const_buffers_type>{outgoing}).bytes_transferred(),
                  outgoing.size());
        EXPECT_EQ(both.second.read(io_request<buffers_type>{incoming}).error(), std::errc::message_size);
        incoming.pop_back();
        EXPECT_EQ(both.second.read(io_request<buffers_type>{incoming}).bytes_transferred(), incoming.size());
    }
}

TEST(socket_handle, datagrams_reach_a_bound_socket) {
    auto receiver = socket_handle::create(address_family::ip_v4, socket_type::datagram).value();
    ASSERT_TRUE(receiver.bind(socket_address::loopback_v4(0)).has_value());
    const auto at = receiver.local_address().value();
    auto sender = socket_handle::connect(at, socket_type::datagram, {}).value();
    ASSERT_TRUE(sender.write({.buffers = text("ping")}).has_value());
    std::array<std::byte, 16> into{};
    EXPECT_EQ(string_of(receiver.read(io_request<bytes_type>{into}, 5s).value()), "ping");
    EXPECT_EQ(socket_handle::create(address_family::ip_v4, socket_type::datagram)->bind(at).error(),
              std::errc::address_in_use);
}

TEST(socket_handle, the_type_of_an_adopted_socket_is_detected) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends.data()), 0);
    auto first = socket_handle::adopt(ends[0]).value();
    auto second = socket_handle::adopt(ends[1]).value();
    EXPECT_FALSE(first.native().stream);
    EXPECT_TRUE(first.native().nonblocking);
    EXPECT_EQ(::fcntl(ends[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    EXPECT_EQ(socket_handle::adopt(pipe[0]).error(), std::errc::not_a_socket);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST(socket_handle, a_failed_connect_names_the_peer) {
    const auto gone =
        listening_socket_handle::listen(socket_address::loopback_v4(0))->local_address().value();
    const auto refused = socket_handle::connect(gone);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), std::errc::connection_refused);
    EXPECT_NE(refused.error().message().find(gone.text()), std::string::npos) << refused.error().message();
    EXPECT_EQ(socket_handle::connect(socket_address::local("/nonexistent/socket").value()).error(),
              std::errc::no_such_file_or_directory);
}

// A listener whose queue is full does not answer.
TEST(socket_handle, a_connect_without_an_answer_ends_with_its_deadline) {
    const signal_storm storm;
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0), {.backlog = 0}).value();
    const auto at = listener.local_address().value();
    std::vector<socket_handle> queued;
    for (;;) {
        const auto begun = std::chrono::steady_clock::now();
        auto connected = socket_handle::connect(at, {}, 50ms);
        if (not connected.has_value()) {
            EXPECT_EQ(connected.error(), std::errc::timed_out);
            EXPECT_GE(std::chrono::steady_clock::now() - begun, 50ms);
            break;
        }
        queued.push_back(std::move(*connected));
        ASSERT_LT(queued.size(), 10U);
    }
}

TEST(socket_handle, a_connect_to_a_full_unix_listener_waits_until_its_deadline_or_for_a_free_slot) {
    using namespace std::string_view_literals;
    const signal_storm storm;
    const auto at = socket_address::local("\0sluice full listener test"sv).value();
    auto listener = listening_socket_handle::listen(at, {.backlog = 0}).value();
    auto first = socket_handle::connect(at).value();
    EXPECT_EQ(socket_handle::connect(at, {}, deadline::zero()).error(), std::errc::timed_out);
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(socket_handle::connect(at, {}, 30ms).error(), std::errc::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 25ms);
    std::thread makes_room([&] {
        std::this_thread::sleep_for(10ms);
        EXPECT_TRUE(listener.accept().has_value());
    });
    EXPECT_TRUE(socket_handle::connect(at, {}, 5s).has_value());
    makes_room.join();
}

class async_socket : public with_multiplexer {
protected:
    connection attached(const stream_kind& kind, const socket_options& options = {}) {
        auto both = connect_streams(kind, options);
        EXPECT_TRUE(both.client.set_multiplexer(multiplexer.get()).has_value());
        EXPECT_TRUE(both.server.set_multiplexer(multiplexer.get()).has_value());
        return both;
    }
};

TEST_P(async_socket, connects_and_accepts_over_every_family) {
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        using namespace std::string_view_literals;
        const auto at = kind.address.family() == address_family::unspecified
                            ? socket_address::local("\0sluice async accept test"sv).value()
                            : kind.address;
        auto listener = listening_socket_handle::listen(at).value();
        ASSERT_TRUE(listener.set_multiplexer(multiplexer.get()).has_value());
        const auto bound = listener.local_address().value();
        auto client = socket_handle::create(bound.family()).value();
        ASSERT_TRUE(client.set_multiplexer(multiplexer.get()).has_value());

        recorded accepting(async_accept(listener));
        accepting.start();
        EXPECT_FALSE(accepting.done());
        recorded connecting(async_connect(client, bound));
        connecting.start();
        ASSERT_TRUE(run_until([&] { return accepting.done() and connecting.done(); }));
        ASSERT_TRUE(connecting.value().has_value()) << connecting.value().error().message();
        ASSERT_TRUE(accepting.value().has_value()) << accepting.value().error().message();
        EXPECT_EQ(accepting.value()->peer, client.local_address().value());
        ASSERT_TRUE(client.write({.buffers = text("hi")}).has_value());
        std::array<std::byte, 16> into{};
        EXPECT_EQ(string_of(accepting.value()->socket.read(io_request<bytes_type>{into}, 5s).value()), "hi");
    }
}

TEST_P(async_socket, a_refused_connect_names_the_peer) {
    const auto gone =
        listening_socket_handle::listen(socket_address::loopback_v4(0))->local_address().value();
    auto client = socket_handle::create(gone.family()).value();
    ASSERT_TRUE(client.set_multiplexer(multiplexer.get()).has_value());
    recorded connecting(async_connect(client, gone));
    connecting.start();
    ASSERT_TRUE(run_until([&] { return connecting.done(); }));
    ASSERT_FALSE(connecting.value().has_value());
    EXPECT_EQ(connecting.value().error(), std::errc::connection_refused);
    EXPECT_NE(connecting.value().error().message().find(gone.text()), std::string::npos);
}

TEST_P(async_socket, a_long_write_passes_tiny_buffers_in_order_with_later_writes) {
    const signal_storm storm;
    const auto sent = pattern(100'000);
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = attached(kind, tiny);
        recorded first(async_write(both.client, {.buffers = std::span(sent).first(60'000)}));
        recorded second(async_write(both.client, {.buffers = std::span(sent).subspan(60'000)}));
        first.start();
        second.start();
        std::vector<std::byte> got;
        std::vector<std::byte> into(3000);
        recorded reading(async_read(both.server, io_request<bytes_type>{into}, 5s));
        while (got.size() < sent.size()) {
            reading.start();
            ASSERT_TRUE(run_until([&] { return reading.done(); }));
            ASSERT_TRUE(reading.value().has_value()) << reading.value().error().message();
            ASSERT_FALSE(reading.value()->empty());
            got.insert(got.end(), reading.value()->begin(), reading.value()->end());
        }
        EXPECT_EQ(got, sent);
        ASSERT_TRUE(run_until([&] { return first.done() and second.done(); }));
        EXPECT_EQ(second.value().bytes_transferred(), 40'000U);
    }
}

TEST_P(async_socket, the_end_and_a_reset_reach_a_waiting_read) {
    for (const bool reset : {false, true}) {
        auto both = attached({"", socket_address::loopback_v4(0)});
        std::array<std::byte, 16> into{};
        recorded reading(async_read(both.client, io_request<bytes_type>{into}));
        reading.start();
        const linger at_once{.l_onoff = reset ? 1 : 0, .l_linger = 0};
        ::setsockopt(both.server.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        ASSERT_TRUE(both.server.close().has_value());
        ASSERT_TRUE(run_until([&] { return reading.done(); }));
        if (reset) {
            EXPECT_EQ(reading.value().error(), std::errc::connection_reset);
        } else {
            EXPECT_EQ(reading.value().value().size(), 0U);
        }
    }
}

TEST_P(async_socket, messages_that_wait_together_keep_their_boundaries) {
    auto both = socket_handle::pair(socket_type::seqpacket).value();
    ASSERT_TRUE(both.first.set_multiplexer(multiplexer.get()).has_value());
    ASSERT_TRUE(both.second.set_multiplexer(multiplexer.get()).has_value());
    std::array<std::byte, 16> into_one{};
    std::array<std::byte, 16> into_two{};
    recorded one(async_read(both.second, io_request<bytes_type>{into_one}));
    recorded two(async_read(both.second, io_request<bytes_type>{into_two}));
    one.start();
    two.start();
    recorded first(async_write(both.first, {.buffers = text("first")}));
    recorded second(async_write(both.first, {.buffers = text("second")}));
    first.start(initiation::batched);
    second.start(initiation::batched);
    ASSERT_TRUE(run_until([&] { return one.done() and two.done() and first.done() and second.done(); }));
    EXPECT_EQ(string_of(one.value().value()), "first");
    EXPECT_EQ(string_of(two.value().value()), "second");
}

TEST_P(async_socket, a_message_in_too_many_pieces_is_refused_and_others_are_sent) {
    for (const auto how : {initiation::automatic, initiation::batched}) {
        auto both = socket_handle::pair(socket_type::seqpacket).value();
        ASSERT_TRUE(both.first.set_multiplexer(multiplexer.get()).has_value());
        std::vector<std::byte> bytes(limits::pieces_per_call_max + 1, std::byte{1});
        std::vector<const_buffer> pieces;
        for (const std::byte& each : bytes)
            pieces.emplace_back(&each, 1);
        recorded first(async_write(both.first, {.buffers = text("first")}));
        recorded refused(async_write(both.first, io_request<const_buffers_type>{pieces}));
        recorded second(async_write(both.first, {.buffers = text("second")}));
        first.start(how);
        refused.start(how);
        second.start(how);
        ASSERT_TRUE(run_until([&] { return first.done() and refused.done() and second.done(); }));
        EXPECT_EQ(refused.value().error(), std::errc::message_size);
        EXPECT_NE(refused.value().error().message().find("pieces_per_call_max"), std::string::npos);
        std::array<std::byte, 16> into{};
        EXPECT_EQ(string_of(both.second.read(io_request<bytes_type>{into}).value()), "first");
        EXPECT_EQ(string_of(both.second.read(io_request<bytes_type>{into}).value()), "second");
    }
}

TEST_P(async_socket, a_deadline_and_a_cancellation_end_a_waiting_read) {
    auto both = attached({"", {}});
    std::array<std::byte, 16> into{};
    recorded timed(async_read(both.client, io_request<bytes_type>{into}, 10ms));
    timed.start();
    ASSERT_TRUE(run_until([&] { return timed.done(); }));
    EXPECT_EQ(timed.value().error(), std::errc::timed_out);
    recorded waiting(async_read(both.client, io_request<bytes_type>{into}));
    waiting.start();
    waiting.cancel();
    ASSERT_TRUE(run_until([&] { return waiting.done(); }));
    EXPECT_EQ(waiting.value().error(), std::errc::operation_canceled);
}

INSTANTIATE_TEST_SUITE_P(over, async_socket, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io

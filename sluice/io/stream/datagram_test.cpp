// Datagrams with addresses: each form, over each multiplexer, for each family of addresses.

#include "sluice/io/stream/datagram.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/stream/datagram_sender.hpp"
#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace test_kit;

std::vector<multiplexer_kind> all_multiplexers() {
    auto kinds = multiplexer_kinds();
    kinds.push_back({"simulated", []() -> result<std::unique_ptr<io_multiplexer>> {
                         auto made = make_simulated_multiplexer(simulation_options::adversarial(7));
                         if (not made) return failure(made.error());
                         return std::move(*made);
                     }});
    return kinds;
}

/// A socket bound to an address of its own.
socket_handle bound(const std::string& family) {
    static std::atomic<int> number{0};
    socket_address address = socket_address::loopback_v4(0);
    if (family == "ip_v6") address = socket_address::loopback_v6(0);
    if (family == "local") {
        const std::string name =
            "sluice-datagram-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
        address = socket_address::local(std::string(1, '\0') + name).value();
    }
    auto made = socket_handle::create(address.family(), socket_type::datagram).value();
    EXPECT_TRUE(made.bind(address).has_value());
    return made;
}

bool has_ip_v6() {
    auto made = socket_handle::create(address_family::ip_v6, socket_type::datagram);
    return made and made->bind(socket_address::loopback_v6(0)).has_value();
}

struct case_of {
    multiplexer_kind kind;
    std::string family;
};

std::vector<case_of> all_cases() {
    std::vector<case_of> cases;
    for (const auto& kind : all_multiplexers())
        for (const std::string family : {"ip_v4", "ip_v6", "local"})
            if (family != "ip_v6" or has_ip_v6()) cases.push_back({kind, family});
    return cases;
}

class datagrams : public ::testing::TestWithParam<case_of> {
protected:
    void SetUp() override {
        auto made = GetParam().kind.make();
        if (not made) GTEST_SKIP() << "no " << GetParam().kind.name << " here: " << made.error().message();
        multiplexer = std::move(*made);
        ours = bound(GetParam().family);
        theirs = bound(GetParam().family);
        ASSERT_TRUE(ours.set_multiplexer(multiplexer.get()).has_value());
        our_address = ours.local_address().value();
        their_address = theirs.local_address().value();
    }
    template <class Condition>
    void run_until(Condition done) {
        while (not done())
            (void)multiplexer->try_run_for(10ms);
    }
    void say(std::string_view what) {
        ASSERT_TRUE(theirs.sendto(io_request<const_bytes_type>{text(what)}, our_address).has_value());
    }

    std::unique_ptr<io_multiplexer> multiplexer;
    socket_handle ours;
    socket_handle theirs;
    socket_address our_address;
    socket_address their_address;
    std::array<std::byte, 64> memory{};
};

TEST_P(datagrams, blocking_both_ways_with_the_senders_address) {
    say("hello");
    const auto got = ours.recvfrom(io_request<bytes_type>{memory}, 5s);
    ASSERT_TRUE(got.has_value()) << got.error().message();
    EXPECT_EQ(string_of(got->buffers), "hello");
    EXPECT_EQ(got->peer, their_address);
    EXPECT_EQ(got->message_bytes, 5U);
    EXPECT_FALSE(got->is_truncated());
    ASSERT_TRUE(ours.sendto(io_request<const_bytes_type>{text("back")}, got->peer).has_value());
    const auto answer = theirs.recvfrom(io_request<bytes_type>{memory}, 5s);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(string_of(answer->buffers), "back");
    EXPECT_EQ(answer->peer, our_address);
}

TEST_P(datagrams, as_senders_both_ways) {
    recorded receive(async_recvfrom(ours, io_request<bytes_type>{memory}));
    receive.start();
    EXPECT_FALSE(receive.done());
    say("hello");
    run_until([&] { return receive.done(); });
    ASSERT_TRUE(receive.value().has_value()) << receive.value().error().message();
    EXPECT_EQ(string_of(receive.value()->buffers), "hello");
    EXPECT_EQ(receive.value()->peer, their_address);

    recorded send(async_sendto(ours, io_request<const_bytes_type>{text("back")}, their_address));
    send.start();
    run_until([&] { return send.done(); });
    EXPECT_EQ(send.value().bytes_transferred(), 4U);
    EXPECT_EQ(string_of(theirs.recvfrom(io_request<bytes_type>{memory}, 5s).value().buffers), "back");
}

task<std::string> echo_once(socket_handle& on) {
    std::array<std::byte, 64> block;
    const auto got = co_await co_recvfrom(on, io_request<bytes_type>{block});
    if (not got) co_return got.error().message();
    const auto put = co_await co_sendto(on, io_request<const_bytes_type>{got->buffers}, got->peer);
    co_return put ? string_of(*put) : put.error().message();
}

TEST_P(datagrams, in_a_coroutine_both_ways) {
    say("hello");
    EXPECT_EQ(sync_wait(*multiplexer, echo_once(ours)), "hello");
    EXPECT_EQ(string_of(theirs.recvfrom(io_request<bytes_type>{memory}, 5s).value().buffers), "hello");
}

TEST_P(datagrams, a_datagram_longer_than_the_buffer_is_reported_as_truncated_with_its_length) {
    say("0123456789");
    recorded receive(async_recvfrom(ours, io_request<bytes_type>{std::span(memory).first(4)}));
    receive.start();
    run_until([&] { return receive.done(); });
    ASSERT_TRUE(receive.value().has_value());
    EXPECT_EQ(string_of(receive.value()->buffers), "0123");
    EXPECT_TRUE(receive.value()->is_truncated());
    EXPECT_EQ(receive.value()->message_bytes, 10U);

    say("0123456789");
    const auto blocking = ours.recvfrom(io_request<bytes_type>{std::span(memory).first(4)}, 5s);
    ASSERT_TRUE(blocking.has_value());
    EXPECT_TRUE(blocking->is_truncated());
    EXPECT_EQ(blocking->message_bytes, 10U);
}

TEST_P(datagrams, a_list_of_buffers_is_filled_in_order_and_sent_as_one) {
    const std::array<const_buffer, 2> parts{const_buffer(text("ab")), const_buffer(text("cdef"))};
    std::array<const_buffer, 2> sent = parts;
    recorded send(async_sendto(ours, io_request<const_buffers_type>{sent}, our_address));
    send.start();
    run_until([&] { return send.done(); });
    ASSERT_TRUE(send.value().has_value()) << send.value().error().message();
    std::array<buffer, 2> into{buffer(memory.data(), 3), buffer(memory.data() + 8, 3)};
    recorded receive(async_recvfrom(ours, io_request<buffers_type>{into}));
    receive.start();
    run_until([&] { return receive.done(); });
    ASSERT_TRUE(receive.value().has_value());
    ASSERT_EQ(receive.value()->buffers.size(), 2U);
    EXPECT_EQ(string_of(receive.value()->buffers[0].bytes()), "abc");
    EXPECT_EQ(string_of(receive.value()->buffers[1].bytes()), "def");
    EXPECT_FALSE(receive.value()->is_truncated());
}

TEST_P(datagrams, an_empty_datagram_is_received_as_one) {
    say("");
    recorded receive(async_recvfrom(ours, io_request<bytes_type>{memory}));
    receive.start();
    run_until([&] { return receive.done(); });
    ASSERT_TRUE(receive.value().has_value());
    EXPECT_TRUE(receive.value()->buffers.empty());
    EXPECT_EQ(receive.value()->peer, their_address);
}

TEST_P(datagrams, several_receives_get_the_datagrams_in_order) {
    std::array<std::byte, 8> first{};
    std::array<std::byte, 8> second{};
    recorded one(async_recvfrom(ours, io_request<bytes_type>{first}));
    recorded two(async_recvfrom(ours, io_request<bytes_type>{second}));
    one.start(initiation::batched);
    two.start(initiation::batched);
    say("first");
    say("second");
    run_until([&] { return one.done() and two.done(); });
    EXPECT_EQ(string_of(one.value()->buffers), "first");
    EXPECT_EQ(string_of(two.value()->buffers), "second");
}

TEST_P(datagrams, a_receive_ends_at_its_deadline_or_when_cancelled) {
    recorded timed(async_recvfrom(ours, io_request<bytes_type>{memory}, 1ms));
    timed.start();
    run_until([&] { return timed.done(); });
    EXPECT_EQ(timed.value().error(), std::errc::timed_out);
    recorded cancelled(async_recvfrom(ours, io_request<bytes_type>{memory}));
    cancelled.start();
    (void)multiplexer->try_run();
    cancelled.cancel();
    run_until([&] { return cancelled.done(); });
    EXPECT_EQ(cancelled.value().error(), std::errc::operation_canceled);
    EXPECT_EQ(ours.recvfrom(io_request<bytes_type>{memory}, deadline::zero()).error(), std::errc::timed_out);
    // Neither has consumed a datagram.
    say("still");
    EXPECT_EQ(string_of(ours.recvfrom(io_request<bytes_type>{memory}, 5s).value().buffers), "still");
}

TEST_P(datagrams, an_error_names_the_address) {
    const auto nowhere =
        GetParam().family == "local"
            ? socket_address::local("/nonexistent/socket").value()
            : socket_address::parse(GetParam().family == "ip_v4" ? "255.255.255.255:9" : "[::1]:0").value();
    recorded send(async_sendto(ours, io_request<const_bytes_type>{text("x")}, nowhere));
    send.start();
    run_until([&] { return send.done(); });
    ASSERT_FALSE(send.value().has_value());
    EXPECT_NE(send.value().error().message().find(nowhere.text()), std::string::npos)
        << send.value().error().message();
    EXPECT_EQ(ours.sendto(io_request<const_bytes_type>{text("x")}, nowhere).error(), send.value().error());
}

TEST_P(datagrams, a_message_in_more_pieces_than_one_call_takes_is_refused) {
    std::vector<buffer> pieces(limits::pieces_per_call_max + 1, buffer(memory.data(), 1));
    EXPECT_EQ(ours.recvfrom(io_request<buffers_type>{pieces}).error(), std::errc::message_size);
    recorded receive(async_recvfrom(ours, io_request<buffers_type>{pieces}));
    receive.start(initiation::batched);
    run_until([&] { return receive.done(); });
    EXPECT_EQ(receive.value().error(), std::errc::message_size);
}

INSTANTIATE_TEST_SUITE_P(each, datagrams, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.kind.name + "_" + info.param.family; });

// --- tests that do not depend on the family

class datagram_edges : public with_multiplexer {};

TEST_P(datagram_edges, a_stream_is_refused_and_loses_no_bytes) {
    auto both = socket_handle::pair().value();
    std::array<std::byte, 8> memory{};
    ASSERT_TRUE(both.second.write(io_request<const_bytes_type>{text("kept")}).has_value());
    EXPECT_EQ(both.first.recvfrom(io_request<bytes_type>{memory}).error(),
              std::errc::operation_not_supported);
    ASSERT_TRUE(both.first.set_multiplexer(multiplexer.get()).has_value());
    recorded receive(async_recvfrom(both.first, io_request<bytes_type>{memory}));
    receive.start();
    ASSERT_TRUE(run_until([&] { return receive.done(); }));
    EXPECT_EQ(receive.value().error(), std::errc::operation_not_supported);
    EXPECT_NE(receive.value().error().message().find("without datagrams"), std::string::npos);
    EXPECT_EQ(string_of(both.first.read(io_request<bytes_type>{memory}).value()), "kept");
}

TEST_P(datagram_edges, an_empty_message_of_a_connection_is_not_its_end) {
    auto both = socket_handle::pair(socket_type::seqpacket).value();
    const auto receive = [&] {
        std::array<std::byte, 8> into{};
        const auto got =
            sync_wait(*multiplexer,
                      [](io_multiplexer&, socket_handle& from,
                         std::span<std::byte> memory) -> task<result<received_datagram<bytes_type>>> {
                          co_return co_await co_recvfrom(from, io_request<bytes_type>{memory}, 5s);
                      }(*multiplexer, both.second, into));
        EXPECT_TRUE(got) << got.error().message();
        return got ? std::pair(got->message_bytes, got->is_end) : std::pair(std::size_t{99}, true);
    };
    const auto send = [&](std::string_view what) {
        EXPECT_TRUE(both.first.write({.buffers = text(what)}).has_value());
    };
    ASSERT_TRUE(both.second.set_multiplexer(multiplexer.get()).has_value());
    send("");
    EXPECT_EQ(receive(), std::pair(std::size_t{0}, false));
    send("");
    send("one");
    ASSERT_TRUE(both.first.shutdown(direction::out).has_value());
    EXPECT_EQ(receive(), std::pair(std::size_t{0}, false)) << "a datagram with bytes follows it";
    EXPECT_EQ(receive(), std::pair(std::size_t{3}, false));
    EXPECT_EQ(receive(), std::pair(std::size_t{0}, true));
    EXPECT_EQ(receive(), std::pair(std::size_t{0}, true)) << "and stays ended";
}

TEST_P(datagram_edges, an_empty_message_of_a_peer_with_a_name_is_not_the_end_even_as_the_last_one) {
    const auto at = socket_address::local(std::string(1, '\0') + "sluice-end-" + std::to_string(::getpid()) +
                                          GetParam().name)
                        .value();
    auto listener = listening_socket_handle::listen(at, socket_type::seqpacket, {}).value();
    auto client = socket_handle::connect(at, socket_type::seqpacket, {}).value();
    auto server = std::move(listener.accept()->socket);
    ASSERT_TRUE(server.write({.buffers = text("")}).has_value());
    ASSERT_TRUE(server.close().has_value());
    std::array<std::byte, 8> into{};
    EXPECT_FALSE(client.recvfrom(io_request<bytes_type>{into})->is_end);
    EXPECT_TRUE(client.recvfrom(io_request<bytes_type>{into})->is_end);
}

TEST_P(datagram_edges, a_sender_without_a_name_has_no_address) {
    auto both = socket_handle::pair(socket_type::datagram).value();
    std::array<std::byte, 8> memory{};
    ASSERT_TRUE(both.second.sendto(io_request<const_bytes_type>{text("anon")}, {}).has_value());
    ASSERT_TRUE(both.first.set_multiplexer(multiplexer.get()).has_value());
    recorded receive(async_recvfrom(both.first, io_request<bytes_type>{memory}));
    receive.start();
    ASSERT_TRUE(run_until([&] { return receive.done(); }));
    EXPECT_EQ(receive.value()->peer.family(), address_family::unspecified);
}

// The descriptor of the sender is writable although the receiver's queue is full: a poll for it
// would spin.
TEST_P(datagram_edges, a_full_receiver_of_a_unix_datagram_is_an_error_at_once) {
    auto from = bound("local");
    auto to = bound("local");
    const auto address = to.local_address().value();
    ASSERT_TRUE(from.set_multiplexer(multiplexer.get()).has_value());
    int code = 0;
    for (int sent = 0; code == 0 and sent < 100'000; ++sent) {
        recorded send(async_sendto(from, io_request<const_bytes_type>{text("x")}, address));
        send.start();
        ASSERT_TRUE(run_until([&] { return send.done(); }));
        if (not send.value()) code = send.value().error().code();
    }
    EXPECT_EQ(code, EAGAIN);
    EXPECT_EQ(from.sendto(io_request<const_bytes_type>{text("x")}, address, 2ms).error(),
              std::errc::timed_out);
    // The blocking form waits until the queue has space.
    std::array<std::byte, 8> memory{};
    std::thread reader([&] { (void)to.recvfrom(io_request<bytes_type>{memory}); });
    EXPECT_TRUE(from.sendto(io_request<const_bytes_type>{text("x")}, address).has_value());
    reader.join();
}

TEST_P(datagram_edges, a_cancel_from_another_thread_races_with_the_datagram_and_one_of_them_wins) {
    auto ours = bound("ip_v4");
    auto theirs = bound("ip_v4");
    const auto address = ours.local_address().value();
    ASSERT_TRUE(ours.set_multiplexer(multiplexer.get()).has_value());
    (void)multiplexer->try_run();  // makes this thread its owner
    int received = 0;
    int cancelled = 0;
    for (int round = 0; round < 300; ++round) {
        std::array<std::byte, 8> memory{};
        outcome<result<received_datagram<bytes_type>>> came;
        atomic_io_operation_connection<recvfrom_sender<bytes_type>,
                                       recorder<result<received_datagram<bytes_type>>>>
            state(async_recvfrom(ours, io_request<bytes_type>{memory}), {&came});
        const io_multiplexer::work_guard guard(*multiplexer);
        state.start();
        std::thread canceller([&] { state.cancel(); });
        (void)theirs.sendto(io_request<const_bytes_type>{text("x")}, address);
        while (came.dones == 0)
            (void)multiplexer->try_run();
        canceller.join();
        while (multiplexer->try_run().value_or(0) > 0) {}
        ASSERT_EQ(came.dones, 1);
        if (came.value->has_value()) {
            ++received;
        } else {
            ++cancelled;
            ASSERT_EQ(came.value->error(), std::errc::operation_canceled);
            // It has consumed no datagram.
            ASSERT_TRUE(ours.recvfrom(io_request<bytes_type>{memory}, 5s).has_value());
        }
    }
    EXPECT_EQ(received + cancelled, 300);
}

INSTANTIATE_TEST_SUITE_P(each, datagram_edges, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io

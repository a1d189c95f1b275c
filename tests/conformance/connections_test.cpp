#include <array>
#include <cstring>
#include <deque>
#include <memory>

#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/stream/socket_sender.hpp"
#include "tests/conformance/with_listener.hpp"

// Listening, connecting and accepting, over TCP and Unix sockets.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class connections : public with_listener {
protected:
    [[nodiscard]] socket_handle new_socket() const {
        socket_handle made = socket_handle::create(address.family()).value();
        attach(made);
        return made;
    }
};
INSTANTIATE_TEST_SUITE_P(conformance, connections,
                         testing::Combine(testing::ValuesIn(back_ends()),
                                          testing::Values(family::ip, family::local)),
                         name_of_setting);

struct keeping {
    signal_record* to;
    result<accepted>* kept;
    void set_value(result<accepted>&& outcome) noexcept {
        recording_receiver{to}.set_value(outcome);
        *kept = std::move(outcome);
    }
    void set_done() noexcept { recording_receiver{to}.set_done(); }
};

TEST_P(connections, are_accepted_and_carry_bytes_both_ways) {
    result<accepted> peer = failure({0, "none yet"});
    signal_record accept_is;
    auto accepting = connect(async_accept(listener), keeping{&accept_is, &peer});
    accepting.start();
    run_briefly();
    EXPECT_EQ(accept_is.values, 0);
    socket_handle client = new_socket();
    tracked connecting(async_connect(client, address));
    connecting.state.start();
    ASSERT_TRUE(run_until([&] { return accept_is.dones == 1 and connecting.is.dones == 1; }));
    EXPECT_TRUE(succeeded(connecting.is));
    ASSERT_TRUE(peer.has_value());
    attach(peer->socket);
    std::array<std::byte, 8> here{}, there{};
    tracked_read read_here(reading(client, here));
    tracked_read read_there(reading(peer->socket, there));
    tracked_write write_here(writing(client, text("to")));
    tracked_write write_there(writing(peer->socket, text("fro")));
    read_here.state.start();
    read_there.state.start();
    write_here.state.start();
    write_there.state.start();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    EXPECT_EQ(std::memcmp(there.data(), "to", read_there.is.bytes), 0);
    EXPECT_EQ(std::memcmp(here.data(), "fro", read_here.is.bytes), 0);
}

TEST_P(connections, are_accepted_one_per_request_if_several_wait) {
    constexpr std::size_t count = 20;
    std::deque<socket_handle> clients;
    std::deque<std::unique_ptr<tracked<connect_sender>>> connecting;
    std::deque<result<accepted>> peers;
    std::deque<signal_record> accept_is(count);
    std::deque<io_operation_connection<accept_sender, keeping>> accepting;
    for (std::size_t i = 0; i < count; ++i) {
        peers.emplace_back(failure({0, "none yet"}));
        accepting.push_back(connect(async_accept(listener), keeping{&accept_is[i], &peers[i]}));
        accepting.back().start(i % 2 == 0 ? initiation::automatic : initiation::batched);
    }
    for (std::size_t i = 0; i < count; ++i) {
        clients.push_back(new_socket());
        connecting.push_back(
            std::make_unique<tracked<connect_sender>>(async_connect(clients.back(), address)));
        connecting.back()->state.start();
    }
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(succeeded(connecting[i]->is));
        EXPECT_TRUE(succeeded(accept_is[i]));
        EXPECT_TRUE(peers[i].has_value() and peers[i]->socket.is_valid());
    }
}

TEST_P(connections, end_an_accept_by_their_absence_at_its_deadline_or_cancel) {
    for (const bool by_deadline : {true, false}) {
        result<accepted> peer = failure({0, "none yet"});
        signal_record accept_is;
        auto accepting = connect(async_accept(listener, by_deadline ? deadline(5ms) : deadline()),
                                 keeping{&accept_is, &peer});
        accepting.start();
        run_briefly();
        if (not by_deadline) accepting.cancel();
        ASSERT_TRUE(run_until_done(accept_is));
        EXPECT_TRUE(failed(accept_is, by_deadline ? ETIMEDOUT : ECANCELED));
    }
    // The listener continues to work.
    socket_handle client = new_socket();
    tracked connecting(async_connect(client, address));
    connecting.state.start();
    ASSERT_TRUE(run_until_done(connecting.is));
    EXPECT_TRUE(listener.accept(1s).has_value()) << "a cancelled accept must not have taken the connection";
}

TEST_P(connections, are_refused_without_a_listener) {
    const socket_address gone = address;
    ASSERT_TRUE(listener.close().has_value());
    socket_handle client = new_socket();
    tracked connecting(async_connect(client, gone));
    connecting.state.start();
    ASSERT_TRUE(run_until_done(connecting.is));
    EXPECT_TRUE(failed(connecting.is, ECONNREFUSED));
}

}  // namespace
}  // namespace sluice::io::conformance

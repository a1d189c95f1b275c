#include "sluice/io/asio/datagram_socket.hpp"

#include <array>
#include <future>
#include <string>
#include <thread>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
namespace net = asio_names;
using net::ip::udp;

class asio_datagrams : public test_kit::with_io_context {
protected:
    static udp::endpoint own(std::uint16_t port = 0) { return {asio::ip::address_v4::loopback(), port}; }
};
INSTANTIATE_TEST_SUITE_P(over, asio_datagrams, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

// Sends a number of datagrams back to their senders.
class echo {
public:
    echo(net::io_context& context, int times)
        : socket_(context, {asio::ip::address_v4::loopback(), 0}), left_(times) {
        receive();
    }
    [[nodiscard]] udp::endpoint where() const { return socket_.local_endpoint(); }

private:
    void receive() {
        socket_.async_receive_from(asio::buffer(data_), peer_,
                                   [this](std::error_code why, std::size_t count) {
                                       if (not why) send(count);
                                   });
    }
    void send(std::size_t count) {
        socket_.async_send_to(asio::buffer(data_, count), peer_, [this](std::error_code, std::size_t) {
            if (--left_ > 0) receive();
        });
    }

    udp::socket socket_;
    udp::endpoint peer_;
    std::array<char, 1024> data_{};
    int left_;
};

TEST_P(asio_datagrams, an_echo_server_answers_every_client) {
    echo server(*context, 20);
    int answers = 0;
    auto ask = [&](int number) -> net::awaitable<void> {
        udp::socket socket(*context, udp::v4());
        const std::string question = "question " + std::to_string(number);
        std::array<char, 64> into{};
        udp::endpoint from;
        for (int i = 0; i < 2; ++i) {
            co_await socket.async_send_to(asio::buffer(question), server.where(), asio::use_awaitable);
            const std::size_t count =
                co_await socket.async_receive_from(asio::buffer(into), from, asio::use_awaitable);
            EXPECT_EQ(std::string(into.data(), count), question);
            EXPECT_EQ(from, server.where());
            ++answers;
        }
    };
    for (int i = 0; i < 10; ++i)
        net::co_spawn(*context, ask(i), [](const std::exception_ptr& why) { EXPECT_EQ(why, nullptr); });
    context->run();
    EXPECT_EQ(answers, 20);
}

TEST_P(asio_datagrams, a_connected_socket_sends_and_receives_without_addresses) {
    udp::socket one(*context, own());
    udp::socket other(*context, own());
    other.async_connect(one.local_endpoint(), [&](std::error_code why) {
        ASSERT_FALSE(why);
        other.async_send(std::array{asio::buffer("two ", 4), asio::buffer("parts", 5)},
                         [](std::error_code, std::size_t count) { EXPECT_EQ(count, 9U); });
    });
    std::array<char, 4> first{};
    std::array<char, 16> second{};
    std::size_t got = 0;
    one.async_receive(std::array{asio::buffer(first), asio::buffer(second)},
                      [&](std::error_code, std::size_t count) { got = count; });
    context->run();
    EXPECT_EQ(got, 9U);
    EXPECT_EQ(std::string(second.data(), 5), "parts");
    EXPECT_EQ(other.remote_endpoint(), one.local_endpoint());
}

TEST_P(asio_datagrams, empty_and_too_long_datagrams_arrive) {
    udp::socket one(*context, own());
    udp::socket other(*context, own());
    std::array<char, 4> into{};
    udp::endpoint peer;
    one.async_receive_from(asio::buffer(into), peer, [&](std::error_code why, std::size_t count) {
        EXPECT_FALSE(why);
        EXPECT_EQ(count, 0U);
        one.async_receive_from(asio::buffer(into), peer, [&](std::error_code cut, std::size_t kept) {
            EXPECT_FALSE(cut);
            EXPECT_EQ(kept, into.size());
        });
    });
    EXPECT_EQ(other.send_to(asio::buffer("", 0), one.local_endpoint()), 0U);
    EXPECT_EQ(other.send_to(asio::buffer("longer", 6), one.local_endpoint()), 6U);
    EXPECT_EQ(context->run(), 2U);
    EXPECT_EQ(peer, other.local_endpoint());
}

TEST_P(asio_datagrams, closing_aborts_pending_operations) {
    udp::socket socket(*context, own());
    std::array<char, 4> into{};
    asio::error_code seen;
    socket.async_receive(asio::buffer(into), [&](std::error_code why, std::size_t) { seen = why; });
    net::post(*context, [&] { socket.close(); });
    context->run();
    EXPECT_EQ(seen, asio::error::operation_aborted);
    EXPECT_FALSE(socket.is_open());
    context->restart();
    socket.async_receive(asio::buffer(into), [&](std::error_code why, std::size_t) { seen = why; });
    context->run();
    EXPECT_EQ(seen, asio::error::bad_descriptor);
}

TEST_P(asio_datagrams, a_timer_limits_a_receive_in_a_client_that_blocks) {
    udp::socket socket(*context, own());
    std::array<char, 4> into{};
    asio::error_code seen = asio::error::would_block;
    socket.async_receive(asio::buffer(into), [&](std::error_code why, std::size_t) { seen = why; });
    context->restart();
    context->run_for(1ms);
    EXPECT_FALSE(context->stopped());
    socket.cancel();
    context->run();
    EXPECT_EQ(seen, asio::error::operation_aborted);
}

TEST_P(asio_datagrams, the_blocking_forms_and_the_options_work) {
    udp::socket one(*context, own());
    udp::socket other(*context);
    other.open(udp::v4());
    other.set_option(udp::socket::reuse_address(true));
    udp::socket::reuse_address is_set;
    other.get_option(is_set);
    EXPECT_TRUE(is_set.value());
    one.non_blocking(true);
    std::array<char, 8> into{};
    udp::endpoint peer;
    asio::error_code why;
    EXPECT_EQ(one.receive_from(asio::buffer(into), peer, why), 0U);
    EXPECT_EQ(why, asio::error::would_block);
    other.connect(one.local_endpoint());
    EXPECT_EQ(other.send(asio::buffer("abc", 3)), 3U);
    one.wait(udp::socket::wait_read);
    EXPECT_EQ(one.available(), 3U);
    one.non_blocking(false);
    EXPECT_EQ(one.receive_from(asio::buffer(into), peer), 3U);
    EXPECT_EQ(peer.port(), other.local_endpoint().port());
    EXPECT_THROW((void)one.send_to(asio::buffer(std::string(70'000, 'x')), peer), asio::system_error);
}

}  // namespace
}  // namespace sluice::io

#include "sluice/io/asio/message.hpp"

#include <array>
#include <string>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

namespace net = asio_names;
using net::ip::tcp;
using net::ip::udp;

class asio_message_flags : public test_kit::with_io_context {
protected:
    void SetUp() override {
        with_io_context::SetUp();
        if (not context.has_value()) return;
        tcp::acceptor acceptor(*context, {asio::ip::address_v4::loopback(), 0});
        near.emplace(*context);
        far.emplace(*context);
        near->connect(acceptor.local_endpoint());
        acceptor.accept(*far);
        one.emplace(*context, udp::endpoint(asio::ip::address_v4::loopback(), 0));
        other.emplace(*context, udp::endpoint(asio::ip::address_v4::loopback(), 0));
    }
    void TearDown() override {
        near.reset();
        far.reset();
        one.reset();
        other.reset();
        with_io_context::TearDown();
    }
    [[nodiscard]] std::string text(std::size_t count) const { return {into.data(), count}; }

    std::optional<tcp::socket> near, far;
    std::optional<udp::socket> one, other;
    std::array<char, 8> into{};
};
INSTANTIATE_TEST_SUITE_P(over, asio_message_flags, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_message_flags, a_peek_at_a_stream_waits_for_data_and_leaves_it) {
    std::size_t peeked = 0;
    near->async_receive(asio::buffer(into), tcp::socket::message_peek,
                        [&](asio::error_code why, std::size_t count) {
                            EXPECT_FALSE(why);
                            peeked = count;
                        });
    context->poll();
    EXPECT_EQ(peeked, 0U);
    asio::write(*far, asio::buffer("abc", 3));
    context->run();
    EXPECT_EQ(peeked, 3U);
    EXPECT_EQ(near->receive(asio::buffer(into), tcp::socket::message_peek), 3U);
    EXPECT_EQ(near->receive(asio::buffer(into), 0), 3U);
    EXPECT_EQ(text(3), "abc");
    near->non_blocking(true);
    asio::error_code why;
    EXPECT_EQ(near->receive(asio::buffer(into), tcp::socket::message_peek, why), 0U);
    EXPECT_EQ(why, asio::error::would_block);
}

TEST_P(asio_message_flags, the_end_of_a_stream_is_an_end_for_a_peek_too) {
    far->close();
    asio::error_code seen;
    near->async_receive(asio::buffer(into), tcp::socket::message_peek,
                        [&](asio::error_code why, std::size_t) { seen = why; });
    context->run();
    EXPECT_EQ(seen, asio::error::eof);
    EXPECT_EQ(near->receive(asio::buffer(into), tcp::socket::message_peek, seen), 0U);
    EXPECT_EQ(seen, asio::error::eof);
}

TEST_P(asio_message_flags, an_urgent_byte_is_waited_for_and_received_apart_from_the_stream) {
    std::size_t got = 0;
    near->async_receive(asio::buffer(into), tcp::socket::message_out_of_band,
                        [&](asio::error_code why, std::size_t count) {
                            EXPECT_FALSE(why);
                            got = count;
                        });
    asio::write(*far, asio::buffer("abc", 3));
    context->poll();
    EXPECT_EQ(got, 0U);  // ordinary data is not what it waits for
    bool is_sent = false;
    far->async_send(asio::buffer("!", 1), tcp::socket::message_out_of_band,
                    [&](asio::error_code why, std::size_t count) { is_sent = not why and count == 1; });
    context->run();
    EXPECT_TRUE(is_sent);
    EXPECT_EQ(got, 1U);
    EXPECT_EQ(text(1), "!");
    EXPECT_EQ(asio::read(*near, asio::buffer(into, 3)), 3U);
    EXPECT_EQ(text(3), "abc");

    EXPECT_EQ(far->send(asio::buffer("?", 1), tcp::socket::message_out_of_band), 1U);
    EXPECT_EQ(near->receive(asio::buffer(into), tcp::socket::message_out_of_band), 1U);
    EXPECT_EQ(text(1), "?");
}

TEST_P(asio_message_flags, cancelling_ends_a_receive_of_urgent_data) {
    asio::error_code seen;
    near->async_receive(asio::buffer(into), tcp::socket::message_out_of_band,
                        [&](asio::error_code why, std::size_t) { seen = why; });
    context->poll();
    near->cancel();
    context->run();
    EXPECT_EQ(seen, asio::error::operation_aborted);
}

TEST_P(asio_message_flags, a_peek_at_a_datagram_returns_its_sender_and_leaves_it) {
    udp::endpoint peer;
    std::size_t peeked = 0;
    one->async_receive_from(asio::buffer(into), peer, udp::socket::message_peek,
                            [&](asio::error_code why, std::size_t count) {
                                EXPECT_FALSE(why);
                                peeked = count;
                            });
    context->poll();
    other->async_send_to(asio::buffer("abcd", 4), one->local_endpoint(), 0,
                         [](asio::error_code why, std::size_t count) {
                             EXPECT_FALSE(why);
                             EXPECT_EQ(count, 4U);
                         });
    context->run();
    EXPECT_EQ(peeked, 4U);
    EXPECT_EQ(peer, other->local_endpoint());
    peer = {};
    EXPECT_EQ(one->receive_from(asio::buffer(into), peer, udp::socket::message_peek), 4U);
    EXPECT_EQ(peer, other->local_endpoint());
    EXPECT_EQ(one->receive(asio::buffer(into), 0), 4U);
    EXPECT_EQ(text(4), "abcd");
    EXPECT_EQ(one->available(), 0U);
}

TEST_P(asio_message_flags, the_kernel_refuses_flags_that_make_no_sense) {
    asio::error_code seen;
    one->async_receive(asio::buffer(into), udp::socket::message_out_of_band,
                       [&](asio::error_code why, std::size_t) { seen = why; });
    context->poll();
    one->cancel();  // datagrams have no urgent data
    context->run();
    EXPECT_EQ(seen, asio::error::operation_aborted);
    context->restart();
    other->async_send_to(asio::buffer("x", 1), one->local_endpoint(), udp::socket::message_out_of_band,
                         [&](asio::error_code why, std::size_t) { seen = why; });
    context->run();
    EXPECT_EQ(seen, asio::error::operation_not_supported);
}

}  // namespace
}  // namespace sluice::io

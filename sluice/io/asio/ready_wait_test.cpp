#include "sluice/io/asio/ready_wait.hpp"

#include <optional>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

namespace net = asio_names;
using net::ip::tcp;

class asio_waits : public test_kit::with_io_context {
protected:
    void SetUp() override {
        with_io_context::SetUp();
        if (not context.has_value()) return;
        acceptor.emplace(*context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
        near.emplace(*context);
        far.emplace(*context);
        near->connect(acceptor->local_endpoint());
    }
    void TearDown() override {
        near.reset();
        far.reset();
        acceptor.reset();
        with_io_context::TearDown();
    }

    std::optional<tcp::acceptor> acceptor;
    std::optional<tcp::socket> near, far;
};
INSTANTIATE_TEST_SUITE_P(over, asio_waits, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_waits, a_wait_for_an_error_ends_with_urgent_data_but_not_with_other) {
    acceptor->accept(*far);
    bool has_ended = false;
    near->async_wait(tcp::socket::wait_error, [&](asio::error_code why) {
        EXPECT_FALSE(why);
        has_ended = true;
    });
    asio::write(*far, asio::buffer("abc", 3));
    near->wait(tcp::socket::wait_read);
    context->poll();
    EXPECT_FALSE(has_ended);
    far->send(asio::buffer("!", 1), tcp::socket::message_out_of_band);
    context->run();
    EXPECT_TRUE(has_ended);
    near->wait(tcp::socket::wait_error);
}

TEST_P(asio_waits, a_wait_for_an_error_ends_with_a_reset) {
    acceptor->accept(*far);
    bool has_ended = false;
    near->async_wait(tcp::socket::wait_error, [&](asio::error_code why) { has_ended = not why; });
    context->poll();
    far->set_option(asio::socket_base::linger(true, 0));
    far->close();
    context->run();
    EXPECT_TRUE(has_ended);
}

TEST_P(asio_waits, cancelling_ends_a_wait_for_an_error) {
    acceptor->accept(*far);
    asio::error_code seen;
    near->async_wait(tcp::socket::wait_error, [&](asio::error_code why) { seen = why; });
    context->poll();
    near->cancel();
    context->run();
    EXPECT_EQ(seen, asio::error::operation_aborted);
}

TEST_P(asio_waits, an_acceptor_waits_for_connections) {
    acceptor->wait(tcp::acceptor::wait_read);
    acceptor->accept(*far);
    bool has_ended = false;
    acceptor->async_wait(tcp::acceptor::wait_read, [&](asio::error_code why) { has_ended = not why; });
    context->poll();
    EXPECT_FALSE(has_ended);
    tcp::socket third(*context);
    third.connect(acceptor->local_endpoint());
    context->run();
    EXPECT_TRUE(has_ended);
}

TEST_P(asio_waits, a_non_blocking_socket_does_not_wait) {
    acceptor->accept(*far);
    near->non_blocking(true);
    for (const auto what : {tcp::socket::wait_read, tcp::socket::wait_error}) {
        asio::error_code why;
        near->wait(what, why);
        EXPECT_EQ(why, asio::error::would_block);
    }
    near->wait(tcp::socket::wait_write);
    near->close();
    asio::error_code why;
    near->wait(tcp::socket::wait_error, why);
    EXPECT_EQ(why, asio::error::bad_descriptor);
}

}  // namespace
}  // namespace sluice::io

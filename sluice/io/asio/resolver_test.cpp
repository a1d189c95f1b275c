#include "sluice/io/asio/resolver.hpp"

#include <string>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

namespace net = asio_names;
using net::ip::tcp;
using net::ip::udp;

class asio_resolvers : public test_kit::with_io_context {};
INSTANTIATE_TEST_SUITE_P(over, asio_resolvers, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_resolvers, a_client_resolves_and_connects) {
    tcp::acceptor acceptor(*context, {asio::ip::address_v4::loopback(), 0});
    const std::string port = std::to_string(acceptor.local_endpoint().port());
    acceptor.async_accept([](std::error_code why, tcp::socket socket) {
        ASSERT_FALSE(why);
        asio::write(socket, asio::buffer("welcome", 7));
    });
    tcp::resolver resolver(*context);
    tcp::socket socket(*context);
    std::string text;
    resolver.async_resolve(
        "localhost", port, [&](std::error_code why, const tcp::resolver::results_type& results) {
            ASSERT_FALSE(why) << why.message();
            EXPECT_EQ(results.begin()->host_name(), "localhost");
            EXPECT_EQ(results.begin()->service_name(), port);
            net::async_connect(socket, results, [&](std::error_code refused, const tcp::endpoint& peer) {
                ASSERT_FALSE(refused) << refused.message();
                EXPECT_EQ(peer, socket.remote_endpoint());
                asio::async_read(socket, asio::dynamic_buffer(text),
                                 [](std::error_code end, std::size_t) { EXPECT_EQ(end, asio::error::eof); });
            });
        });
    context->run();
    EXPECT_EQ(text, "welcome");
}

TEST_P(asio_resolvers, connecting_continues_to_the_endpoint_that_answers) {
    tcp::acceptor acceptor(*context, {asio::ip::address_v4::loopback(), 0});
    tcp::endpoint nobody;
    {
        tcp::acceptor short_lived(*context, {asio::ip::address_v4::loopback(), 0});
        nobody = short_lived.local_endpoint();
    }
    const std::vector<tcp::endpoint> both{nobody, acceptor.local_endpoint()};
    tcp::socket socket(*context);
    EXPECT_EQ(net::connect(socket, both), both[1]);
    asio::error_code seen;
    net::async_connect(socket, both, [&](std::error_code why, const tcp::endpoint& peer) {
        seen = why;
        EXPECT_EQ(peer, both[1]);
    });
    context->run();
    EXPECT_FALSE(seen);
    context->restart();
    net::async_connect(socket, both.begin(), both.begin() + 1,
                       [&](std::error_code why, auto) { seen = why; });
    context->run();
    EXPECT_EQ(seen, asio::error::connection_refused);
    context->restart();
    net::async_connect(
        socket, both, [](std::error_code, const tcp::endpoint&) { return false; },
        [&](std::error_code why, const tcp::endpoint&) { seen = why; });
    context->run();
    EXPECT_EQ(seen, asio::error::not_found);
}

TEST_P(asio_resolvers, queries_without_a_lookup_are_answered_from_the_loop) {
    tcp::resolver resolver(*context);
    const auto passive = resolver.resolve("", "80", tcp::resolver::passive);
    EXPECT_TRUE(passive.begin()->endpoint().address().is_unspecified());
    EXPECT_TRUE(resolver.resolve("", "80").begin()->endpoint().address().is_loopback());
    EXPECT_EQ(resolver.resolve(tcp::v6(), "::1", "81").begin()->endpoint().port(), 81);
    EXPECT_EQ(resolver.resolve(tcp::v6(), "127.0.0.1", "81", tcp::resolver::v4_mapped)
                  .begin()
                  ->endpoint()
                  .address(),
              asio::ip::make_address("::ffff:127.0.0.1"));
    asio::error_code why;
    (void)resolver.resolve("name", "80", tcp::resolver::numeric_host, why);
    EXPECT_EQ(why, asio::error::host_not_found);
    (void)resolver.resolve("127.0.0.1", "no-such-service", why);
    EXPECT_EQ(why, asio::error::service_not_found);
    EXPECT_THROW((void)resolver.resolve(tcp::v4(), "::1", "80"), asio::system_error);
    bool is_called = false;
    resolver.async_resolve(tcp::v4(), "127.0.0.1", "80", [&](std::error_code, const auto& results) {
        is_called = true;
        EXPECT_EQ(results.size(), 1U);
    });
    EXPECT_FALSE(is_called);
    context->run();
    EXPECT_TRUE(is_called);
    EXPECT_EQ(resolver.resolve(tcp::endpoint(asio::ip::make_address("127.0.0.1"), 80)).size(), 1U);
}

TEST_P(asio_resolvers, a_name_that_cannot_exist_is_an_error) {
    udp::resolver resolver(*context);
    asio::error_code seen;
    resolver.async_resolve("no name has a blank", "80", udp::resolver::numeric_service,
                           [&](std::error_code why, const udp::resolver::results_type& results) {
                               seen = why;
                               EXPECT_TRUE(results.empty());
                           });
    context->run();
    EXPECT_TRUE(seen == asio::error::host_not_found or seen == asio::error::host_not_found_try_again)
        << seen.message();
}

TEST_P(asio_resolvers, cancelling_ends_the_wait) {
    auto resolver = std::make_unique<tcp::resolver>(*context);
    int calls = 0;
    resolver->async_resolve("localhost", "80", [&](std::error_code, const auto&) { ++calls; });
    resolver->cancel();
    resolver.reset();
    context->run();
    EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace sluice::io

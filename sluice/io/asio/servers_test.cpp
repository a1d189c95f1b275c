// Complete servers in the usual styles of programs for Asio, with Asio's own names: in_place.hpp
// maps them to our multiplexer.

#include "sluice/io/asio/in_place.hpp"

#include <signal.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sluice/io/asio/io_context_testing.hpp"

namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
namespace test_kit = sluice::io::test_kit;

static_assert(std::same_as<asio::io_context, sluice::io::asio_context>);

class asio_servers : public test_kit::with_io_context {};
INSTANTIATE_TEST_SUITE_P(over, asio_servers, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

// --- a chat room that sends each line to all members

class member : public std::enable_shared_from_this<member> {
public:
    using room = std::set<std::shared_ptr<member>>;

    member(tcp::socket socket, room& all) : socket_(std::move(socket)), all_(all) {}
    void start() {
        all_.insert(shared_from_this());
        read();
    }

private:
    void read() {
        asio::async_read_until(socket_, asio::dynamic_buffer(line_), '\n',
                               [self = shared_from_this()](std::error_code why, std::size_t count) {
                                   if (why) {
                                       self->all_.erase(self);
                                       return;
                                   }
                                   for (const auto& each : self->all_)
                                       each->broadcast(self->line_.substr(0, count));
                                   self->line_.erase(0, count);
                                   self->read();
                               });
    }
    void broadcast(std::string line) {
        queue_.push_back(std::move(line));
        if (queue_.size() == 1) write();
    }
    void write() {
        asio::async_write(socket_, asio::buffer(queue_.front()),
                          [self = shared_from_this()](std::error_code why, std::size_t) {
                              if (why) return;
                              self->queue_.pop_front();
                              if (not self->queue_.empty()) self->write();
                          });
    }

    tcp::socket socket_;
    room& all_;
    std::string line_;
    std::deque<std::string> queue_;
};

class chat {
public:
    explicit chat(asio::io_context& context) : acceptor_(context, tcp::endpoint(tcp::v4(), 0)) { accept(); }
    [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
    void close() { acceptor_.close(); }
    [[nodiscard]] std::size_t members() const { return room_.size(); }

private:
    void accept() {
        acceptor_.async_accept([this](std::error_code why, tcp::socket socket) {
            if (why) return;
            std::make_shared<member>(std::move(socket), room_)->start();
            accept();
        });
    }

    tcp::acceptor acceptor_;
    member::room room_;
};

// Joins, waits until all have joined, sends one line and receives all lines.
asio::awaitable<void> chatter(std::uint16_t port, int all, const chat& in, int& lines) {
    tcp::socket socket(co_await asio::this_coro::executor);
    tcp::resolver resolver(co_await asio::this_coro::executor);
    const auto found =
        co_await resolver.async_resolve("127.0.0.1", std::to_string(port), asio::use_awaitable);
    co_await asio::async_connect(socket, found, asio::use_awaitable);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (in.members() < static_cast<std::size_t>(all)) {
        timer.expires_after(1ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
    co_await asio::async_write(socket, asio::buffer("hello\n", 6), asio::use_awaitable);
    std::string text;
    for (int heard = 0; heard < all; ++heard) {
        const std::size_t count =
            co_await asio::async_read_until(socket, asio::dynamic_buffer(text), '\n', asio::use_awaitable);
        EXPECT_EQ(text.substr(0, count), "hello\n");
        text.erase(0, count);
        ++lines;
    }
}

TEST_P(asio_servers, a_chat_with_many_members_delivers_every_line_to_all_members) {
    constexpr int all = 40;
    chat server(*context);
    int lines = 0;
    int left = all;
    for (int i = 0; i < all; ++i) {
        asio::co_spawn(*context, chatter(server.port(), all, server, lines),
                       [&](const std::exception_ptr& why) {
                           EXPECT_EQ(why, nullptr);
                           if (--left == 0) server.close();
                       });
    }
    context->run();
    EXPECT_EQ(lines, all * all);
    EXPECT_EQ(server.members(), 0U);
}

// --- a server of requests that a signal ends

class web {
public:
    explicit web(asio::io_context& context) : signals_(context), acceptor_(context) {
        signals_.add(SIGUSR1);
        signals_.async_wait([this](std::error_code, int) {
            acceptor_.close();
            for (const auto& each : open_)
                each->socket.close();
        });
        const tcp::endpoint local = *tcp::resolver(context).resolve("127.0.0.1", "0").begin();
        acceptor_.open(local.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(local);
        acceptor_.listen();
        accept();
    }
    [[nodiscard]] tcp::endpoint where() const { return acceptor_.local_endpoint(); }
    [[nodiscard]] std::size_t open() const { return open_.size(); }

private:
    struct connection {
        tcp::socket socket;
        asio::streambuf request;
        std::string reply;
    };

    void accept() {
        acceptor_.async_accept([this](std::error_code, tcp::socket socket) {
            if (not acceptor_.is_open()) return;
            auto fresh = std::make_shared<connection>(std::move(socket));
            open_.insert(fresh);
            serve(fresh);
            accept();
        });
    }
    void serve(const std::shared_ptr<connection>& on) {
        asio::async_read_until(
            on->socket, on->request, "\r\n\r\n", [this, on](std::error_code why, std::size_t) {
                if (why) {
                    open_.erase(on);
                    return;
                }
                std::string method, path;
                std::istream(&on->request) >> method >> path;
                on->reply = "HTTP/1.0 200 OK\r\n\r\n" + path;
                asio::async_write(on->socket, asio::buffer(on->reply),
                                  [this, on](std::error_code failed, std::size_t) {
                                      std::error_code ignored;
                                      if (not failed)
                                          on->socket.shutdown(tcp::socket::shutdown_both, ignored);
                                      open_.erase(on);
                                  });
            });
    }

    asio::signal_set signals_;
    tcp::acceptor acceptor_;
    std::set<std::shared_ptr<connection>> open_;
};

asio::awaitable<std::string> fetch(tcp::endpoint from, std::string request) {
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(from, asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer(request), asio::use_awaitable);
    std::string reply;
    asio::error_code why;
    co_await asio::async_read(socket, asio::dynamic_buffer(reply),
                              asio::redirect_error(asio::use_awaitable, why));
    EXPECT_TRUE(why == asio::error::eof or why == asio::error::connection_reset) << why.message();
    co_return reply;
}

TEST_P(asio_servers, a_signal_closes_a_server_of_requests_and_run_returns) {
    web server(*context);
    int left = 20;
    // A client without requests: the signal has to end it.
    auto silent = [&](const std::exception_ptr&, const std::string& reply) { EXPECT_EQ(reply, ""); };
    asio::co_spawn(*context, fetch(server.where(), ""), silent);
    for (int i = 0; i < 20; ++i) {
        const std::string path = "/page/" + std::to_string(i);
        asio::co_spawn(*context, fetch(server.where(), "GET " + path + " HTTP/1.0\r\n\r\n"),
                       [&, path](const std::exception_ptr& why, const std::string& reply) {
                           EXPECT_EQ(why, nullptr);
                           EXPECT_EQ(reply, "HTTP/1.0 200 OK\r\n\r\n" + path);
                           if (--left == 0) EXPECT_EQ(::kill(::getpid(), SIGUSR1), 0);
                       });
    }
    context->run();
    EXPECT_EQ(left, 0);
    EXPECT_EQ(server.open(), 0U);
}

// --- an acceptor and sockets with a default token, and connections on strands

using default_token = asio::use_awaitable_t<>;
using own_acceptor = default_token::as_default_on_t<tcp::acceptor>;
using own_socket = default_token::as_default_on_t<tcp::socket>;

asio::awaitable<void> echo_once(own_socket socket) {
    std::array<char, 64> data{};
    const std::size_t count = co_await socket.async_read_some(asio::buffer(data));
    co_await async_write(socket, asio::buffer(data, count));
}

asio::awaitable<void> listen_on(own_acceptor acceptor, int times) {
    for (int i = 0; i < times; ++i)
        asio::co_spawn(acceptor.get_executor(), echo_once(co_await acceptor.async_accept()), asio::detached);
}

TEST_P(asio_servers, sockets_may_have_a_default_token) {
    own_acceptor acceptor(context->get_executor(), {tcp::v4(), 0});
    const auto where = acceptor.local_endpoint();
    asio::co_spawn(*context, listen_on(std::move(acceptor), 5), asio::detached);
    int answers = 0;
    for (int i = 0; i < 5; ++i) {
        asio::co_spawn(
            *context, fetch({asio::ip::address_v4::loopback(), where.port()}, "ping"),
            [&](const std::exception_ptr&, const std::string& reply) { answers += reply == "ping"; });
    }
    context->run();
    EXPECT_EQ(answers, 5);
}

TEST_P(asio_servers, a_socket_on_a_strand_has_its_handlers_there) {
    tcp::acceptor acceptor(*context, {tcp::v4(), 0});
    auto strand = asio::make_strand(*context);
    bool in_strand = false;
    std::array<char, 16> data{};
    acceptor.async_accept(strand, [&](std::error_code why, auto socket) {
        ASSERT_FALSE(why);
        auto kept = std::make_shared<decltype(socket)>(std::move(socket));
        kept->async_read_some(asio::buffer(data), [&, kept](std::error_code, std::size_t) {
            in_strand = strand.running_in_this_thread();
        });
    });
    asio::co_spawn(*context, fetch({asio::ip::address_v4::loopback(), acceptor.local_endpoint().port()}, "x"),
                   asio::detached);
    context->run();
    EXPECT_TRUE(in_strand);
}

TEST_P(asio_servers, a_write_returns_after_any_data) {
    tcp::acceptor acceptor(*context, {tcp::v4(), 0});
    tcp::socket near(*context), far(*context);
    near.connect({asio::ip::address_v4::loopback(), acceptor.local_endpoint().port()});
    acceptor.accept(far);
    const std::string much(64U << 20U, 'x');  // more than the buffers of two sockets
    std::size_t written = 0;
    near.async_write_some(asio::buffer(much), [&](std::error_code, std::size_t count) { written = count; });
    context->run();  // although the peer does not read
    EXPECT_GT(written, 0U);
    EXPECT_LT(written, much.size());
}

}  // namespace

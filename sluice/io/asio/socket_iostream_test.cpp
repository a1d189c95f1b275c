#include "sluice/io/asio/socket_iostream.hpp"

#include <cstdio>
#include <future>
#include <string>
#include <thread>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
namespace net = asio_names;
using net::ip::tcp;

class asio_iostreams : public ::testing::Test {
protected:
    net::io_context context{1};
    tcp::acceptor acceptor{context, {asio::ip::address_v4::loopback(), 0}};
    std::string port = std::to_string(acceptor.local_endpoint().port());
};

TEST_F(asio_iostreams, carry_lines_in_both_directions_and_end_with_the_connection) {
    std::thread server([this] {
        tcp::iostream stream;
        acceptor.accept(stream.socket());
        std::string line;
        while (std::getline(stream, line))
            stream << "<" << line << ">" << std::endl;
        EXPECT_EQ(stream.error(), asio::error::eof);
    });
    {
        tcp::iostream stream("127.0.0.1", port);
        ASSERT_TRUE(stream) << stream.error().message();
        const std::string much(3000, 'x');  // longer than the buffers
        for (const std::string& line : {std::string("one"), much, std::string()}) {
            stream << line << "\n";
            std::string back;
            ASSERT_TRUE(std::getline(stream, back));
            EXPECT_EQ(back, "<" + line + ">");
        }
    }
    server.join();
}

TEST_F(asio_iostreams, output_is_sent_at_once) {
    tcp::iostream stream(acceptor.local_endpoint());
    tcp::socket far = acceptor.accept();
    stream << "abc";
    std::array<char, 3> got{};
    EXPECT_EQ(asio::read(far, asio::buffer(got)), 3U);
}

TEST_F(asio_iostreams, a_read_ends_with_timed_out_when_the_time_has_come) {
    tcp::iostream stream(acceptor.local_endpoint());
    const tcp::socket silent = acceptor.accept();
    stream.expires_after(5ms);
    std::string line;
    EXPECT_FALSE(std::getline(stream, line));
    EXPECT_EQ(stream.error(), asio::error::timed_out);
}

TEST_F(asio_iostreams, a_write_ends_with_timed_out_when_the_time_has_come) {
    tcp::iostream stream(acceptor.local_endpoint());
    const tcp::socket silent = acceptor.accept();
    stream.expires_after(20ms);
    const std::string much(64U << 20U, 'x');  // more than the buffers of two sockets
    EXPECT_FALSE(stream << much);
    EXPECT_EQ(stream.error(), asio::error::timed_out);
}

// A clock that the test sets.
struct set_clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<set_clock>;
    inline static time_point current{};
    static time_point now() noexcept { return current; }
};
// Each wait advances that clock by a millisecond.
struct looks {
    static set_clock::duration to_wait_duration(const set_clock::duration&) {
        set_clock::current += 1ms;
        return 1ms;
    }
};

TEST_F(asio_iostreams, another_clock_is_read_until_it_reaches_the_expiry_time) {
    set_clock::current = {};
    net::basic_socket_iostream<asio::ip::tcp, set_clock, looks> stream(acceptor.local_endpoint());
    const tcp::socket silent = acceptor.accept();
    stream.expires_after(5ms);
    EXPECT_EQ(stream.get(), EOF);
    EXPECT_EQ(stream.error(), asio::error::timed_out);
    EXPECT_EQ(set_clock::now(), stream.expiry() + 1ms);
}

TEST_F(asio_iostreams, a_connection_that_is_refused_sets_failbit_and_the_error) {
    const auto nowhere = acceptor.local_endpoint();
    acceptor.close();
    tcp::iostream stream(nowhere);
    EXPECT_FALSE(stream);
    EXPECT_EQ(stream.error(), asio::error::connection_refused);
    stream.clear();
    stream.connect("127.0.0.1", "no such service");
    EXPECT_FALSE(stream);
    EXPECT_EQ(stream.error(), asio::error::service_not_found);
}

TEST_F(asio_iostreams, may_be_moved_with_their_buffered_data) {
    tcp::iostream first(acceptor.local_endpoint());
    tcp::socket far = acceptor.accept();
    asio::write(far, asio::buffer("one two", 7));
    std::string word;
    first >> word;
    EXPECT_EQ(word, "one");
    tcp::iostream second(std::move(first));
    far.close();
    second >> word;
    EXPECT_EQ(word, "two");
    EXPECT_EQ(second.error(), asio::error::eof);
    tcp::iostream third;
    third = std::move(second);
    EXPECT_TRUE(third.socket().is_open());
    third.close();
    EXPECT_FALSE(third.socket().is_open());
}

TEST_F(asio_iostreams, are_made_from_a_socket_of_a_context) {
    tcp::socket near(context);
    near.connect(acceptor.local_endpoint());
    tcp::socket far = acceptor.accept();
    tcp::iostream stream(std::move(near));
    EXPECT_TRUE(stream.rdbuf()->pubsetbuf(nullptr, 0) != nullptr);
    stream << 'x';
    std::array<char, 1> got{};
    EXPECT_EQ(asio::read(far, asio::buffer(got)), 1U);
}

TEST_F(asio_iostreams, connect_to_local_sockets) {
    const std::string path = ::testing::TempDir() + "sluice_iostream_" + std::to_string(::getpid());
    (void)std::remove(path.c_str());
    const net::local::stream_protocol::endpoint where(path);
    net::local::stream_protocol::acceptor local(context, where);
    net::local::stream_protocol::iostream stream(where);
    ASSERT_TRUE(stream) << stream.error().message();
    net::local::stream_protocol::socket far = local.accept();
    asio::write(far, asio::buffer("hello\n", 6));
    std::string line;
    EXPECT_TRUE(std::getline(stream, line));
    EXPECT_EQ(line, "hello");
    (void)std::remove(path.c_str());
}

}  // namespace
}  // namespace sluice::io

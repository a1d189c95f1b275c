#include <netinet/in.h>

#include <chrono>
#include <thread>

#include "sluice/io/loop/registered_buffer.hpp"
#include "sluice/io/uring/uring_testing.hpp"

namespace sluice::io {
namespace {

using namespace uring_test;
using namespace std::chrono_literals;

// Two ends of a TCP connection over loopback, where the kernel copies the bytes of zero-copy sends
// after all.
struct tcp_pair {
    io_handle ours;
    int theirs = -1;

    tcp_pair() {
        const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in here{
            .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        socklen_t length = sizeof here;
        auto* const name = reinterpret_cast<sockaddr*>(&here);
        EXPECT_EQ(::bind(listener, name, length), 0);
        EXPECT_EQ(::listen(listener, 1), 0);
        EXPECT_EQ(::getsockname(listener, name, &length), 0);
        theirs = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::connect(theirs, name, length), 0);
        ours = io_handle(native_handle{.descriptor = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC),
                                       .kind = handle_kind::socket,
                                       .readable = true,
                                       .writable = true,
                                       .stream = true});
        ::close(listener);
    }
    ~tcp_pair() { ::close(theirs); }

    [[nodiscard]] std::size_t discard() const {
        std::array<char, 65536> some{};
        const ssize_t got = ::recv(theirs, some.data(), some.size(), MSG_DONTWAIT);
        return got > 0 ? static_cast<std::size_t>(got) : 0;
    }
};

// A separate done signal, after value, distinguishes zero-copy from ordinary sending.
struct order_recorder {
    int* values;
    int* dones;
    int* done_when_valued;
    std::size_t* bytes;
    template <class Buffers>
    void set_value(io_result<Buffers>&& came) noexcept {
        ++*values;
        *bytes = came.bytes_transferred();
        *done_when_valued = *dones;
    }
    void set_done() noexcept { ++*dones; }
};

TEST(uring_zero_copy, value_comes_before_done_and_the_handle_stays_busy_between) {
    const auto multiplexer = make({.zero_copy_send_bytes_min = 4096});
    tcp_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    int values = 0, dones = 0, done_when_valued = -1;
    std::size_t bytes = 0;
    // More than the receiver's window: the kernel keeps the memory until the peer reads.
    const std::string source(16 << 20, 'z');
    auto state = connect(async_write(pair.ours, io_request<const_bytes_type>{text(source)}),
                         order_recorder{&values, &dones, &done_when_valued, &bytes});
    state.start();
    EXPECT_EQ(values, 0) << "speculation would copy";
    std::size_t received = 0;
    while (multiplexer->pending() != 0) {
        (void)multiplexer->try_run_for(1ms);
        if (values == 1 and dones == 0) {
            EXPECT_TRUE(state.started());
            EXPECT_TRUE(state.completed());
            EXPECT_EQ(pair.ours.set_multiplexer(nullptr).error(), std::errc::device_or_resource_busy);
        }
        received += pair.discard();
    }
    for (std::size_t more = 0; received < source.size(); received += more)
        more = pair.discard();
    EXPECT_EQ(values, 1);
    EXPECT_EQ(dones, 1);
    EXPECT_EQ(done_when_valued, 0);
    EXPECT_EQ(bytes, source.size());
}

// Inside the value signal, the peer reads everything, and the multiplexer checks its completions
// through another operation, long enough for the kernel to release the memory.
struct let_go_within_value {
    const tcp_pair* pair;
    io_operation_connection<sleep_sender, recorder>* another;
    outcome* into;
    void set_value(io_result<const_bytes_type>&& came) noexcept {
        ++into->values;
        into->bytes = came.bytes_transferred();
        for (int quiet_ms = 0; quiet_ms < 50;) {
            const std::size_t more = pair->discard();
            another->poll();
            if (more != 0) continue;
            std::this_thread::sleep_for(1ms);
            ++quiet_ms;
        }
    }
    void set_done() noexcept { ++into->dones; }
};

TEST(uring_zero_copy, memory_released_while_value_is_signalled_is_done_once) {
    const auto multiplexer = make({.zero_copy_send_bytes_min = 4096});
    tcp_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    outcome slept, sent;
    auto sleeper = connect(async_sleep(*multiplexer, deadline(1h)), recorder{&slept});
    sleeper.start();
    const std::string source(16 << 20, 'z');
    auto state = connect(async_write(pair.ours, io_request<const_bytes_type>{text(source)}),
                         let_go_within_value{.pair = &pair, .another = &sleeper, .into = &sent});
    state.start();
    while (state.started()) {
        (void)multiplexer->try_run_for(1ms);
        (void)pair.discard();
    }
    drain(*multiplexer);
    EXPECT_EQ(sent.values, 1);
    EXPECT_EQ(sent.dones, 1);
    EXPECT_EQ(sent.bytes, source.size());
    EXPECT_EQ(multiplexer->pending(), 1U) << "the sleeper";
    sleeper.cancel();
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(slept.dones, 1);
}

TEST(uring_zero_copy, it_stops_where_everything_is_copied) {
    const auto multiplexer = make({.zero_copy_send_bytes_min = 4096});
    tcp_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    one_write write(pair.ours, std::string(8192, 'z'));
    int not_speculated = 0;
    for (int i = 0; i < 30; ++i) {
        write.state.start();
        if (write.state.started()) ++not_speculated;  // not done at once: not speculated
        while (multiplexer->run().value_or(0) > 0) {}
        ASSERT_EQ(write.result.dones, i + 1);
        while (pair.discard() > 0) {}
    }
    EXPECT_EQ(not_speculated, 2);
}

// Several segments use another call than one does.
TEST(uring_zero_copy, pieces_arrive_in_order_and_are_kept_until_done) {
    const auto multiplexer = make({.zero_copy_send_bytes_min = 4096});
    tcp_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    std::vector<std::string> parts{"head", std::string(3 << 20, 'a'), "", std::string(5 << 20, 'b'), "tail"};
    std::string whole;
    std::vector<const_buffer> pieces;
    for (const std::string& each : parts) {
        whole += each;
        pieces.emplace_back(text(each));
    }
    int values = 0, dones = 0, done_when_valued = -1;
    std::size_t bytes = 0;
    auto state = connect(async_write(pair.ours, io_request<const_buffers_type>{pieces}),
                         order_recorder{&values, &dones, &done_when_valued, &bytes});
    state.start();
    std::string received;
    std::vector<char> some(1 << 20);
    while (multiplexer->pending() != 0 or received.size() < whole.size()) {
        if (multiplexer->pending() != 0) (void)multiplexer->try_run_for(1ms);
        const ssize_t got = ::recv(pair.theirs, some.data(), some.size(), MSG_DONTWAIT);
        if (got > 0) received.append(some.data(), static_cast<std::size_t>(got));
    }
    EXPECT_TRUE(received == whole);
    EXPECT_EQ(bytes, whole.size());
    EXPECT_EQ(done_when_valued, 0) << "value came first";
    EXPECT_EQ(dones, 1);
    EXPECT_GE(multiplexer->zero_copy_sends().sends, 1U);
    EXPECT_EQ(multiplexer->zero_copy_sends().copied, multiplexer->zero_copy_sends().sends) << "over loopback";
}

TEST(uring_zero_copy, sends_to_sockets_without_zero_copy_are_copied) {
    const auto multiplexer = make({.zero_copy_send_bytes_min = 1});
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    one_write write(pair.ours, "copied");
    write.state.start();
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(write.result.bytes, 6U);
    EXPECT_EQ(pair.hear(), "copied");
}

TEST(uring_zero_copy, registered_memory_can_be_sent) {
    const auto multiplexer = make({.zero_copy_send_bytes_min = 1024});
    auto memory = multiplexer->allocate_registered_buffer(65536).value();
    tcp_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    std::ranges::fill(memory.bytes(), std::byte{'r'});
    outcome result;
    auto state = connect(
        async_write(pair.ours, io_request<const_bytes_type>{const_bytes_type(memory.bytes()).first(5000)}),
        recorder{&result});
    state.start();
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(result.bytes, 5000U);
    EXPECT_EQ(result.dones, 1);
    EXPECT_EQ(pair.discard(), 5000U);
}

}  // namespace
}  // namespace sluice::io

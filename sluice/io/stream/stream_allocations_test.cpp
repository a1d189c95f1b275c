// Counts every allocation of this program: a separate test program, because malloc is replaced.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "bench/harness/allocation_counter.hpp"
#include "sluice/io/stream/accept_stream.hpp"
#include "sluice/io/stream/receive_stream.hpp"
#include "sluice/io/stream/socket_testing.hpp"

namespace sluice::io {
namespace {

using namespace test_kit;

struct counts {
    std::size_t values = 0;
    int dones = 0;
};

struct counter {
    counts* into;
    void set_value(result<accepted>&&) noexcept { ++into->values; }
    void set_value(result<received_buffer>&& outcome) noexcept {
        into->values += outcome ? outcome->size() : 0;
    }
    void set_done() noexcept { ++into->dones; }
};

using stream_allocations = with_multiplexer;

TEST_P(stream_allocations, receiving_allocates_nothing_not_even_when_it_is_started) {
    auto pair = connect_streams(stream_kinds().back());
    ASSERT_TRUE(pair.server.set_multiplexer(multiplexer.get()).has_value());
    auto pool = receive_pool::make(*multiplexer, {.count = 4, .bytes_each = 16}).value();
    (void)multiplexer->try_run();
    counts came;
    const std::uint64_t before = bench::allocations();
    receive_stream stream(pair.server, pool, counter{&came});
    stream.start();
    constexpr std::size_t rounds = 100;
    for (std::size_t i = 1; i <= rounds; ++i) {
        (void)::send(pair.client.native().descriptor, "twenty bytes of text", 20, 0);
        while (came.values < i * 20)
            (void)multiplexer->run();
    }
    stream.cancel();
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(bench::allocations() - before, 0U);
    EXPECT_EQ(came.dones, 1);
    (void)pair.server.close();
}

TEST_P(stream_allocations, accepting_allocates_nothing) {
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    ASSERT_TRUE(listener.set_multiplexer(multiplexer.get()).has_value());
    const auto at = listener.local_address().value();
    (void)multiplexer->try_run();
    counts came;
    const std::uint64_t before = bench::allocations();
    accept_stream stream(listener, counter{&came});
    stream.start();
    for (std::size_t i = 1; i <= 20; ++i) {
        const auto client = socket_handle::connect(at);
        while (client and came.values < i)
            (void)multiplexer->run();
    }
    stream.cancel();
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(bench::allocations() - before, 0U);
    EXPECT_EQ(came.values, 21U);
    EXPECT_EQ(came.dones, 1);
    (void)listener.close();
}

INSTANTIATE_TEST_SUITE_P(every, stream_allocations, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io

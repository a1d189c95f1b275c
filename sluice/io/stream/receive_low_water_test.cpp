#include "sluice/io/stream/receive_low_water.hpp"

#include <thread>
#include <vector>

#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::io {
namespace {

using namespace test_kit;
using namespace std::chrono_literals;

constexpr std::size_t long_message = 300U << 10;
constexpr std::size_t little = 10U << 10;

class receive_low_water_test : public with_multiplexer {
protected:
    void SetUp() override {
        with_multiplexer::SetUp();
        if (IsSkipped()) return;
        pair = connect_streams({"", socket_address::loopback_v4(0)});
        ASSERT_TRUE(pair.server.set_multiplexer(multiplexer.get()).has_value());
        group.emplace(*multiplexer);
    }
    void TearDown() override {
        if (group) {
            group->cancel();
            sync_wait(*multiplexer, finish());
        }
        group.reset();
        pair = {};
    }
    task<void> finish() { co_await group->join(); }

    void send(std::size_t bytes) {
        const std::vector<std::byte> some(bytes);
        ASSERT_EQ(pair.client.write(io_request<const_bytes_type>{some}).bytes_transferred(), bytes);
    }
    void read_once() {
        group->spawn(reading());
        (void)multiplexer->try_run_for(10ms);  // until it waits
    }
    task<void> reading() {
        const io_request<bytes_type> wanted{.buffers = memory};
        const auto got = co_await co_read(pair.server, wanted);
        came = got.bytes_transferred();
        is_done = true;
    }
    task<void> waiting() {
        EXPECT_TRUE((co_await co_ready(pair.server, direction::in)).has_value());
        is_done = true;
    }
    // Waits for a long message, of which a little comes.
    void begin_long(receive_low_water& water) {
        water.expect(long_message);
        read_once();
        send(little);
    }
    [[nodiscard]] bool ends_within(std::chrono::milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (not is_done and std::chrono::steady_clock::now() < end)
            (void)multiplexer->try_run_for(10ms);
        return is_done;
    }

    connection pair;
    std::optional<task_group> group;
    std::vector<std::byte> memory = std::vector<std::byte>(long_message);
    std::size_t came = 0;
    bool is_done = false;
};
INSTANTIATE_TEST_SUITE_P(over, receive_low_water_test, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

TEST_P(receive_low_water_test, a_reader_sleeps_until_what_is_expected_is_there) {
    receive_low_water water(pair.server);
    begin_long(water);
    EXPECT_FALSE(ends_within(50ms));
    send(long_message - little);
    EXPECT_TRUE(ends_within(10s));
    EXPECT_GE(came, 64U << 10);
}

TEST_P(receive_low_water_test, the_end_of_the_stream_wakes_it_before) {
    receive_low_water water(pair.server);
    begin_long(water);
    EXPECT_FALSE(ends_within(20ms));
    ASSERT_TRUE(pair.client.shutdown(direction::out).has_value());
    EXPECT_TRUE(ends_within(10s));
    EXPECT_EQ(came, little);
}

TEST_P(receive_low_water_test, with_nothing_expected_any_more_what_is_there_wakes_it) {
    receive_low_water water(pair.server);
    begin_long(water);
    EXPECT_FALSE(ends_within(20ms));
    water.expect(0);
    EXPECT_TRUE(ends_within(10s));
    EXPECT_EQ(came, little);
}

TEST_P(receive_low_water_test, fewer_bytes_make_the_socket_not_ready_and_stay_readable) {
    receive_low_water water(pair.server);
    water.expect(long_message);
    is_done = false;
    group->spawn(waiting());
    (void)multiplexer->try_run_for(10ms);  // until it waits
    send(little);
    EXPECT_FALSE(ends_within(50ms));
    EXPECT_EQ(pair.server.try_read(io_request<bytes_type>{memory}).bytes_transferred(), little);
    ASSERT_TRUE(pair.client.shutdown(direction::out).has_value());
    EXPECT_TRUE(ends_within(10s));
}

TEST_P(receive_low_water_test, what_little_is_expected_is_not_waited_for) {
    receive_low_water water(pair.server);
    water.expect(long_message);
    water.expect(little);
    read_once();
    send(1);
    EXPECT_TRUE(ends_within(10s));
    EXPECT_EQ(came, 1U);
}

TEST_P(receive_low_water_test, over_a_slow_line_every_byte_wakes_it_for_some_time) {
    receive_low_water water(pair.server);
    water.expect(long_message);
    std::this_thread::sleep_for(receive_low_water::slow + 10ms);
    water.expect(0);
    begin_long(water);
    EXPECT_TRUE(ends_within(10s));
    EXPECT_EQ(came, little);
    for (unsigned i = 0; i != receive_low_water::rests_max; ++i) {
        water.expect(0);
        water.expect(long_message);
    }
    is_done = false;
    read_once();
    send(little);
    EXPECT_FALSE(ends_within(50ms));
}

TEST_P(receive_low_water_test, more_than_the_kernel_has_room_for_is_not_waited_for) {
    receive_low_water water(pair.server);
    water.expect(std::size_t{1} << 40);
    read_once();
    send(std::size_t{2} << 20);
    EXPECT_TRUE(ends_within(10s));
}

}  // namespace
}  // namespace sluice::io

#include "sluice/io/stream/receive_stream.hpp"

#include <sys/socket.h>

#include <functional>
#include <random>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/stream/socket_testing.hpp"

namespace sluice::io {
namespace {

using namespace test_kit;
using namespace std::chrono_literals;

// The bytes and the outcome of a stream.
struct pieces {
    std::vector<received_buffer> kept;
    std::string text;
    int code = 0;
    int ends = 0;
    int values = 0;
    int dones = 0;
    bool keeps = false;
    std::function<void()> on_value = [] {};
    std::function<void()> on_done = [] {};
};

struct collector {
    pieces* into;
    void set_value(result<received_buffer>&& outcome) noexcept {
        EXPECT_EQ(into->dones + into->ends + into->code, 0) << "a value after the last";
        ++into->values;
        if (not outcome) {
            into->code = outcome.error().code();
        } else if (outcome->empty()) {
            ++into->ends;
        } else {
            into->text += string_of(outcome->bytes());
            if (into->keeps) into->kept.push_back(std::move(*outcome));
        }
        into->on_value();
    }
    void set_done() noexcept {
        ++into->dones;
        into->on_done();
    }
};
using stream_state = receive_stream<collector>;

class receive_streams : public with_multiplexer {
protected:
    void SetUp() override {
        with_multiplexer::SetUp();
        if (not IsSkipped()) renew_pair();
    }
    void TearDown() override {
        (void)pair.server.close();
        pool.reset();
    }

    void renew_pair() {
        pair = connect_streams(stream_kinds().front());
        ASSERT_TRUE(pair.server.set_multiplexer(multiplexer.get()).has_value());
    }
    receive_pool& make_pool(std::uint32_t count, std::size_t bytes_each) {
        pool.emplace(receive_pool::make(*multiplexer, {.count = count, .bytes_each = bytes_each}).value());
        EXPECT_EQ(pool->is_provided(), multiplexer->name() == "io_uring");
        return *pool;
    }
    void say(std::string_view s) const {
        ASSERT_EQ(::send(pair.client.native().descriptor, s.data(), s.size(), 0), ssize_t(s.size()));
    }
    void close_connection() { ASSERT_TRUE(pair.client.shutdown(direction::out).has_value()); }
    // Runs until there are no more events.
    void linger() {
        int passes = 0;
        while (multiplexer->try_run_for(20ms).value_or(0) > 0)
            ASSERT_LT(++passes, 1000) << "it never rests";
    }
    void expect_done() {
        ASSERT_TRUE(run_until([&] { return came.dones != 0; }));
        EXPECT_EQ(came.dones, 1);
        EXPECT_EQ(multiplexer->pending(), 0U);
        EXPECT_EQ(pool->in_use(), came.kept.size());
    }

    std::optional<receive_pool> pool;
    connection pair;
    pieces came;
};

TEST_P(receive_streams, delivers_all_bytes_until_the_end_of_file) {
    stream_state stream(pair.server, make_pool(4, 64), collector{&came});
    stream.start();
    say("one");
    ASSERT_TRUE(run_until([&] { return came.text == "one"; }));
    linger();
    say(" two");
    ASSERT_TRUE(run_until([&] { return came.text == "one two"; }));
    EXPECT_EQ(pool->in_use(), 0U);
    close_connection();
    expect_done();
    EXPECT_EQ(came.ends, 1);
    EXPECT_EQ(came.code, 0);
}

TEST_P(receive_streams, bytes_are_exact_and_in_order_whatever_the_sizes) {
    stream_state stream(pair.server, make_pool(3, 1000), collector{&came});
    stream.start();
    const auto all = pattern(1 << 20);
    std::minstd_rand random(7);
    std::size_t sent = 0;
    while (sent < all.size()) {
        const std::size_t some = std::min<std::size_t>(1 + random() % 20'000, all.size() - sent);
        const ssize_t moved = ::send(pair.client.native().descriptor, all.data() + sent, some, MSG_DONTWAIT);
        if (moved > 0) sent += static_cast<std::size_t>(moved);
        if (moved < 0 or random() % 3 == 0) (void)multiplexer->try_run();
    }
    close_connection();
    expect_done();
    EXPECT_EQ(came.ends, 1);
    EXPECT_TRUE(came.text == string_of(all));
}

TEST_P(receive_streams, without_a_free_buffer_it_pauses_and_resumes) {
    came.keeps = true;
    stream_state stream(pair.server, make_pool(2, 4), collector{&came});
    stream.start();
    say("aaaabbbbccccdddde");
    close_connection();
    ASSERT_TRUE(run_until([&] { return came.kept.size() == 2; }));
    linger();
    EXPECT_EQ(came.text, "aaaabbbb");
    EXPECT_EQ(multiplexer->pending(), 1U) << "a paused stream is pending";
    EXPECT_EQ(pair.server.set_multiplexer(nullptr).error(), std::errc::device_or_resource_busy);
    while (came.dones == 0) {
        ASSERT_FALSE(came.kept.empty());
        const int values = came.values;
        came.kept.erase(came.kept.begin());
        EXPECT_EQ(came.values, values) << "a signal from inside the return of a buffer";
        ASSERT_TRUE(run_until([&] { return came.values > values; }));
        linger();
    }
    expect_done();
    EXPECT_EQ(came.text, "aaaabbbbccccdddde");
    EXPECT_EQ(came.ends, 1);
    came.kept.clear();
    EXPECT_EQ(pool->in_use(), 0U);
}

TEST_P(receive_streams, cancelled_while_idle_it_ends_and_loses_nothing) {
    stream_state stream(pair.server, make_pool(2, 64), collector{&came});
    stream.start();
    linger();
    stream.cancel();
    EXPECT_EQ(came.values, 0) << "a signal from inside cancel";
    expect_done();
    EXPECT_EQ(came.code, ECANCELED);
    say("later");
    std::array<std::byte, 8> memory{};
    const auto read = pair.server.read(io_request<bytes_type>{std::span(memory)});
    EXPECT_EQ(string_of(std::span(memory).first(read.bytes_transferred())), "later");
}

TEST_P(receive_streams, cancelled_at_any_moment_it_leaves_the_rest_to_the_next) {
    make_pool(8, 16);
    const auto all = pattern(4000);
    std::minstd_rand random(11);
    std::string text;
    std::size_t sent = 0;
    while (sent < all.size()) {
        came = {};
        stream_state stream(pair.server, *pool, collector{&came});
        stream.start();
        const std::size_t some = std::min<std::size_t>(1 + random() % 200, all.size() - sent);
        say({reinterpret_cast<const char*>(all.data() + sent), some});
        sent += some;
        for (unsigned i = random() % 6; i > 0; --i)
            (void)multiplexer->try_run(1);
        stream.cancel();
        expect_done();
        EXPECT_EQ(came.code, ECANCELED);
        text += came.text;
    }
    came = {};
    stream_state stream(pair.server, *pool, collector{&came});
    stream.start();
    close_connection();
    expect_done();
    EXPECT_TRUE(text + came.text == string_of(all));
}

TEST_P(receive_streams, cancelled_while_paused_it_ends) {
    came.keeps = true;
    stream_state stream(pair.server, make_pool(1, 4), collector{&came});
    stream.start();
    say("aaaabbbb");
    ASSERT_TRUE(run_until([&] { return came.kept.size() == 1; }));
    linger();
    stream.cancel();
    expect_done();
    EXPECT_EQ(came.code, ECANCELED);
    came.kept.clear();
    std::array<std::byte, 8> memory{};
    const auto read = pair.server.read(io_request<bytes_type>{std::span(memory)});
    EXPECT_EQ(string_of(std::span(memory).first(read.bytes_transferred())), "bbbb");
}

TEST_P(receive_streams, cancelled_by_its_receiver_and_started_again_it_continues) {
    make_pool(2, 4);
    stream_state stream(pair.server, *pool, collector{&came});
    came.on_value = [&] { stream.cancel(); };
    int rounds = 0;
    came.on_done = [&] {
        ++rounds;
        if (came.ends != 0) return;
        EXPECT_EQ(came.code, ECANCELED);
        came.code = came.dones = 0;
        stream.start();
    };
    stream.start();
    say("aaaabbbbccccdddd");
    close_connection();
    expect_done();
    EXPECT_EQ(came.text, "aaaabbbbccccdddd");
    EXPECT_GE(rounds, 1);
}

TEST_P(receive_streams, a_reset_connection_ends_it_with_that_error) {
    stream_state stream(pair.server, make_pool(2, 64), collector{&came});
    stream.start();
    linger();
    const struct ::linger at_once{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(pair.client.native().descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once),
              0);
    ASSERT_TRUE(pair.client.close().has_value());
    expect_done();
    EXPECT_EQ(came.code, ECONNRESET);
}

TEST_P(receive_streams, a_stream_may_be_destroyed_from_done) {
    make_pool(2, 64);
    auto stream = std::make_unique<stream_state>(pair.server, *pool, collector{&came});
    came.on_done = [&] { stream.reset(); };
    stream->start();
    close_connection();
    expect_done();
    EXPECT_EQ(stream, nullptr);
}

// More streams than buffers: the idle ones must not keep buffers from the
// others, and all get theirs.
TEST_P(receive_streams, many_streams_share_few_buffers) {
    constexpr std::size_t count = 64;
    constexpr std::size_t rounds = 20;
    make_pool(3, 32);
    struct one {
        connection pair;
        pieces came;
        std::optional<stream_state> stream;
    };
    std::vector<std::unique_ptr<one>> all;
    for (std::size_t i = 0; i < count; ++i) {
        auto& fresh = *all.emplace_back(std::make_unique<one>());
        fresh.pair = connect_streams(stream_kinds().back());
        ASSERT_TRUE(fresh.pair.server.set_multiplexer(multiplexer.get()).has_value());
        fresh.stream.emplace(fresh.pair.server, *pool, collector{&fresh.came});
        fresh.came.keeps = i % 2 == 0;
        fresh.stream->start();
    }
    const std::string line = "a line that takes more than one of the buffers\n";
    for (std::size_t round = 0; round < rounds; ++round) {
        for (auto& each : all)
            ASSERT_EQ(::send(each->pair.client.native().descriptor, line.data(), line.size(), 0),
                      ssize_t(line.size()));
        ASSERT_TRUE(run_until([&] {
            bool have_all = true;
            for (auto& each : all) {
                each->came.kept.clear();
                have_all = have_all and each->came.text.size() == (round + 1) * line.size();
            }
            return have_all;
        }));
    }
    for (auto& each : all)
        ASSERT_TRUE(each->pair.client.shutdown(direction::out).has_value());
    ASSERT_TRUE(run_until([&] { return multiplexer->pending() == 0; }));
    for (auto& each : all) {
        EXPECT_EQ(each->came.dones, 1);
        EXPECT_EQ(each->came.ends, 1);
        ASSERT_TRUE(each->pair.server.close().has_value());
    }
    EXPECT_EQ(pool->in_use(), 0U);
}

TEST_P(receive_streams, pools_beyond_the_kernels_number_of_groups_are_read_into) {
    std::vector<receive_pool> others;
    for (std::size_t i = 0; i < limits::receive_groups_max; ++i)
        others.push_back(receive_pool::make(*multiplexer, {.count = 1, .bytes_each = 1}).value());
    pool.emplace(receive_pool::make(*multiplexer, {.count = 2, .bytes_each = 4}).value());
    EXPECT_FALSE(pool->is_provided());
    came.keeps = true;
    stream_state stream(pair.server, *pool, collector{&came});
    stream.start();
    linger();
    EXPECT_EQ(pool->in_use(), 0U) << "an idle stream holds no buffer";
    say("aaaabbbbcc");
    ASSERT_TRUE(run_until([&] { return came.kept.size() == 2; }));
    linger();
    came.kept.clear();
    ASSERT_TRUE(run_until([&] { return came.text == "aaaabbbbcc"; }));
    linger();
    stream.cancel();
    expect_done();
    EXPECT_EQ(came.code, ECANCELED);
    came.kept.clear();
}

TEST_P(receive_streams, a_pool_refuses_invalid_sizes) {
    const auto made = [&](receive_pool_size size) { return receive_pool::make(*multiplexer, size); };
    EXPECT_EQ(made({.count = 0, .bytes_each = 1}).error(), std::errc::invalid_argument);
    EXPECT_EQ(made({.count = 1, .bytes_each = 0}).error(), std::errc::invalid_argument);
    EXPECT_EQ(made({.count = receive_pool::count_max + 1, .bytes_each = 1}).error(),
              std::errc::invalid_argument);
    EXPECT_TRUE(made({.count = receive_pool::count_max, .bytes_each = 1}).has_value());
    for (int i = 0; i < 100; ++i)  // more often than there are names for them
        EXPECT_TRUE(made({.count = 5, .bytes_each = 100}).has_value());
}

INSTANTIATE_TEST_SUITE_P(every, receive_streams, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io

#include "sluice/io/simulated/simulated_multiplexer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using event_kind = simulation_event::kind;

struct recorder final : simulation_listener {
    void on_event(const simulation_event& event) noexcept override { events.push_back(event); }
    [[nodiscard]] bool has(event_kind what) const {
        return std::ranges::any_of(events, [&](const auto& e) { return e.what == what; });
    }
    std::vector<simulation_event> events;
};

struct outcome {
    int dones = 0;
    int code = -1;
    std::size_t bytes = 0;
    std::function<void()> on_done{};
};
struct recording_receiver {
    outcome* to;
    void set_value(auto&& recorded) noexcept {
        to->code = recorded.has_value() ? 0 : recorded.error().code();
        if constexpr (requires { recorded.bytes_transferred(); }) to->bytes = recorded.bytes_transferred();
    }
    void set_done() noexcept {
        ++to->dones;
        if (to->on_done) to->on_done();
    }
};

std::unique_ptr<simulated_multiplexer> simulate(simulation_options options) {
    return make_simulated_multiplexer(std::move(options)).value();
}

io_handle memory_file() {
    const int fd = ::memfd_create("simulated", MFD_CLOEXEC);
    EXPECT_GE(fd, 0);
    return io_handle(native_handle{
        .descriptor = fd, .kind = handle_kind::file, .readable = true, .writable = true, .in_memory = true});
}

std::array<io_handle, 2> socket_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const auto adopt = [](int fd) {
        return io_handle(native_handle{.descriptor = fd,
                                       .kind = handle_kind::socket,
                                       .readable = true,
                                       .writable = true,
                                       .stream = true});
    };
    return {adopt(ends[0]), adopt(ends[1])};
}

auto read_of(io_handle& from, std::span<std::byte> into, deadline within = {}) {
    return async_read(from, io_request<bytes_type>{into, 0}, within);
}
auto write_of(io_handle& to, std::span<const std::byte> what, extent_type at = 0) {
    return async_write(to, io_request<const_bytes_type>{what, at});
}

// Runs a mixture: a megabyte through a pipe, replies through sockets, overlapping writes to a file,
// cancels, deadlines and sleeps. Returns the order of the operations, and their outcomes.
std::vector<std::size_t> run_a_little_of_everything(simulated_multiplexer& m) {
    auto pipe = pipe_handle::anonymous().value();
    auto sockets = socket_pair();
    io_handle file = memory_file();
    for (io_handle* h :
         std::initializer_list<io_handle*>{&pipe.reader, &pipe.writer, &sockets[0], &sockets[1], &file}) {
        EXPECT_TRUE(h->set_multiplexer(&m).has_value());
    }
    std::vector<std::size_t> log;
    const std::vector<std::byte> much(200'000, std::byte{1});
    std::vector<std::byte> into(5000);
    outcome sent, got, asked, answered, timed, slept;
    std::array<outcome, 8> on_file;
    auto send = connect(write_of(pipe.writer, much), recording_receiver{&sent});
    auto get = connect(read_of(pipe.reader, into), recording_receiver{&got});
    auto ask = connect(write_of(sockets[0], std::span(much).first(1000)), recording_receiver{&asked});
    auto answer = connect(read_of(sockets[1], std::span(into).first(1000)), recording_receiver{&answered});
    auto too_late = connect(read_of(sockets[0], into, 1ms), recording_receiver{&timed});
    auto sleep = connect(async_sleep(m, 3ms), recording_receiver{&slept});
    std::size_t total = 0;
    got.on_done = [&] {
        log.push_back(got.bytes);
        total += got.bytes;
        if (got.code == 0 and total < much.size()) get.start();
    };
    answered.on_done = [&] { log.push_back(1'000'000 + answered.bytes); };
    std::vector<decltype(connect(write_of(file, much), recording_receiver{}))> writes;
    writes.reserve(on_file.size());
    for (std::size_t i = 0; i < on_file.size(); ++i) {
        on_file[i].on_done = [&, i] { log.push_back(2'000'000 + i); };
        writes.push_back(
            connect(write_of(file, std::span(much).first(3000), i * 100), recording_receiver{&on_file[i]}));
        writes.back().start();
    }
    for (auto* op : {&send, &ask})
        op->start();
    for (auto* op : {&get, &answer, &too_late})
        op->start();
    sleep.start();
    writes[3].cancel();
    while (m.run().value_or(0) > 0) {}
    EXPECT_EQ(m.pending(), 0U) << m.stalled();
    EXPECT_EQ(timed.code, ETIMEDOUT);
    EXPECT_EQ(slept.code, 0);
    EXPECT_EQ(total, much.size());
    return log;
}

TEST(simulated_multiplexer, does_the_same_event_for_event_with_the_same_seed) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        recorder first, second;
        auto options = simulation_options::adversarial(seed);
        options.listener = &first;
        auto m = simulate(options);
        const auto log = run_a_little_of_everything(*m);
        options.listener = &second;
        auto again = simulate(options);
        EXPECT_EQ(run_a_little_of_everything(*again), log);
        EXPECT_GT(first.events.size(), 100U);
        EXPECT_TRUE(first.events == second.events);
        EXPECT_EQ(m->digest(), again->digest());
        EXPECT_EQ(m->events(), first.events.size());
        auto other = simulate(simulation_options::adversarial(seed + 100));
        EXPECT_NE(run_a_little_of_everything(*other), log) << "another seed, another run";
        EXPECT_NE(m->digest(), other->digest());
    }
}

TEST(simulated_multiplexer, produces_every_kind_of_event_when_rough) {
    recorder seen;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        auto options = simulation_options::adversarial(seed);
        options.listener = &seen;
        (void)run_a_little_of_everything(*simulate(options));
    }
    for (const auto what :
         {event_kind::advanced, event_kind::finished, event_kind::refused, event_kind::held_back,
          event_kind::cancelled, event_kind::cancelling, event_kind::began, event_kind::time_passed}) {
        EXPECT_TRUE(seen.has(what)) << to_text({.what = what});
    }
}

TEST(simulated_multiplexer, completes_nothing_inside_start_unless_configured) {
    for (const permille speculation : {0U, 1000U}) {
        auto m = simulate({.seed = 1, .speculation = speculation});
        auto pipe = pipe_handle::anonymous().value();
        ASSERT_TRUE(pipe.writer.set_multiplexer(m.get()).has_value());
        std::array<std::byte, 8> some{};
        outcome recorded;
        auto write = connect(write_of(pipe.writer, some), recording_receiver{&recorded});
        write.start();
        EXPECT_EQ(recorded.dones, speculation == 0 ? 0 : 1);
        while (m->run().value_or(0) > 0) {}
        EXPECT_EQ(recorded.dones, 1);
    }
}

TEST(simulated_multiplexer, waits_an_hour_in_no_time) {
    auto m = simulate({.seed = 1});
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.reader.set_multiplexer(m.get()).has_value());
    std::array<std::byte, 8> into{};
    outcome read_outcome, sleep_outcome;
    auto read = connect(read_of(pipe.reader, into, 1h), recording_receiver{&read_outcome});
    auto date = connect(async_sleep(*m, m->utc_now() + 2h), recording_receiver{&sleep_outcome});
    const auto really = std::chrono::steady_clock::now();
    const auto before = m->now();
    read.start();
    date.start();
    while (m->run().value_or(0) > 0) {}
    EXPECT_EQ(read_outcome.code, ETIMEDOUT);
    EXPECT_EQ(sleep_outcome.code, 0);
    EXPECT_GE(m->now() - before, 2h);
    EXPECT_LT(m->now() - before, 2h + 1s);
    EXPECT_LT(std::chrono::steady_clock::now() - really, 10s);
}

TEST(simulated_multiplexer, lists_waiting_operations_when_no_event_can_ever_happen) {
    auto m = simulate({.seed = 1});
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.reader.set_multiplexer(m.get()).has_value());
    std::array<std::byte, 8> into{};
    outcome recorded;
    auto read = connect(read_of(pipe.reader, into), recording_receiver{&recorded});
    read.start();
    EXPECT_EQ(m->run(), io_multiplexer::nothing_ready);
    EXPECT_EQ(m->try_run_until(io_multiplexer::time_point::max()), io_multiplexer::nothing_ready);
    EXPECT_NE(m->stalled().find("read on handle"), std::string::npos) << m->stalled();
    EXPECT_NE(m->stalled().find("0 of 8 bytes"), std::string::npos) << m->stalled();
    {
        const io_multiplexer::work_guard promise(*m);
        EXPECT_EQ(m->run(), io_multiplexer::nothing_ready) << "there is no other thread to keep it";
    }
    // Now an action from outside happens after all.
    ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{std::span(into).first(3)}).has_value());
    EXPECT_EQ(m->run(), 1);
    EXPECT_EQ(recorded.bytes, 3U);
    EXPECT_EQ(m->stalled(), "");
}

TEST(simulated_multiplexer, handles_some_late_cancels_too_late) {
    std::set<int> codes;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        auto m = simulate({.seed = seed, .late_cancels = 1000, .delay_max = 100us});
        auto pipe = pipe_handle::anonymous().value();
        ASSERT_TRUE(pipe.reader.set_multiplexer(m.get()).has_value());
        std::array<std::byte, 8> into{};
        ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{into}).has_value());
        outcome recorded;
        auto read = connect(read_of(pipe.reader, into), recording_receiver{&recorded});
        read.start();
        (void)m->complete_io();
        read.cancel();
        while (m->run().value_or(0) > 0) {}
        EXPECT_EQ(recorded.dones, 1);
        codes.insert(recorded.code);
    }
    EXPECT_EQ(codes, (std::set<int>{0, ECANCELED}));
}

TEST(simulated_multiplexer, finishes_handles_in_an_order_of_its_own_and_each_stream_in_that_of_its_requests) {
    std::set<std::vector<int>> orders;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        auto m = simulate({.seed = seed});
        std::vector<pipe_handle::pair> pipes;
        std::vector<int> order;
        std::array<outcome, 8> recorded;
        std::array<std::byte, 8> bytes{};
        std::vector<decltype(connect(write_of(pipes[0].writer, bytes), recording_receiver{}))> writes;
        writes.reserve(recorded.size());
        for (std::size_t i = 0; i < 4; ++i) {
            pipes.push_back(pipe_handle::anonymous().value());
            ASSERT_TRUE(pipes.back().writer.set_multiplexer(m.get()).has_value());
        }
        for (std::size_t i = 0; i < recorded.size(); ++i) {
            recorded[i].on_done = [&order, i] { order.push_back(static_cast<int>(i)); };
            writes.push_back(connect(write_of(pipes[i % 4].writer, bytes), recording_receiver{&recorded[i]}));
            writes.back().start();
        }
        while (m->run().value_or(0) > 0) {}
        ASSERT_EQ(order.size(), recorded.size());
        for (int i = 0; i < 4; ++i)
            EXPECT_LT(std::ranges::find(order, i), std::ranges::find(order, i + 4)) << "seed " << seed;
        orders.insert(order);
    }
    EXPECT_GT(orders.size(), 10U);
}

TEST(simulated_multiplexer, injects_the_configured_errors_and_no_others) {
    auto m = simulate(
        {.seed = 1,
         .errors = {{.on = operation_kind::write, .of = handle_kind::file, .code = ENOSPC, .chance = 1000}}});
    io_handle file = memory_file();
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(file.set_multiplexer(m.get()).has_value());
    ASSERT_TRUE(pipe.writer.set_multiplexer(m.get()).has_value());
    std::array<std::byte, 8> some{};
    outcome to_file, to_pipe, from_file;
    auto write_file = connect(write_of(file, some), recording_receiver{&to_file});
    auto write_pipe = connect(write_of(pipe.writer, some), recording_receiver{&to_pipe});
    auto read_file = connect(read_of(file, some), recording_receiver{&from_file});
    write_file.start();
    write_pipe.start();
    read_file.start();
    while (m->run().value_or(0) > 0) {}
    EXPECT_EQ(to_file.code, ENOSPC);
    EXPECT_EQ(to_pipe.code, 0);
    EXPECT_EQ(from_file.code, 0);
}

TEST(simulated_multiplexer, reports_a_partial_write_first_and_its_error_to_the_next) {
    bool seen = false;
    for (std::uint64_t seed = 1; seed <= 50 and not seen; ++seed) {
        auto m = simulate({.seed = seed,
                           .short_transfers = 1000,
                           .errors = {{.on = operation_kind::write, .of = {}, .code = EIO, .chance = 200}}});
        auto pipe = pipe_handle::anonymous().value();
        ASSERT_TRUE(pipe.writer.set_multiplexer(m.get()).has_value());
        const std::vector<std::byte> much(40'000);
        outcome first, follower, next;
        auto write = connect(write_of(pipe.writer, much), recording_receiver{&first});
        auto behind = connect(write_of(pipe.writer, much), recording_receiver{&follower});
        write.start();
        behind.start();
        while (m->run().value_or(0) > 0) {}
        if (first.code != 0 or first.bytes == much.size()) continue;
        seen = true;
        EXPECT_GT(first.bytes, 0U);
        EXPECT_EQ(follower.code, ECANCELED) << "it must not be sent after the gap";
        EXPECT_EQ(follower.bytes, 0U);
        auto after = connect(write_of(pipe.writer, much), recording_receiver{&next});
        after.start();
        while (m->run().value_or(0) > 0) {}
        EXPECT_EQ(next.code, EIO);
    }
    EXPECT_TRUE(seen);
}

TEST(simulated_multiplexer, fails_everything_on_a_broken_connection_and_notifies_the_peer) {
    auto m = simulate({.seed = 1,
                       .errors = {{.on = operation_kind::write,
                                   .of = handle_kind::socket,
                                   .code = ECONNRESET,
                                   .chance = 1000,
                                   .breaks = true}}});
    auto sockets = socket_pair();
    for (auto& end : sockets)
        ASSERT_TRUE(end.set_multiplexer(m.get()).has_value());
    std::array<std::byte, 8> some{};
    outcome wrote, read_here, read_there;
    auto write = connect(write_of(sockets[0], some), recording_receiver{&wrote});
    auto here = connect(read_of(sockets[0], some), recording_receiver{&read_here});
    auto there = connect(read_of(sockets[1], some), recording_receiver{&read_there});
    here.start();
    there.start();
    write.start();
    while (m->run().value_or(0) > 0) {}
    EXPECT_EQ(m->pending(), 0U) << m->stalled();
    EXPECT_EQ(wrote.code, ECONNRESET);
    EXPECT_TRUE(read_here.code == ECONNRESET or (read_here.code == 0 and read_here.bytes == 0));
    EXPECT_EQ(read_there.code, 0);
    EXPECT_EQ(read_there.bytes, 0U) << "the end of the stream";
    here.start();
    while (m->run().value_or(0) > 0) {}
    EXPECT_EQ(read_here.code, ECONNRESET);
}

TEST(simulated_multiplexer, shares_its_clock_with_the_program_under_test) {
    simulated_clock clock;
    auto m = simulate({.seed = 1, .clock = &clock});
    const auto before = clock.steady_now();
    EXPECT_EQ(m->now(), before);
    clock.advance(5s);
    EXPECT_EQ(m->now() - before, 5s);
    outcome recorded;
    auto sleep = connect(async_sleep(*m, 10s), recording_receiver{&recorded});
    sleep.start();
    while (m->run().value_or(0) > 0) {}
    EXPECT_GE(clock.steady_now() - before, 15s);
}

TEST(simulated_multiplexer, advances_the_time_for_a_program_that_only_polls) {
    auto m = simulate({.seed = 1, .delay_max = 50us});
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.writer.set_multiplexer(m.get()).has_value());
    std::array<std::byte, 8> some{};
    outcome recorded;
    auto write = connect(write_of(pipe.writer, some), recording_receiver{&recorded});
    write.start();
    int looks = 0;
    while (not write.poll() and looks < 1000)
        ++looks;
    EXPECT_EQ(recorded.code, 0);
    EXPECT_LT(looks, 1000);
}

}  // namespace
}  // namespace sluice::io

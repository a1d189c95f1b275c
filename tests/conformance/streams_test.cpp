#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "tests/conformance/harness.hpp"

// Transfers over streams: order, sharing of calls, partial transfers, ends. io_handle, "Transfers".

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class streams : public on_every_stream {
protected:
    using reads = std::vector<std::unique_ptr<tracked_read>>;
    using writes = std::vector<std::unique_ptr<tracked_write>>;

    static void send(io_handle& writer, std::span<const std::byte> what) {
        ASSERT_EQ(writer.write(io_request<const_bytes_type>{what}).bytes_transferred(), what.size());
    }
    static std::size_t done(const auto& operations) {
        return static_cast<std::size_t>(
            std::ranges::count_if(operations, [](const auto& each) { return each->is.dones == 1; }));
    }
    /// Receives at the other end until a condition holds and this number of bytes has arrived: data
    /// that TCP has accepted may still be in transit.
    std::vector<std::byte> receive_until(io_handle& reader, const std::function<bool()>& met,
                                         const std::function<std::size_t()>& expected) {
        std::vector<std::byte> all;
        for (int idle = 0; idle < 200;) {
            const auto some = drain(reader);
            all.insert(all.end(), some.begin(), some.end());
            idle = some.empty() ? idle + 1 : 0;
            const bool is_sent = some.empty() and met();
            if (is_sent and all.size() >= expected()) break;
            (void)multiplexer().try_run_for(1ms);
            pollfd waiting{.fd = reader.descriptor(), .events = POLLIN, .revents = 0};
            if (is_sent) (void)::poll(&waiting, 1, 50);
        }
        return all;
    }
};
INSTANTIATE_TEST_SUITE_P(conformance, streams, every_stream(), name_of_stream);

TEST_P(streams, serve_reads_in_the_order_they_were_started) {
    auto ends = attached_stream();
    const auto sent = pattern(1000);
    std::vector<std::byte> got(1000);
    std::vector<std::size_t> order;
    reads all;
    for (std::size_t i = 0; i < 100; ++i) {
        all.push_back(
            std::make_unique<tracked_read>(reading(ends.reader, std::span(got).subspan(i * 10, 10))));
        all.back()->is.on_value = [&order, i] { order.push_back(i); };
        all.back()->state.start();
    }
    for (std::size_t i = 0; i < 100; ++i) {
        send(ends.writer, std::span(sent).subspan(i * 10, 10));
        ASSERT_TRUE(run_until([&] { return done(all) == i + 1; }));
    }
    EXPECT_TRUE(std::ranges::is_sorted(order));
    // A read may be short; but the reads must be in order and without gaps.
    std::size_t at = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(std::memcmp(&got[i * 10], &sent[at], all[i]->is.bytes), 0) << "read " << i;
        at += all[i]->is.bytes;
    }
}

TEST_P(streams, serve_writes_completely_in_the_order_they_were_started) {
    auto ends = attached_stream();
    const auto sent = pattern(300'000);
    writes all;
    std::size_t at = 0;
    for (std::size_t i = 0; at < sent.size(); ++i) {
        const std::size_t size = std::min(sent.size() - at, 1 + i * i % 9001);
        all.push_back(
            std::make_unique<tracked_write>(writing(ends.writer, std::span(sent).subspan(at, size))));
        all.back()->state.start(i % 3 == 0 ? initiation::batched : initiation::automatic);
        at += size;
    }
    const auto got =
        receive_until(ends.reader, [&] { return done(all) == all.size(); }, [&] { return sent.size(); });
    EXPECT_TRUE(std::ranges::equal(got, sent));
    for (const auto& each : all)
        EXPECT_TRUE(succeeded(each->is, each->state.get_sender().request().buffers.size()));
}

TEST_P(streams, distribute_bytes_over_waiting_reads_like_separate_calls) {
    for (const std::size_t available : {1U, 7U, 8U, 9U, 24U, 25U, 100U}) {
        auto ends = attached_stream();
        std::vector<std::byte> got(200);
        constexpr std::array<std::size_t, 6> sizes{8, 0, 16, 1, 0, 40};
        reads all;
        std::size_t at = 0;
        for (const std::size_t size : sizes) {
            all.push_back(
                std::make_unique<tracked_read>(reading(ends.reader, std::span(got).subspan(at, size))));
            at += size;
        }
        const auto sent = pattern(available);
        send(ends.writer, sent);
        for (auto& each : all)
            each->state.start(initiation::batched);
        run_briefly();
        // The model: each read takes as much as it can of the remaining bytes, and waits if there
        // are none.
        std::size_t left = available;
        bool waits = false;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (not which().is_exact) break;  // a short transfer may distribute them differently
            waits = waits or (left == 0 and sizes[i] != 0);
            if (waits) {
                EXPECT_EQ(all[i]->is.values, 0) << "read " << i << " with " << available << " available";
            } else {
                EXPECT_TRUE(succeeded(all[i]->is, std::min(left, sizes[i])))
                    << "read " << i << " with " << available << " available";
                left -= std::min(left, sizes[i]);
            }
        }
        for (auto& each : all)
            each->state.cancel();
        ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    }
}

TEST_P(streams, finish_a_read_with_the_available_bytes) {
    auto ends = attached_stream();
    std::array<std::byte, 100> into{};
    send(ends.writer, text("some"));
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_EQ(read.is.code, 0);
    EXPECT_GE(read.is.bytes, 1U);
    EXPECT_LE(read.is.bytes, 4U);
    if (which().is_exact) EXPECT_EQ(read.is.bytes, 4U);
}

TEST_P(streams, finish_every_waiting_read_with_no_bytes_when_the_peer_has_closed) {
    auto ends = attached_stream();
    std::array<std::byte, 10> into{};
    reads all;
    for (int i = 0; i < 10; ++i) {
        all.push_back(std::make_unique<tracked_read>(reading(ends.reader, into)));
        all.back()->state.start();
    }
    run_briefly();
    ASSERT_TRUE(ends.writer.close().has_value());
    ASSERT_TRUE(run_until([&] { return done(all) == all.size(); }));
    for (auto& each : all)
        EXPECT_TRUE(succeeded(each->is, 0));
}

TEST_P(streams, return_the_bytes_sent_before_the_peer_closed_then_the_end) {
    auto ends = attached_stream();
    const auto sent = pattern(1000);
    send(ends.writer, sent);
    ASSERT_TRUE(ends.writer.close().has_value());
    std::vector<std::byte> got;
    std::array<std::byte, 64> into{};
    tracked_read read(reading(ends.reader, into));
    bool ended = false;
    read.is.on_value = [&] {
        got.insert(got.end(), into.begin(), into.begin() + static_cast<std::ptrdiff_t>(read.is.bytes));
        ended = read.is.bytes == 0;
    };
    read.is.on_done = [&] {
        if (not ended) read.state.start();
    };
    read.state.start();
    ASSERT_TRUE(run_until([&] { return ended; }));
    EXPECT_TRUE(std::ranges::equal(got, sent));
    EXPECT_EQ(read.is.code, 0);
}

TEST_P(streams, write_one_request_completely_although_the_reader_is_slow) {
    auto ends = attached_stream();
    const auto sent = pattern(1 << 20);
    tracked_write write(writing(ends.writer, sent));
    write.state.start();
    EXPECT_EQ(write.is.values, 0) << "it cannot have fitted into the buffers";
    const auto got =
        receive_until(ends.reader, [&] { return write.is.dones == 1; }, [&] { return sent.size(); });
    EXPECT_TRUE(succeeded(write.is, sent.size()));
    EXPECT_TRUE(std::ranges::equal(got, sent));
}

TEST_P(streams, end_the_writes_after_one_cancelled_half_way) {
    auto ends = attached_stream();
    const auto first = pattern(1 << 20);
    const std::vector<std::byte> second(1000, std::byte{0xAA});
    tracked_write half(writing(ends.writer, first));
    tracked_write follower(writing(ends.writer, second));
    tracked_write last(writing(ends.writer, second));
    half.state.start();
    follower.state.start();
    last.state.start();
    run_briefly();
    half.state.cancel();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    EXPECT_EQ(half.is.code, 0) << "the written bytes are reported rather than the cause";
    EXPECT_GT(half.is.bytes, 0U);
    EXPECT_LT(half.is.bytes, first.size());
    EXPECT_TRUE(failed(follower.is, ECANCELED));
    EXPECT_TRUE(failed(last.is, ECANCELED));
    const auto got = receive_until(ends.reader, [] { return true; }, [&] { return half.is.bytes; });
    ASSERT_EQ(got.size(), half.is.bytes) << "no bytes of the following writes may reach the stream";
    EXPECT_TRUE(std::equal(got.begin(), got.end(), first.begin()));
    // A new write, which the program starts after it was informed of the gap, is permitted.
    tracked_write aware(writing(ends.writer, second));
    aware.state.start();
    ASSERT_TRUE(run_until_done(aware.is));
    EXPECT_TRUE(succeeded(aware.is, second.size()));
}

TEST_P(streams, end_the_writes_after_one_whose_deadline_passes_half_way) {
    auto ends = attached_stream();
    const auto first = pattern(1 << 20);
    tracked_write half(writing(ends.writer, first, 0, 5ms));
    tracked_write follower(writing(ends.writer, text("follower"), 0, 10s));
    half.state.start();
    follower.state.start();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    EXPECT_EQ(half.is.code, 0);
    EXPECT_GT(half.is.bytes, 0U);
    EXPECT_LT(half.is.bytes, first.size());
    EXPECT_TRUE(failed(follower.is, ECANCELED));
    EXPECT_EQ(
        receive_until(ends.reader, [] { return true; }, [&] { return half.is.bytes; }).size(), half.is.bytes);
}

TEST_P(streams, continue_with_the_next_writes_if_the_cancelled_one_had_not_begun) {
    auto ends = attached_stream();
    const std::size_t filled = fill_up(ends.writer);
    tracked_write first(writing(ends.writer, text("first")));
    tracked_write second(writing(ends.writer, text("second")));
    first.state.start();
    second.state.start();
    run_briefly();
    if (first.is.dones == 0) first.state.cancel();
    const auto got = receive_until(
        ends.reader, [&] { return multiplexer().pending() == 0; },
        [&] { return filled + first.is.bytes + second.is.bytes; });
    EXPECT_TRUE(failed(first.is, ECANCELED) or succeeded(first.is, 5));
    EXPECT_TRUE(succeeded(second.is, 6));
    EXPECT_EQ(got.size(), filled + first.is.bytes + second.is.bytes);
}

TEST_P(streams, complete_requests_of_no_bytes_at_once_on_empty_and_full_streams) {
    auto ends = attached_stream();
    std::array<std::byte, 1> nothing{};
    const std::span<std::byte> none = std::span(nothing).first(0);
    fill_up(ends.writer);
    for (const auto how : {initiation::speculative, initiation::batched}) {
        tracked_write write(writing(ends.writer, none));
        write.state.start(how);
        EXPECT_TRUE(run_until_done(write.is));
        EXPECT_TRUE(succeeded(write.is, 0));
    }
    while (not drain(ends.reader).empty()) {}
    for (const auto how : {initiation::speculative, initiation::batched}) {
        tracked_read read(reading(ends.reader, none));
        read.state.start(how);
        EXPECT_TRUE(run_until_done(read.is));
        EXPECT_TRUE(succeeded(read.is, 0));
        if (read.is.dones == 0) read.state.cancel();
        ASSERT_TRUE(run_until_done(read.is));
    }
    tracked list(async_read(ends.reader, io_request<buffers_type>{}));
    list.state.start();
    EXPECT_TRUE(run_until_done(list.is));
    EXPECT_TRUE(succeeded(list.is, 0));
}

TEST_P(streams, keep_a_request_of_no_bytes_in_its_place) {
    auto ends = attached_stream();
    std::array<std::byte, 4> into{};
    tracked_read first(reading(ends.reader, into));
    tracked_read none(reading(ends.reader, {}));
    std::string order;
    first.is.on_value = [&] { order += 'f'; };
    none.is.on_value = [&] { order += 'n'; };
    first.state.start();
    none.state.start();
    run_briefly();
    send(ends.writer, text("four"));
    EXPECT_TRUE(run_until([&] { return none.is.dones == 1; }));
    EXPECT_EQ(order, "fn");
    none.state.cancel();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
}

TEST_P(streams, complete_a_request_of_no_bytes_although_the_next_one_has_to_wait) {
    auto ends = attached_stream();
    std::array<std::byte, 4> into{};
    tracked_read none(reading(ends.reader, {}));
    tracked_read behind(reading(ends.reader, into));
    none.state.start(initiation::batched);
    behind.state.start(initiation::batched);
    EXPECT_TRUE(run_until_done(none.is));
    EXPECT_TRUE(succeeded(none.is, 0));
    EXPECT_EQ(behind.is.values, 0);
}

// Returns the pieces of a list: data in every `stride`th piece, none in the others.
std::vector<buffer> cut(std::span<std::byte> bytes, std::size_t pieces, std::size_t stride) {
    std::vector<buffer> list(pieces);
    const std::size_t filled = (pieces + stride - 1) / stride;
    std::size_t at = 0;
    for (std::size_t i = 0, n = 0; i < pieces; i += stride, ++n) {
        const std::size_t end = bytes.size() * (n + 1) / filled;
        list[i] = buffer(bytes.subspan(at, end - at));
        at = end;
    }
    return list;
}

TEST_P(streams, gather_and_scatter_lists_of_any_length_with_empty_pieces_among_them) {
    struct shape {
        std::size_t pieces, stride;
    };
    for (const auto [pieces, stride] :
         {shape{1, 1}, {4, 2}, {64, 1}, {65, 1}, {200, 7}, {1024, 1}, {1025, 1}, {1500, 100}, {5000, 3}}) {
        auto ends = attached_stream();
        auto sent = pattern(40'000);
        auto outgoing = cut(sent, pieces, stride);
        std::vector<const_buffer> list(outgoing.begin(), outgoing.end());
        tracked write(async_write(ends.writer, io_request<const_buffers_type>{list}));
        std::vector<std::byte> got(sent.size());
        std::size_t total = 0;
        auto read = [&] {
            // Leading empty pieces too: the list is built again from the remaining bytes.
            auto incoming = cut(std::span(got).subspan(total), pieces, stride);
            if (stride > 1) std::ranges::rotate(incoming, incoming.end() - 1);
            tracked reader(async_read(ends.reader, io_request<buffers_type>{incoming}));
            reader.state.start(initiation::batched);
            EXPECT_TRUE(run_until_done(reader.is));
            EXPECT_EQ(reader.is.code, 0);
            EXPECT_GT(reader.is.bytes, 0U) << pieces << " pieces, every " << stride << " filled";
            total += reader.is.bytes;
            return reader.is.bytes != 0;
        };
        write.state.start();
        while (total < sent.size() and read()) {}
        ASSERT_TRUE(run_until_done(write.is));
        EXPECT_TRUE(succeeded(write.is, sent.size())) << pieces << " pieces, every " << stride << " filled";
        EXPECT_TRUE(got == sent);
    }
}

TEST_P(streams, skip_a_thousand_empty_pieces_before_the_first_byte) {
    auto ends = attached_stream();
    std::vector<const_buffer> list(1100);
    list.emplace_back(text("found"));
    tracked write(async_write(ends.writer, io_request<const_buffers_type>{list}));
    write.state.start();
    std::array<std::byte, 8> into{};
    std::vector<buffer> target(1100);
    target.emplace_back(std::span(into));
    tracked read(async_read(ends.reader, io_request<buffers_type>{target}));
    read.state.start();
    EXPECT_TRUE(run_until([&] { return write.is.dones == 1 and read.is.dones == 1; }));
    EXPECT_TRUE(succeeded(write.is, 5));
    EXPECT_EQ(read.is.code, 0);
    EXPECT_GT(read.is.bytes, 0U);
    EXPECT_EQ(std::memcmp(into.data(), "found", read.is.bytes), 0);
    read.state.cancel();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
}

TEST_P(streams, share_calls_among_requests_of_many_pieces_without_mixing_them_up) {
    auto ends = attached_stream();
    auto sent = pattern(30'000);
    std::vector<std::vector<const_buffer>> lists;
    std::vector<std::unique_ptr<tracked<transfer_sender<const_buffers_type>>>> all;
    std::size_t at = 0;
    for (std::size_t i = 0; at < sent.size(); ++i) {
        const std::size_t size = std::min(sent.size() - at, 1 + i * 97 % 1500);
        const auto pieces = cut(std::span(sent).subspan(at, size), 1 + i * 31 % 150, 1 + i % 4);
        lists.emplace_back(pieces.begin(), pieces.end());
        at += size;
    }
    for (auto& list : lists) {
        all.push_back(std::make_unique<tracked<transfer_sender<const_buffers_type>>>(
            async_write(ends.writer, io_request<const_buffers_type>{list})));
        all.back()->state.start(initiation::batched);
    }
    const auto got =
        receive_until(ends.reader, [&] { return done(all) == all.size(); }, [&] { return sent.size(); });
    EXPECT_EQ(done(all), all.size());
    EXPECT_TRUE(std::ranges::equal(got, sent));
}

TEST_P(streams, report_readiness_without_taking_a_byte) {
    auto ends = attached_stream();
    tracked readable(async_ready(ends.reader, direction::in));
    tracked writable(async_ready(ends.writer, direction::out));
    readable.state.start();
    writable.state.start();
    ASSERT_TRUE(run_until_done(writable.is));
    EXPECT_TRUE(succeeded(writable.is));
    run_briefly();
    EXPECT_EQ(readable.is.values, 0);
    send(ends.writer, text("x"));
    ASSERT_TRUE(run_until_done(readable.is));
    EXPECT_TRUE(succeeded(readable.is));
    EXPECT_EQ(drain(ends.reader).size(), 1U);
    fill_up(ends.writer);
    tracked blocked(async_ready(ends.writer, direction::out, 5ms));
    blocked.state.start();
    (void)run_until_done(blocked.is);
    if (kind() != medium::tcp_pair) EXPECT_TRUE(failed(blocked.is, ETIMEDOUT));
}

TEST_P(streams, have_nothing_for_a_barrier_to_wait_for) {
    auto ends = attached_stream();
    std::array<std::byte, 1> into{};
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    for (io_handle* end : {&ends.reader, &ends.writer}) {
        tracked barrier(async_barrier(*end));
        barrier.state.start();
        EXPECT_TRUE(run_until_done(barrier.is)) << "a barrier waits for a read";
        EXPECT_TRUE(succeeded(barrier.is));
        if (barrier.is.dones == 0) barrier.state.cancel();
        ASSERT_TRUE(run_until_done(barrier.is));
    }
    read.state.cancel();
    ASSERT_TRUE(run_until_done(read.is));
}

TEST_P(streams, read_and_write_at_once_on_one_handle) {
    if (kind() == medium::pipe) GTEST_SKIP() << "an end of a pipe has one direction";
    auto ends = attached_stream();
    std::array<std::byte, 8> here{}, there{};
    tracked_read read_here(reading(ends.reader, here));
    tracked_read read_there(reading(ends.writer, there));
    read_here.state.start();
    read_there.state.start();
    run_briefly();
    tracked_write write_here(writing(ends.reader, text("to")));
    tracked_write write_there(writing(ends.writer, text("fro")));
    write_here.state.start();
    write_there.state.start();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    EXPECT_TRUE(succeeded(write_here.is, 2));
    EXPECT_TRUE(succeeded(write_there.is, 3));
    EXPECT_EQ(std::memcmp(here.data(), "fro", read_here.is.bytes), 0);
    EXPECT_EQ(std::memcmp(there.data(), "to", read_there.is.bytes), 0);
}

TEST_P(streams, have_the_same_results_for_every_kind_of_initiation) {
    for (const auto how : {initiation::automatic, initiation::speculative, initiation::batched}) {
        auto ends = attached_stream();
        multiplexer().set_initiation(how);
        const auto sent = pattern(100'000);
        std::vector<std::byte> got;
        std::array<std::byte, 700> into{};
        tracked_write write(writing(ends.writer, sent));
        tracked_read read(reading(ends.reader, into));
        read.is.on_value = [&] {
            got.insert(got.end(), into.begin(), into.begin() + static_cast<std::ptrdiff_t>(read.is.bytes));
        };
        read.is.on_done = [&] {
            if (read.is.code == 0 and got.size() < sent.size()) read.state.start();
        };
        read.state.start();
        write.state.start();
        ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
        EXPECT_TRUE(succeeded(write.is, sent.size()));
        EXPECT_TRUE(got == sent);
    }
}

TEST_P(streams, keep_pending_operations_when_the_handle_moves) {
    auto ends = attached_stream();
    std::array<std::byte, 8> into{};
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    run_briefly();
    io_handle elsewhere(std::move(ends.reader));
    send(ends.writer, text("moved"));
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_EQ(std::memcmp(into.data(), "moved", read.is.bytes), 0);
    EXPECT_EQ(elsewhere.multiplexer(), &multiplexer());
}

TEST_P(streams, refuse_to_leave_the_multiplexer_while_operations_are_pending) {
    auto ends = attached_stream();
    std::array<std::byte, 8> into{};
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    EXPECT_EQ(ends.reader.set_multiplexer(nullptr).error(), std::errc::device_or_resource_busy);
    EXPECT_EQ(ends.reader.multiplexer(), &multiplexer()) << "it stays where it was";
    read.state.cancel();
    EXPECT_EQ(ends.reader.set_multiplexer(nullptr).error(), std::errc::device_or_resource_busy)
        << "the signals are still to come";
    read.is.on_done = [&] { EXPECT_TRUE(ends.reader.set_multiplexer(nullptr).has_value()); };
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_EQ(ends.reader.multiplexer(), nullptr);
}

TEST_P(streams, do_not_confuse_a_reused_descriptor) {
    std::array<std::byte, 8> into{};
    int number = -1;
    for (int i = 0; i < 20; ++i) {
        auto ends = attached_stream();
        if (number >= 0 and kind() != medium::tcp_pair) EXPECT_EQ(ends.reader.descriptor(), number);
        number = ends.reader.descriptor();
        tracked_read read(reading(ends.reader, into));
        read.state.start();
        run_briefly();
        if (i % 3 == 0) {
            read.state.cancel();
        } else {
            send(ends.writer, text("x"));
        }
        ASSERT_TRUE(run_until_done(read.is));
        if (i % 2 == 0) ASSERT_TRUE(ends.writer.close().has_value());
    }
}

TEST_P(streams, fail_operations_that_the_handle_does_not_allow) {
    if (kind() != medium::pipe) GTEST_SKIP() << "a socket has both directions";
    auto ends = attached_stream();
    std::array<std::byte, 8> into{};
    tracked_read read(reading(ends.writer, into));
    tracked_write write(writing(ends.reader, into));
    read.state.start();
    write.state.start();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    EXPECT_TRUE(failed(read.is, EBADF));
    EXPECT_TRUE(failed(write.is, EBADF));
}

TEST_P(streams, serve_two_handles_of_one_descriptor_or_report_why_not) {
    auto ends = attached_stream();
    io_handle twin(ends.reader.native());
    attach(twin);
    std::array<std::byte, 8> into{};
    for (int i = 0; i < 3; ++i) {
        tracked_read read(reading(ends.reader, into, 0, 1s));
        tracked_read read_twin(reading(twin, into, 0, 1s));
        read.state.start();
        read_twin.state.start();
        run_briefly();
        send(ends.writer, text("x"));
        run_briefly();
        if (multiplexer().pending() != 0) send(ends.writer, text("y"));
        const auto before = multiplexer().now();
        ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
        EXPECT_LT(multiplexer().now() - before, 500ms) << "round " << i << ": left waiting";
        EXPECT_EQ(read.is.code, 0);
        EXPECT_TRUE(read_twin.is.code == 0 or read_twin.is.code == EEXIST) << read_twin.is.code;
        (void)drain(ends.reader);
    }
    (void)twin.release();
}

}  // namespace
}  // namespace sluice::io::conformance

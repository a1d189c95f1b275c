#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>

#include "tests/conformance/harness.hpp"

// Transfers to and from files: at an offset, in any order, complete or up to the end.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class files : public on_every_file {
protected:
    void put(io_handle& file, std::span<const std::byte> what, extent_type at = 0) const {
        tracked_write write(writing(file, what, at));
        write.state.start();
        ASSERT_TRUE(run_until_done(write.is));
        ASSERT_TRUE(succeeded(write.is, what.size()));
    }
    std::vector<std::byte> get(io_handle& file, std::size_t size, extent_type at = 0) const {
        std::vector<std::byte> into(size);
        tracked_read read(reading(file, into, at));
        read.state.start();
        EXPECT_TRUE(run_until_done(read.is));
        EXPECT_TRUE(succeeded(read.is));
        into.resize(read.is.bytes);
        return into;
    }
    static std::size_t size_of(const io_handle& file) {
        struct stat status{};
        EXPECT_EQ(::fstat(file.descriptor(), &status), 0);
        return static_cast<std::size_t>(status.st_size);
    }
    bool run_all() const {
        return run_until([&] { return multiplexer().pending() == 0; });
    }
};
INSTANTIATE_TEST_SUITE_P(conformance, files, every_file(), name_of_file);

TEST_P(files, return_the_bytes_that_were_written) {
    auto file = attached_file();
    const auto sent = pattern(1 << 20);
    put(file, sent);
    EXPECT_TRUE(get(file, sent.size()) == sent);
    EXPECT_TRUE(get(file, 1000, 77'777) == pattern(1000, 77'777));
}

// If queued, the wait would reach the kernel as a barrier.
TEST_P(files, are_ready_at_once_for_every_kind_of_initiation) {
    auto file = attached_file();
    for (const auto how : {initiation::automatic, initiation::speculative, initiation::batched}) {
        for (const auto which : {direction::in, direction::out}) {
            tracked ready(async_ready(file, which));
            ready.state.start(how);
            EXPECT_FALSE(ready.state.started()) << "done within start()";
            EXPECT_TRUE(succeeded(ready.is));
        }
    }
}

TEST_P(files, fill_a_read_or_stop_at_the_end) {
    auto file = attached_file();
    put(file, pattern(10'000));
    EXPECT_EQ(get(file, 20'000).size(), 10'000U);
    EXPECT_EQ(get(file, 20'000, 9'999).size(), 1U);
    EXPECT_EQ(get(file, 100, 10'000).size(), 0U) << "at the end";
    EXPECT_EQ(get(file, 100, 1 << 30).size(), 0U) << "past the end";
}

TEST_P(files, read_zeros_from_unwritten_ranges) {
    auto file = attached_file();
    put(file, text("end"), 100'000);
    EXPECT_EQ(size_of(file), 100'003U);
    EXPECT_TRUE(get(file, 4096, 50'000) == std::vector<std::byte>(4096));
}

TEST_P(files, accept_many_requests_at_once_in_any_order) {
    auto file = attached_file();
    const auto content = pattern(64 * 4096);
    std::vector<std::unique_ptr<tracked_write>> writes;
    for (std::size_t i = 0; i < 64; ++i) {
        const std::size_t at = (i * 29 % 64) * 4096;
        writes.push_back(
            std::make_unique<tracked_write>(writing(file, std::span(content).subspan(at, 4096), at)));
        writes.back()->state.start(i % 2 == 0 ? initiation::batched : initiation::automatic);
    }
    ASSERT_TRUE(run_all());
    for (auto& each : writes)
        EXPECT_TRUE(succeeded(each->is, 4096));
    std::vector<std::byte> got(content.size());
    std::vector<std::unique_ptr<tracked_read>> reads;
    for (std::size_t i = 0; i < 64; ++i) {
        reads.push_back(
            std::make_unique<tracked_read>(reading(file, std::span(got).subspan(i * 4096, 4096), i * 4096)));
        reads.back()->state.start(i % 2 == 0 ? initiation::batched : initiation::automatic);
    }
    ASSERT_TRUE(run_all());
    for (auto& each : reads)
        EXPECT_TRUE(succeeded(each->is, 4096));
    EXPECT_TRUE(got == content);
}

TEST_P(files, gather_and_scatter_lists_longer_than_one_call_takes) {
    for (const std::size_t pieces : {2U, 65U, 1024U, 1025U, 3000U}) {
        auto file = attached_file();
        auto content = pattern(pieces * 11);
        std::vector<const_buffer> outgoing;
        std::vector<std::byte> got(content.size());
        std::vector<buffer> incoming;
        for (std::size_t i = 0; i < pieces; ++i) {
            outgoing.emplace_back(content.data() + i * 11, 11);
            incoming.emplace_back(std::span(got).subspan(i * 11, 11));
            if (i % 3 == 0) {
                outgoing.emplace_back();
                incoming.emplace_back();
            }
        }
        tracked write(async_write(file, io_request<const_buffers_type>{outgoing, 5}));
        write.state.start();
        ASSERT_TRUE(run_until_done(write.is));
        EXPECT_TRUE(succeeded(write.is, content.size()));
        tracked read(async_read(file, io_request<buffers_type>{incoming, 5}));
        read.state.start();
        ASSERT_TRUE(run_until_done(read.is));
        EXPECT_TRUE(succeeded(read.is, content.size()));
        EXPECT_TRUE(got == content);
    }
}

TEST_P(files, skip_a_thousand_empty_pieces_before_the_first_byte) {
    auto file = attached_file();
    std::vector<const_buffer> list(1100);
    list.emplace_back(text("found"));
    tracked write(async_write(file, io_request<const_buffers_type>{list, 0}));
    write.state.start();
    ASSERT_TRUE(run_until_done(write.is));
    EXPECT_TRUE(succeeded(write.is, 5));
    EXPECT_EQ(size_of(file), 5U);
    std::array<std::byte, 5> into{};
    std::vector<buffer> target(1100);
    target.emplace_back(std::span(into));
    tracked read(async_read(file, io_request<buffers_type>{target, 0}));
    read.state.start();
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(succeeded(read.is, 5));
}

TEST_P(files, complete_requests_of_no_bytes) {
    auto file = attached_file();
    for (const auto how : {initiation::speculative, initiation::batched}) {
        tracked_read read(reading(file, {}));
        tracked_write write(writing(file, {}, 1000));
        read.state.start(how);
        write.state.start(how);
        ASSERT_TRUE(run_all());
        EXPECT_TRUE(succeeded(read.is, 0));
        EXPECT_TRUE(succeeded(write.is, 0));
    }
    EXPECT_EQ(size_of(file), 0U) << "a write of no bytes does not extend a file";
}

TEST_P(files, append_if_opened_for_appending_whatever_the_offset) {
    auto file = attached_file(true);
    put(file, text("one"), 500);
    put(file, text("two"), 0);
    EXPECT_EQ(size_of(file), 6U);
    const auto got = get(file, 10);
    EXPECT_TRUE(std::ranges::equal(got, text("onetwo")));
}

// assume_in_memory(false) requires it: a page may have been swapped out.
TEST_P(files, are_not_awaited_by_a_start_that_may_not_assume_them_in_memory) {
    if (which().is_simulated) GTEST_SKIP() << "a simulation decides at random whether start() tries";
    io_handle file = open_file(where());
    ASSERT_TRUE(file.write(io_request<const_bytes_type>{pattern(4096), 0}).has_value());
    file.assume_in_memory(false);
    attach(file);
    std::array<std::byte, 4096> into{};
    const iovec piece{.iov_base = into.data(), .iov_len = into.size()};
    const bool can_ask = ::preadv2(file.descriptor(), &piece, 1, 0, RWF_NOWAIT) == 4096;
    tracked_read read(reading(file, into));
    read.state.start();
    EXPECT_EQ(read.is.dones, can_ask ? 1 : 0);
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(succeeded(read.is, 4096));
}

TEST_P(files, make_written_data_durable_with_every_kind_of_barrier) {
    auto file = attached_file();
    put(file, pattern(4096));
    for (const auto kind : {barrier_kind::nowait_data_only, barrier_kind::wait_data_only,
                            barrier_kind::nowait_all, barrier_kind::wait_all}) {
        tracked barrier(async_barrier(file, kind));
        barrier.state.start();
        ASSERT_TRUE(run_until_done(barrier.is));
        EXPECT_TRUE(succeeded(barrier.is));
    }
}

TEST_P(files, report_errors_of_the_kernel) {
    auto file = attached_file();
    std::array<std::byte, 8> some{};
    const auto too_far = static_cast<extent_type>(std::numeric_limits<std::int64_t>::max());
    tracked_write write(writing(file, some, too_far));
    write.state.start();
    ASSERT_TRUE(run_until_done(write.is));
    EXPECT_NE(write.is.code, 0);
    EXPECT_EQ(write.is.values, 1);
    EXPECT_EQ(write.is.bytes, 0U);
}

TEST_P(files, signal_once_in_a_race_of_cancel_and_completion) {
    auto file = attached_file();
    const auto content = pattern(1 << 20);
    put(file, content);
    std::vector<std::vector<std::byte>> into(20, std::vector<std::byte>(content.size()));
    std::vector<std::unique_ptr<tracked_read>> reads;
    for (std::size_t i = 0; i < into.size(); ++i) {
        reads.push_back(std::make_unique<tracked_read>(reading(file, into[i])));
        reads.back()->state.start(initiation::batched);
    }
    for (auto& each : reads)
        each->state.cancel();
    ASSERT_TRUE(run_all());
    for (std::size_t i = 0; i < reads.size(); ++i) {
        const signal_record& is = reads[i]->is;
        EXPECT_TRUE(succeeded(is) or failed(is, ECANCELED));
        if (is.code == 0)
            EXPECT_TRUE(std::equal(into[i].begin(), into[i].begin() + is.bytes, content.begin()));
    }
}

TEST_P(files, have_the_same_results_at_a_deadline_of_zero_for_every_kind_of_initiation) {
    for (const auto how : {initiation::automatic, initiation::speculative, initiation::batched}) {
        auto file = attached_file();
        const auto content = pattern(4096);
        tracked_write write(writing(file, content, 0, deadline::zero()));
        write.state.start(how);
        ASSERT_TRUE(run_until_done(write.is));
        EXPECT_TRUE(succeeded(write.is, 4096))
            << "memory accepts it at once; a file without non-blocking writes is written anyway";
        std::vector<std::byte> got(content.size());
        tracked_read read(reading(file, got, 0, deadline::zero()));
        read.state.start(how);
        ASSERT_TRUE(run_until_done(read.is));
        EXPECT_TRUE(succeeded(read.is, 4096)) << "the written data is still in memory";
        EXPECT_TRUE(got == content);
    }
}

TEST_P(files, signal_once_in_a_race_of_deadline_and_completion) {
    auto file = attached_file();
    put(file, pattern(1 << 20));
    std::vector<std::byte> into(1 << 20);
    for (const auto within : {1ns, 1000ns, 1'000'000ns}) {
        tracked_read read(reading(file, into, 0, deadline(within)));
        read.state.start(initiation::batched);
        ASSERT_TRUE(run_until_done(read.is));
        EXPECT_TRUE(succeeded(read.is) or failed(read.is, ETIMEDOUT));
    }
}

TEST_P(files, complete_a_read_restarted_repeatedly_from_done) {
    auto file = attached_file();
    put(file, pattern(4096));
    std::array<std::byte, 512> into{};
    const int times = rounds(10'000);
    tracked_read read(reading(file, into, 100));
    read.is.on_done = [&] {
        if (read.is.dones < times) read.state.start();
    };
    read.state.start();
    ASSERT_TRUE(run_until([&] { return read.is.dones == times; }));
    EXPECT_TRUE(read.is.in_order);
    EXPECT_EQ(read.is.bytes, 512U);
}

TEST_P(files, reject_transfers_without_an_offset) {
    auto file = attached_file();
    put(file, pattern(64));
    std::array<std::byte, 8> bytes{};
    for (const auto how : {initiation::automatic, initiation::speculative, initiation::batched}) {
        tracked_write write(async_write(file, io_request<const_bytes_type>{bytes}));
        tracked_read read(async_read(file, io_request<bytes_type>{bytes}));
        std::array<buffer, 2> list = {buffer(bytes), buffer(bytes)};
        tracked<transfer_sender<buffers_type>> both(async_read(file, io_request<buffers_type>{list}));
        write.state.start(how);
        read.state.start(how);
        both.state.start(how);
        ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
        EXPECT_TRUE(failed(write.is, EINVAL));
        EXPECT_TRUE(failed(read.is, EINVAL));
        EXPECT_TRUE(failed(both.is, EINVAL));
    }
    const auto read = file.read(io_request<bytes_type>{bytes});
    ASSERT_FALSE(read.has_value());
    EXPECT_NE(read.error().message().find("read, of a file, without an offset"), std::string::npos);
    const auto wrote = file.write(io_request<const_bytes_type>{bytes});
    ASSERT_FALSE(wrote.has_value());
    EXPECT_NE(wrote.error().message().find("write, to a file, without an offset"), std::string::npos);
    std::array<std::byte, 64> kept{};
    ASSERT_EQ(file.read(io_request<bytes_type>{kept, 0}).bytes_transferred(), 64U);
    EXPECT_TRUE(std::ranges::equal(kept, pattern(64)));
}

TEST_P(files, need_no_offset_if_they_are_opened_for_appending) {
    auto file = attached_file(true);
    const auto part = pattern(8);
    std::size_t length = 0;
    for (const auto how : {initiation::automatic, initiation::speculative, initiation::batched}) {
        tracked_write write(async_write(file, io_request<const_bytes_type>{part}));
        write.state.start(how);
        ASSERT_TRUE(run_until_done(write.is));
        EXPECT_TRUE(succeeded(write.is, part.size()));
        length += part.size();
    }
    EXPECT_EQ(file.write(io_request<const_bytes_type>{part}).bytes_transferred(), part.size());
    struct stat status{};
    ASSERT_EQ(::fstat(file.descriptor(), &status), 0);
    EXPECT_EQ(static_cast<std::size_t>(status.st_size), length + part.size());
}

TEST_P(files, complete_at_most_the_requested_number_together) {
    auto file = attached_file();
    put(file, pattern(4096));
    std::array<std::array<std::byte, 64>, 20> into{};
    std::deque<tracked_read> reads;
    for (auto& each : into)
        reads.emplace_back(reading(file, each, 64)).state.start(initiation::batched);
    const auto done = [&] {
        return std::ranges::count_if(reads, [](const auto& each) { return each.is.dones == 1; });
    };
    while (done() < 20) {
        const auto before = done();
        const int count = multiplexer().try_run_for(1s, 3).value();
        ASSERT_NE(count, 0) << "some are pending";
        EXPECT_LE(count, 3);
        EXPECT_EQ(done() - before, std::max(count, 0));
    }
    for (const auto& each : reads)
        EXPECT_TRUE(succeeded(each.is, 64));
}

TEST_P(files, complete_together_once_each_whatever_their_receivers_do) {
    auto file = attached_file();
    put(file, pattern(4096));
    auto unready = open_stream(medium::pipe);
    attach(unready.reader);
    std::array<std::byte, 64> into{};
    tracked_read waiting(reading(unready.reader, into));
    waiting.state.start();
    run_briefly();
    waiting.state.cancel();
    ASSERT_TRUE(run_until_done(waiting.is));
    std::deque<tracked_read> reads;
    int running = 0;
    for (int i = 0; i < 16; ++i) {
        auto& each = reads.emplace_back(reading(file, into, 64));
        each.is.on_value = [&] {
            EXPECT_EQ(++running, 1) << "receivers never nest";
            for (auto& other : reads)
                (void)other.state.poll();
            --running;
        };
        // The back end may still use the objects closed here.
        each.is.on_done = [&, i] {
            if (i == 0 and each.is.dones == 1) EXPECT_TRUE(unready.reader.close().has_value());
            if (each.is.dones == 1) each.state.start(initiation::batched);
        };
        each.state.start(initiation::batched);
    }
    ASSERT_TRUE(run_until(
        [&] { return std::ranges::all_of(reads, [](const auto& each) { return each.is.dones == 2; }); }));
    for (const auto& each : reads)
        EXPECT_TRUE(each.is.in_order and each.is.values == 2 and each.is.bytes == 64);
    EXPECT_EQ(multiplexer().pending(), 0U);
}

}  // namespace
}  // namespace sluice::io::conformance

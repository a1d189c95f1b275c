// Receiving into a file by copying: through memory of the caller, and without.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/stream/splice.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace test_kit;

file_handle empty_file() {
    return file_handle::temp_inode(path_handle::temporary_files().value()).value();
}

std::vector<std::byte> content_of(file_handle& file) {
    std::vector<std::byte> all(file.maximum_extent().value());
    EXPECT_EQ(file.read(io_request<bytes_type>{all, 0}).bytes_transferred(), all.size());
    return all;
}

// Writes all of it, in separate segments, and ends the stream.
std::jthread writing(io_handle& to, const std::vector<std::byte>& content) {
    return std::jthread([&to, &content] {
        const std::size_t half = content.size() / 2;
        for (const auto piece : {std::span(content).first(half), std::span(content).subspan(half)}) {
            EXPECT_EQ(to.write({.buffers = piece}, 20s).bytes_transferred(), piece.size());
            std::this_thread::sleep_for(5ms);
        }
        EXPECT_TRUE(to.close().has_value());
    });
}

TEST(receive_file, a_copy_passes_through_the_memory_given) {
    const signal_storm storm;
    const auto content = pattern(300'000);
    for (const auto& kind : stream_kinds()) {
        for (const std::size_t scratch_bytes : {1'000U, 100'000U, 1'000'000U}) {
            SCOPED_TRACE(kind.name + ", " + std::to_string(scratch_bytes));
            auto both = connect_streams(kind);
            auto file = empty_file();
            std::vector<std::byte> scratch(scratch_bytes);
            const auto writer = writing(both.client, content);
            EXPECT_EQ(receive_file_from(both.server, file, {.scratch = scratch}).value_or(0), content.size());
            EXPECT_EQ(content_of(file), content);
            EXPECT_FALSE(std::ranges::all_of(scratch, [](std::byte each) { return each == std::byte{}; }));
        }
    }
}

TEST(receive_file, no_more_than_requested_is_taken_from_the_stream) {
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind);
        auto file = empty_file();
        std::array<std::byte, 100> scratch{};
        ASSERT_TRUE(both.client.write({.buffers = text("file, and what follows")}).has_value());
        EXPECT_EQ(receive_file_from(both.server, file, {.length = 4, .scratch = scratch}).value_or(0), 4U);
        EXPECT_EQ(string_of(std::span<const std::byte>(content_of(file))), "file");
        std::array<std::byte, 100> into{};
        EXPECT_EQ(string_of(both.server.read(io_request<bytes_type>{into}).value()), ", and what follows");
    }
}

TEST(receive_file, a_deadline_passes_although_the_memory_is_not_full) {
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind);
        auto file = empty_file();
        std::array<std::byte, 1000> scratch{};
        const receive_file_request request{.length = 1000, .scratch = scratch};
        EXPECT_EQ(receive_file_from(both.server, file, request, 20ms).error(), std::errc::timed_out);
        EXPECT_EQ(try_receive_file_from(both.server, file, request).error(), std::errc::timed_out);
        ASSERT_TRUE(both.client.write({.buffers = text("some")}).has_value());
        EXPECT_EQ(receive_file_from(both.server, file, request, 20ms).value_or(0), 4U);
        EXPECT_EQ(string_of(std::span<const std::byte>(content_of(file))), "some");
    }
}

TEST(receive_file, a_socket_whose_bytes_are_copied_stays_blocking) {
    auto both = socket_handle::pair().value();
    auto file = empty_file();
    ASSERT_TRUE(both.first.write({.buffers = text("x")}).has_value());
    ASSERT_EQ(receive_file_from(both.second, file, {.length = 1}).value_or(0), 1U);
    EXPECT_EQ(::fcntl(both.second.descriptor(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(receive_file, waits_even_for_a_non_blocking_socket) {
    const auto content = pattern(50'000);
    auto both = socket_handle::pair().value();
    ASSERT_EQ(::fcntl(both.second.descriptor(), F_SETFL, O_NONBLOCK), 0);
    auto file = empty_file();
    std::vector<std::byte> scratch(100'000);
    const auto writer = writing(both.first, content);
    EXPECT_EQ(receive_file_from(both.second, file, {.scratch = scratch}).value_or(0), content.size());
    EXPECT_EQ(content_of(file), content);
}

TEST(receive_file, an_append_only_file_is_copied_to_through_the_memory_given) {
    const auto content = pattern(50'000);
    auto both = socket_handle::pair().value();
    auto file = file_handle::temp_file(path_handle::temporary_files().value(), caching::all).value();
    auto appending = file_handle::open({}, file.current_path().value(), mode::append).value();
    auto through = splice_pipe::create().value();
    std::vector<std::byte> scratch(10'000);
    const auto writer = writing(both.first, content);
    const receive_file_request request{.scratch = scratch};
    EXPECT_EQ(receive_file_from(both.second, appending, request, through).value_or(0), content.size());
    EXPECT_EQ(content_of(file), content);
    EXPECT_NE(scratch.front(), std::byte{});
}

TEST(send_file, without_a_deadline_waits_in_the_call_itself) {
    const auto content = pattern(400'000);
    auto file = empty_file();
    ASSERT_EQ(file.write({.buffers = content, .offset = 0}).bytes_transferred(), content.size());
    auto through = splice_pipe::create().value();
    for (const auto& kind : stream_kinds()) {
        for (const bool by_pipe : {false, true}) {
            SCOPED_TRACE(kind.name + (by_pipe ? " by way of a pipe" : ""));
            auto both = connect_streams(kind, {.send_buffer_bytes = 1, .receive_buffer_bytes = 1});
            auto received = empty_file();
            const std::jthread reader([&] {
                std::this_thread::sleep_for(5ms);
                EXPECT_EQ(receive_file_from(both.server, received, {.length = content.size()}).value_or(0),
                          content.size());
            });
            EXPECT_EQ(
                (by_pipe ? send_file_to(file, both.client, {}, through) : send_file_to(file, both.client, {}))
                    .value_or(0),
                content.size());
            EXPECT_EQ(::fcntl(both.client.descriptor(), F_GETFL) & O_NONBLOCK, 0);
        }
    }
}

class receive_file_test : public with_multiplexer {};

task<std::uint64_t> receive(socket_handle& from, file_handle& file, const receive_file_request& request) {
    co_return (co_await co_receive_file(from, file, request)).value_or(0);
}

TEST_P(receive_file_test, the_multiplexer_writes_received_bytes_before_the_memory_is_full) {
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind);
        auto file = empty_file();
        ASSERT_TRUE(both.server.set_multiplexer(multiplexer.get()).has_value());
        std::vector<std::byte> scratch(1'000'000);
        const receive_file_request request{.scratch = scratch};
        recorded receiving(async_receive_file(both.server, file, request));
        receiving.start();
        ASSERT_TRUE(both.client.write({.buffers = text("some")}).has_value());
        EXPECT_TRUE(run_until([&] { return file.maximum_extent().value() == 4; }));
        ASSERT_TRUE(both.client.write({.buffers = text(" more")}).has_value());
        ASSERT_TRUE(both.client.close().has_value());
        EXPECT_TRUE(run_until([&] { return receiving.done(); }));
        EXPECT_EQ(string_of(std::span<const std::byte>(content_of(file))), "some more");
    }
}

TEST_P(receive_file_test, a_coroutine_receives_a_long_stream_through_little_memory) {
    const auto content = pattern(300'000);
    auto both = socket_handle::pair().value();
    auto file = empty_file();
    ASSERT_TRUE(both.second.set_multiplexer(multiplexer.get()).has_value());
    std::vector<std::byte> scratch(1'000);
    const receive_file_request request{.scratch = scratch};
    const auto writer = writing(both.first, content);
    EXPECT_EQ(sync_wait(*multiplexer, receive(both.second, file, request)), content.size());
    EXPECT_EQ(content_of(file), content);
}

INSTANTIATE_TEST_SUITE_P(over, receive_file_test, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io

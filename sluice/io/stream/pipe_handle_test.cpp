#include "sluice/io/stream/pipe_handle.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "sluice/io/sender/sender.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> text(std::string_view s) {
    return std::as_bytes(std::span(s));
}

TEST(pipe_handle, bytes_written_at_one_end_are_read_at_the_other) {
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_EQ(pipe.writer.write({.buffers = text("hello")}).bytes_transferred(), 5U);
    std::array<std::byte, 16> into{};
    const auto got = pipe.reader.read(io_request<bytes_type>{into});
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(std::memcmp(got->data(), "hello", 5), 0);
    EXPECT_EQ(got.bytes_transferred(), 5U);
}

TEST(pipe_handle, a_read_of_an_empty_pipe_times_out) {
    auto pipe = pipe_handle::anonymous().value();
    std::array<std::byte, 16> into{};
    EXPECT_EQ(pipe.reader.try_read(io_request<bytes_type>{into}).error(), std::errc::timed_out);
    EXPECT_EQ(pipe.reader.try_read_for(io_request<bytes_type>{into}, 5ms).error(), std::errc::timed_out);
}

struct recorder {
    int* values;
    int* dones;
    io_result<bytes_type>* last;
    void set_value(io_result<bytes_type>&& outcome) noexcept {
        ++*values;
        *last = std::move(outcome);
    }
    void set_done() noexcept { ++*dones; }
};

TEST(pipe_handle, a_sender_signals_value_and_done_once_each) {
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.reader.set_multiplexer().has_value());
    std::array<std::byte, 16> into{};
    int values = 0, dones = 0;
    io_result<bytes_type> last = bytes_type{};
    auto state =
        connect(async_read(pipe.reader, io_request<bytes_type>{into}), recorder{&values, &dones, &last});
    state.start();
    EXPECT_FALSE(state.poll());
    auto& multiplexer = *pipe.reader.multiplexer();
    EXPECT_EQ(multiplexer.complete_io(), io_multiplexer::nothing_ready);
    ASSERT_TRUE(pipe.writer.write({.buffers = text("hi")}).has_value());
    EXPECT_EQ(multiplexer.run(), 1);
    EXPECT_EQ(values, 1);
    EXPECT_EQ(dones, 1);
    EXPECT_EQ(last.bytes_transferred(), 2U);
    EXPECT_EQ(multiplexer.run(), io_multiplexer::nothing_pending);
    state.start();
    state.cancel();
    multiplexer.run();
    EXPECT_EQ(dones, 2);
    EXPECT_EQ(last.error(), std::errc::operation_canceled);
}

}  // namespace
}  // namespace sluice::io

#include "sluice/smb/server/net/frame_stream.hpp"

#include <algorithm>
#include <random>

#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::smb::server {
namespace {

using io::test_kit::pattern;

constexpr std::size_t frame_bytes_max = 1U << 20;

// A frame as it goes over the wire.
void append_frame(std::vector<std::byte>& stream, std::span<const std::byte> content) {
    const std::size_t length = content.size();
    for (const std::size_t each : {std::size_t{0}, length >> 16, length >> 8 & 0xff, length & 0xff})
        stream.push_back(static_cast<std::byte>(each));
    stream.insert(stream.end(), content.begin(), content.end());
}

class frame_reading : public io::test_kit::with_multiplexer {
protected:
    void SetUp() override {
        with_multiplexer::SetUp();
        if (IsSkipped()) return;
        ends_ = io::test_kit::connect_streams({"unix", {}});
        ends_.server.set_multiplexer(multiplexer.get()).value();
        ends_.client.set_multiplexer(multiplexer.get()).value();
    }
    void send(std::span<const std::byte> bytes) {
        ASSERT_EQ(ends_.client.write(io::io_request<io::const_bytes_type>{bytes}).bytes_transferred(),
                  bytes.size());
    }

    buffer_pool buffers_;
    io::test_kit::connection ends_;
};

io::task<void> send_in_cuts(io::socket_handle& to, std::span<const std::byte> stream, std::uint32_t seed) {
    std::mt19937 random(seed);
    while (not stream.empty()) {
        const std::size_t most = random() % 4 == 0 ? 50'000 : 300;
        const std::span<const std::byte> part =
            stream.first(std::min<std::size_t>(1 + random() % most, stream.size()));
        const io::io_request<io::const_bytes_type> wanted{.buffers = part};
        const auto sent = co_await io::co_write(to, wanted);
        ENSURE(sent.bytes_transferred() == part.size());
        stream = stream.subspan(part.size());
    }
}

io::task<void> receive_frames(frame_reader& reader, std::vector<std::vector<std::byte>>& into,
                              std::size_t count) {
    while (into.size() != count) {
        const result<pool_buffer> frame = co_await reader.next(frame_bytes_max);
        ENSURE(frame and *frame);
        into.emplace_back(frame->bytes().begin(), frame->bytes().end());
    }
}

TEST_P(frame_reading, gives_the_frames_that_were_sent_however_the_stream_is_cut) {
    for (std::uint32_t seed = 1; seed != 6; ++seed) {
        std::mt19937 random(seed);
        std::vector<std::vector<std::byte>> sent;
        std::vector<std::byte> stream;
        for (int i = 0; i != 200; ++i) {
            constexpr std::array<std::size_t, 5> sizes_max{1, 120, 120, 3000, 80'000};
            sent.push_back(pattern(random() % sizes_max[random() % sizes_max.size()], seed + i));
            append_frame(stream, sent.back());
        }
        frame_reader reader(ends_.server, buffers_);
        std::vector<std::vector<std::byte>> received;
        io::task_group both(*multiplexer);
        both.spawn(send_in_cuts(ends_.client, stream, seed));
        both.spawn(receive_frames(reader, received, sent.size()));
        ASSERT_TRUE(run_until([&] { return received.size() == sent.size(); }));
        io::sync_wait(*multiplexer,
                      [](io::task_group& group) -> io::task<void> { co_await group.join(); }(both));
        EXPECT_EQ(received, sent) << "seed " << seed;
    }
}

TEST_P(frame_reading, takes_a_buffer_of_the_pool_while_many_frames_come_and_none_at_rest) {
    constexpr int sends = 60;
    std::vector<std::byte> stream;
    for (int i = 0; i != sends; ++i)
        append_frame(stream, pattern(100));
    send(stream);
    frame_reader reader(ends_.server, buffers_);
    std::size_t most = 0;
    for (int i = 0; i != sends; ++i) {
        const result<pool_buffer> frame = io::sync_wait(*multiplexer, reader.next(frame_bytes_max));
        ASSERT_TRUE(frame and *frame);
        most = std::max(most, buffers_.taken());
    }
    EXPECT_EQ(most, 2U) << "the frame, and what many are staged in";

    stream.clear();
    append_frame(stream, pattern(100));
    send(stream);
    std::vector<std::vector<std::byte>> received;
    io::task_group waiting(*multiplexer);
    waiting.spawn(receive_frames(reader, received, 2));
    ASSERT_TRUE(run_until([&] { return received.size() == 1; }));
    EXPECT_EQ(buffers_.taken(), 0U);
    send(stream);
    ASSERT_TRUE(run_until([&] { return received.size() == 2; }));
    io::sync_wait(*multiplexer,
                  [](io::task_group& group) -> io::task<void> { co_await group.join(); }(waiting));
}

INSTANTIATE_TEST_SUITE_P(over, frame_reading, ::testing::ValuesIn(io::test_kit::multiplexer_kinds()),
                         io::test_kit::kind_name);

}  // namespace
}  // namespace sluice::smb::server

#include <netinet/in.h>
#include <csignal>

#include <thread>

#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/uring/uring_testing.hpp"

namespace sluice::io {
namespace {

using namespace uring_test;
using namespace std::chrono_literals;

// Reads that go to the ring together.
std::vector<std::unique_ptr<one_read>> start_reads(io_handle& from, int count, std::size_t bytes) {
    std::vector<std::unique_ptr<one_read>> reads;
    for (int i = 0; i < count; ++i) {
        reads.push_back(std::make_unique<one_read>(from, bytes));
        reads.back()->state.start(initiation::batched);
    }
    return reads;
}

TEST(uring_streams, a_read_that_had_to_wait_gets_bytes_written_later) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    one_read read(pair.ours, 64);
    read.state.start();
    EXPECT_EQ(multiplexer->complete_io(), io_multiplexer::nothing_ready);
    pair.say("hello");
    EXPECT_EQ(multiplexer->run(), 1);
    EXPECT_EQ(read.text(), "hello");
    EXPECT_EQ(read.result.dones, 1);
    EXPECT_EQ(multiplexer->run(), io_multiplexer::nothing_pending);
}

TEST(uring_streams, queued_reads_are_filled_in_the_order_they_were_started) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    const auto reads = start_reads(pair.ours, 5, 4);
    drain(*multiplexer);
    pair.say("0123456789");
    drain(*multiplexer);
    EXPECT_EQ(reads[0]->text(), "0123");
    EXPECT_EQ(reads[1]->text(), "4567");
    EXPECT_EQ(reads[2]->text(), "89");
    EXPECT_EQ(reads[3]->result.values, 0);
    pair.say("ab");
    drain(*multiplexer);
    EXPECT_EQ(reads[3]->text(), "ab");
    ::shutdown(pair.theirs, SHUT_RDWR);
    drain(*multiplexer);
    EXPECT_EQ(reads[4]->result.dones, 1);
    EXPECT_EQ(reads[4]->text(), "");
}

TEST(uring_streams, cancelling_one_of_several_reads_in_flight_loses_no_bytes) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    const auto reads = start_reads(pair.ours, 4, 4);
    drain(*multiplexer);
    reads[1]->state.cancel();
    drain(*multiplexer);
    EXPECT_EQ(reads[1]->result.code, ECANCELED);
    EXPECT_EQ(reads[1]->result.dones, 1);
    EXPECT_EQ(reads[0]->result.values, 0);
    pair.say("0123456789ab");
    drain(*multiplexer);
    EXPECT_EQ(reads[0]->text() + reads[2]->text() + reads[3]->text(), "0123456789ab");
}

TEST(uring_streams, bytes_that_arrive_with_a_cancellation_are_kept) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    const auto reads = start_reads(pair.ours, 3, 4);
    drain(*multiplexer);
    pair.say("0123");
    reads[0]->state.cancel();
    reads[2]->state.cancel();
    drain(*multiplexer);
    pair.say("4567");
    drain(*multiplexer);
    std::string all;
    for (const auto& read : reads) {
        EXPECT_EQ(read->result.dones, 1);
        all += read->text();
    }
    std::array<std::byte, 16>
        rest{};  // whichever was first, bytes that no read returned are still in the socket
    const auto got = pair.ours.try_read(io_request<bytes_type>{rest});
    all.append(reinterpret_cast<const char*>(rest.data()), got.bytes_transferred());
    EXPECT_EQ(all, "01234567");
}

TEST(uring_streams, a_thousand_reads_of_one_socket_need_no_entries_in_the_ring) {
    const auto multiplexer = make({.submission_entries = 4, .completion_entries = 8});
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    const auto reads = start_reads(pair.ours, 1000, 4);
    drain(*multiplexer);
    std::string said;
    for (int i = 0; i < 1000; ++i)
        said += std::to_string(1000 + i);
    pair.say(said);
    drain(*multiplexer);
    std::string heard;
    for (const auto& read : reads)
        heard += read->text();
    EXPECT_EQ(heard, said);
}

TEST(uring_streams, more_sockets_wait_than_either_queue_has_entries) {
    const auto multiplexer = make({.submission_entries = 4, .completion_entries = 8});
    std::vector<socket_pair> pairs(100);
    std::vector<std::unique_ptr<one_read>> reads;
    for (auto& pair : pairs) {
        ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
        reads.push_back(std::make_unique<one_read>(pair.ours, 8));
        reads.back()->state.start();
    }
    drain(*multiplexer);
    for (std::size_t round = 0; round < 3; ++round) {
        for (auto& pair : pairs)
            pair.say("x");  // all complete before anything is reaped
        drain(*multiplexer);
        for (auto& read : reads) {
            ASSERT_EQ(read->result.dones, static_cast<int>(round) + 1);
            ASSERT_EQ(read->text(), "x");
            read->state.start(initiation::batched);
        }
        drain(*multiplexer);
    }
    for (auto& read : reads)
        read->state.cancel();
    drain(*multiplexer);
    EXPECT_EQ(multiplexer->pending(), 0U);
}

TEST(uring_streams, a_write_continues_until_complete_and_others_follow_it) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    one_write first(pair.ours, std::string(1 << 20, 'a'));
    one_write second(pair.ours, std::string(1000, 'b'));
    one_write third(pair.ours, std::string(500, 'c'));
    first.state.start();
    second.state.start();
    third.state.start(initiation::batched);
    std::string heard;
    while (multiplexer->pending() != 0) {
        (void)multiplexer->try_run_for(1ms);
        heard += pair.hear();
    }
    for (std::string more = pair.hear(); not more.empty(); more = pair.hear())
        heard += more;
    EXPECT_EQ(heard, first.memory + second.memory + third.memory);
    EXPECT_EQ(first.result.bytes, first.memory.size());
    EXPECT_EQ(third.result.bytes, 500U);
}

TEST(uring_streams, a_partly_sent_write_that_is_cancelled_ends_later_writes) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    one_write first(pair.ours, std::string(1 << 22, 'a'));
    one_write second(pair.ours, "b");
    first.state.start(initiation::batched);
    second.state.start(initiation::batched);
    drain(*multiplexer);
    first.state.cancel();
    drain(*multiplexer);
    EXPECT_EQ(first.result.code, 0);
    EXPECT_GT(first.result.bytes, 0U);
    EXPECT_LT(first.result.bytes, first.memory.size());
    EXPECT_EQ(second.result.code, ECANCELED);
    EXPECT_EQ(pair.hear(1 << 22), std::string(first.result.bytes, 'a'));
    EXPECT_EQ(multiplexer->pending(), 0U);
}

TEST(uring_streams, a_deadline_ends_an_operation_that_waits_in_the_kernel) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    one_read read(pair.ours, 8, 0, 10ms);
    one_read patient(pair.ours, 8);
    read.state.start();
    patient.state.start();
    while (read.result.dones == 0)
        ASSERT_GT(multiplexer->run().value_or(0), 0);
    EXPECT_EQ(read.result.code, ETIMEDOUT);
    pair.say("later");
    EXPECT_EQ(multiplexer->run(), 1);
    EXPECT_EQ(patient.text(), "later");
}

TEST(uring_streams, a_scattered_read_longer_than_a_row_of_pieces_is_filled) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    std::string memory(300, '.');
    std::vector<buffer> pieces;
    for (auto& byte : memory)
        pieces.emplace_back(reinterpret_cast<std::byte*>(&byte), 1U);
    outcome result;
    auto state =
        connect(async_read(pair.ours, io_request<buffers_type>{std::span(pieces)}), recorder{&result});
    state.start();
    drain(*multiplexer);
    const std::string said(280, 'x');
    pair.say(said);
    drain(*multiplexer);
    EXPECT_EQ(result.bytes, 280U);
    EXPECT_EQ(memory, said + std::string(20, '.'));
}

TEST(uring_streams, datagrams_keep_their_boundaries) {
    const auto multiplexer = make();
    socket_pair pair(SOCK_DGRAM);
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    const auto reads = start_reads(pair.ours, 3, 16);
    drain(*multiplexer);
    pair.say("one");
    pair.say("");
    pair.say("three");
    drain(*multiplexer);
    EXPECT_EQ(reads[0]->text(), "one");
    EXPECT_EQ(reads[1]->text(), "");
    EXPECT_EQ(reads[2]->text(), "three");
    one_write first(pair.ours, "yes");
    one_write second(pair.ours, "no");
    first.state.start(initiation::batched);
    second.state.start(initiation::batched);
    drain(*multiplexer);
    EXPECT_EQ(pair.hear(), "yes");
    EXPECT_EQ(pair.hear(), "no");
}

TEST(uring_streams, a_socket_that_is_internally_non_blocking_is_polled) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_EQ(::fcntl(pair.ours.descriptor(), F_SETFL, O_RDWR | O_NONBLOCK), 0);
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    const auto reads = start_reads(pair.ours, 2, 4);
    drain(*multiplexer);
    pair.say("01234");
    drain(*multiplexer);
    EXPECT_EQ(reads[0]->text() + reads[1]->text(), "01234");
}

TEST(uring_streams, a_write_to_a_closed_peer_fails_without_a_signal) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    ::close(std::exchange(pair.theirs, -1));
    one_write write(pair.ours, "x");
    write.state.start(initiation::batched);
    drain(*multiplexer);
    EXPECT_EQ(write.result.code, EPIPE);
}

TEST(uring_streams, pipes_wait_by_polling_and_are_released_when_detached) {
    const auto multiplexer = make();
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.reader.set_multiplexer(multiplexer.get()).has_value());
    one_read read(pipe.reader, 8);
    read.state.start();
    drain(*multiplexer);
    ASSERT_TRUE(pipe.writer.write({.buffers = text("hi")}).has_value());
    drain(*multiplexer);
    EXPECT_EQ(read.text(), "hi");
    read.state.start();
    drain(*multiplexer);
    read.state.cancel();
    drain(*multiplexer);
    EXPECT_EQ(read.result.code, ECANCELED);
    ASSERT_TRUE(pipe.reader.close().has_value());  // with a poll in flight
    ::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe.writer.write({.buffers = text("hi")}).error(), std::errc::broken_pipe);
}

TEST(uring_streams, a_table_slot_releases_one_file_before_it_takes_another) {
    const auto multiplexer = make();
    socket_pair waiting;  // its read is in flight all the time
    ASSERT_TRUE(waiting.ours.set_multiplexer(multiplexer.get()).has_value());
    one_read pending(waiting.ours, 8);
    pending.state.start();
    for (int incarnation = 0; incarnation < 3; ++incarnation) {
        socket_pair pair;
        ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
        one_read read(pair.ours, 8);
        for (int i = 0; i < 10; ++i) {  // often enough to be put into the table
            read.state.start(initiation::batched);
            drain(*multiplexer);
            pair.say(std::to_string(i));
            drain(*multiplexer);
            ASSERT_EQ(read.text(), std::to_string(i));
        }
        ASSERT_TRUE(pair.ours.close().has_value());
        char byte = 0;
        EXPECT_EQ(::recv(pair.theirs, &byte, 1, MSG_DONTWAIT), 0) << "the table keeps the socket open";
    }
    pending.state.cancel();
    drain(*multiplexer);
}

// The poll of the closed handle is still with the kernel, which accepts requests of the first
// thread only.
TEST(uring_streams, a_handle_that_reuses_the_slot_of_one_closed_by_another_thread_is_waited_for) {
    const auto multiplexer = make();
    auto closed = pipe_handle::anonymous().value();
    auto next = pipe_handle::anonymous().value();
    ASSERT_TRUE(closed.reader.set_multiplexer(multiplexer.get()).has_value());
    one_read cancelled(closed.reader, 1);
    cancelled.state.start();
    drain(*multiplexer);  // the ring polls the pipe
    cancelled.state.cancel();
    drain(*multiplexer);
    ASSERT_EQ(cancelled.result.dones, 1);
    std::jthread([&] {
        EXPECT_TRUE(closed.reader.close().has_value());
        EXPECT_TRUE(next.reader.set_multiplexer(multiplexer.get()).has_value());
    }).join();
    one_read read(next.reader, 4);
    read.state.start();
    drain(*multiplexer);
    EXPECT_EQ(read.result.dones, 0);
    ASSERT_TRUE(next.writer.write(io_request<const_bytes_type>{text("here")}).has_value());
    for (int passes = 0; read.result.dones == 0 and passes < 100; ++passes)
        (void)multiplexer->try_run_for(20ms);
    EXPECT_EQ(read.text(), "here");
}

TEST(uring_streams, a_connection_is_accepted_and_established_by_waiting_for_readiness) {
    const auto multiplexer = make();
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    sockaddr_in any{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t length = sizeof any;
    ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&any), length), 0);
    ASSERT_EQ(::listen(listener, 4), 0);
    ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&any), &length), 0);
    io_handle accepting(
        native_handle{.descriptor = listener, .kind = handle_kind::socket, .nonblocking = true});
    ASSERT_TRUE(accepting.set_multiplexer(multiplexer.get()).has_value());
    outcome ready;
    auto state = connect(async_ready(accepting, direction::in), recorder{&ready});
    state.start();
    drain(*multiplexer);
    EXPECT_EQ(ready.values, 0);
    const int caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(caller, reinterpret_cast<sockaddr*>(&any), length), 0);
    drain(*multiplexer);
    EXPECT_EQ(ready.dones, 1);
    ::close(caller);
}

}  // namespace
}  // namespace sluice::io

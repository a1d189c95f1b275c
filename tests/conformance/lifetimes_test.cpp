#include <array>
#include <memory>
#include <thread>

#include "sluice/io/best_available.hpp"
#include "tests/conformance/harness.hpp"

// Invalid uses of operations, handles and multiplexers end the program, in release builds too.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class lifetimes : public on_every_back_end {
protected:
    lifetimes() : pipe(open_stream(medium::pipe)) {
        // A worker thread may hold a lock at the moment of a plain fork.
        GTEST_FLAG_SET(death_test_style, which().name.contains("worker") ? "threadsafe" : "fast");
        attach(pipe.reader);
        attach(pipe.writer);
    }

    using plain_read = io_operation_connection<transfer_sender<bytes_type>, recording_receiver>;
    [[nodiscard]] std::unique_ptr<plain_read> make_read() {
        return std::make_unique<plain_read>(reading(pipe.reader, into), recording_receiver{&is});
    }

    stream_ends pipe;
    std::array<std::byte, 8> into{};
    signal_record is;
};
INSTANTIATE_TEST_SUITE_P(conformance, lifetimes, every_back_end(), name_of_back_end);

TEST_P(lifetimes, end_for_a_started_operation_only_after_done) {
    EXPECT_DEATH(
        {
            auto read = make_read();
            read->start();
            read.reset();
        },
        "destroyed while its operation is pending");
}

TEST_P(lifetimes, end_for_no_operation_between_value_and_done) {
    EXPECT_DEATH(
        {
            auto read = make_read();
            is.on_value = [&] { read.reset(); };
            (void)pipe.writer.write(io_request<const_bytes_type>{text("x")});
            read->start();
            (void)run_until_done(is);
        },
        "destroyed between its value and its done signal");
}

TEST_P(lifetimes, forbid_to_move_a_started_operation) {
    EXPECT_DEATH(
        {
            auto read = make_read();
            read->start();
            const plain_read moved(std::move(*read));
        },
        "moved while the operation is pending");
}

TEST_P(lifetimes, allow_one_start_of_an_operation_at_a_time) {
    EXPECT_DEATH(
        {
            auto read = make_read();
            read->start();
            read->start();
        },
        "started while pending");
}

TEST_P(lifetimes, end_for_no_handle_while_an_operation_is_pending) {
    auto read = make_read();
    read->start();
    EXPECT_DEATH((void)pipe.reader.close(), "closed while I/O is pending");
    EXPECT_DEATH((void)pipe.reader.release(), "closed while I/O is pending");
    EXPECT_DEATH(pipe.reader = io_handle(), "closed while I/O is pending");
    read->cancel();
    ASSERT_TRUE(run_until_done(is));
}

TEST_P(lifetimes, end_for_no_multiplexer_while_an_operation_is_pending) {
    EXPECT_DEATH(
        {
            auto own = which().make(1).value();
            tracked sleep(async_sleep(*own, 1h));
            sleep.state.start();
            own.reset();
        },
        "destroyed while operations are pending");
}

TEST_P(lifetimes, end_for_no_multiplexer_while_a_handle_is_attached) {
    EXPECT_DEATH(
        {
            auto own = which().make(1).value();
            auto ends = open_stream(medium::pipe);
            (void)ends.reader.set_multiplexer(own.get());
            own.reset();
        },
        "destroyed while handles are attached");
}

TEST_P(lifetimes, bind_a_multiplexer_to_one_thread) {
    if (multiplexer().is_for_threads()) GTEST_SKIP() << "any thread may";
    (void)multiplexer().complete_io();
    EXPECT_DEATH(std::thread([&] { (void)multiplexer().complete_io(); }).join(), "belongs to one thread");
    auto read = make_read();
    EXPECT_DEATH(std::thread([&] { read->start(); }).join(), "belongs to one thread");
}

TEST_P(lifetimes, allow_no_receiver_to_nest_loops) {
    (void)pipe.writer.write(io_request<const_bytes_type>{text("x")});
    auto read = make_read();
    is.on_value = [&] { (void)multiplexer().complete_io(); };
    EXPECT_DEATH(
        {
            read->start();
            (void)run_until_done(is);
        },
        "must not be called from a receiver");
}

// P2052R0 4.3.3.
TEST_P(lifetimes, include_an_attachment_from_the_first_asynchronous_operation) {
    this_thread::set_multiplexer(&multiplexer());
    auto ends = open_stream(medium::pipe);
    EXPECT_EQ(ends.reader.multiplexer(), nullptr);
    tracked_read read(reading(ends.reader, into));
    EXPECT_EQ(ends.reader.multiplexer(), &multiplexer());
    read.state.start();
    (void)ends.writer.write(io_request<const_bytes_type>{text("x")});
    EXPECT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(has_read(read.is, 1));
    this_thread::set_multiplexer(nullptr);
}

}  // namespace
}  // namespace sluice::io::conformance

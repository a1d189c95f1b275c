// A ring that several threads use, in orders of events that a test would otherwise have to wait
// for. The requests to the kernel are changed between liburing and its callers.

#include <liburing.h>

#include <atomic>
#include <optional>
#include <thread>

#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/uring/uring_testing.hpp"

namespace {

std::atomic<bool> has_bad_buffers{false};   // requests go to the kernel with an
                                            // address that is not mapped
std::atomic<bool> has_bad_outcomes{false};  // reports one byte more than was moved
std::atomic<int> submissions{0};            // calls that submit
std::atomic<bool> is_gate_closed{false};    // a thread about to sleep waits before its system call
std::atomic<int> sleepers{0};               // threads that have reached the gate

// Makes requests fail with EFAULT, as the kernel does for requests of a thread that has ended.
void spoil_buffers(io_uring& ring) {
    for (unsigned at = ring.sq.sqe_head; at != ring.sq.sqe_tail; ++at) {
        io_uring_sqe& entry = ring.sq.sqes[at & ring.sq.ring_mask];
        if (entry.opcode == IORING_OP_READ or entry.opcode == IORING_OP_RECV) entry.addr = 1;
    }
}

// Makes the file system report more bytes than were requested.
void spoil_outcomes(io_uring& ring) {
    io_uring_cq& queue = ring.cq;
    for (unsigned at = *queue.khead; at != io_uring_smp_load_acquire(queue.ktail); ++at) {
        io_uring_cqe& completion = queue.cqes[at & queue.ring_mask];
        if (completion.res > 0) ++completion.res;
    }
}

}  // namespace

extern "C" {
int __real_io_uring_submit_and_get_events(io_uring* ring);
int __real_io_uring_enter2(unsigned fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                           sigset_t* mask, std::size_t size);

int __wrap_io_uring_submit_and_get_events(io_uring* ring) {
    ++submissions;
    if (has_bad_buffers.load()) spoil_buffers(*ring);
    const int submitted = __real_io_uring_submit_and_get_events(ring);
    if (has_bad_outcomes.load()) spoil_outcomes(*ring);
    return submitted;
}
int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                           sigset_t* mask, std::size_t size) {
    ++sleepers;
    while (is_gate_closed.load())
        std::this_thread::yield();
    return __real_io_uring_enter2(fd, to_submit, min_complete, flags, mask, size);
}
}

namespace sluice::io {
namespace {

using namespace uring_test;
using namespace std::chrono_literals;

class shared_ring : public ::testing::Test {
protected:
    void SetUp() override {
        if (const auto tried = try_uring(); not tried) GTEST_SKIP() << tried.error().message();
        // An option that is not available for several threads: writes would block all of them.
        multiplexer = make({.inline_file_writes = true, .threads = run_by::several});
        (void)multiplexer->try_run();
    }
    void TearDown() override { has_bad_buffers = has_bad_outcomes = is_gate_closed = false; }
    void attach(multiplexable_handle& to) { ASSERT_TRUE(to.set_multiplexer(multiplexer.get()).has_value()); }
    void run_all() {
        while (multiplexer->run().value_or(0) > 0) {}
    }

    std::unique_ptr<io_multiplexer> multiplexer;
};

TEST_F(shared_ring, writes_of_files_go_to_the_kernel) {
    auto file = scratch_file();
    attach(file);
    one_read idle(file, 1);
    idle.state.start(initiation::batched);  // the ring asks for wake-ups, too
    run_all();
    const int before = submissions;
    one_write write(file, "written", 0);
    write.state.start(initiation::batched);
    run_all();
    EXPECT_EQ(write.result.bytes, 7U);
    EXPECT_GT(submissions.load(), before) << "written by a call, while the other threads wait for the lock";
}

// The kernel returns EFAULT for the requests of a thread that ends.
TEST_F(shared_ring, a_file_is_read_again_when_the_submitting_thread_has_ended) {
    auto file = scratch_file();
    ASSERT_TRUE(file.write({.buffers = text("content"), .offset = 0}).has_value());
    attach(file);
    one_read read(file, 7);
    has_bad_buffers = true;
    read.state.start(initiation::batched);
    run_all();
    EXPECT_EQ(read.result.code, 0);
    EXPECT_EQ(read.text(), "content");
}

TEST_F(shared_ring, a_read_of_a_file_that_reports_more_than_requested_fails) {
    auto file = scratch_file();
    ASSERT_TRUE(file.write({.buffers = text("content"), .offset = 0}).has_value());
    attach(file);
    one_read read(file, 7);
    has_bad_outcomes = true;
    read.state.start(initiation::batched);
    run_all();
    EXPECT_EQ(read.result.code, EIO);
}

TEST_F(shared_ring, a_socket_is_read_again_when_the_submitting_thread_has_ended) {
    socket_pair pair;
    attach(pair.ours);
    one_read read(pair.ours, 7);
    pair.say("content");
    has_bad_buffers = true;
    read.state.start(initiation::batched);
    run_all();
    EXPECT_EQ(read.result.code, 0);
    EXPECT_EQ(read.text(), "content");
}

TEST_F(shared_ring, a_bad_buffer_is_still_reported) {
    auto file = scratch_file();
    ASSERT_TRUE(file.write({.buffers = text("content"), .offset = 0}).has_value());
    attach(file);
    outcome came;
    const std::span bad(reinterpret_cast<std::byte*>(1), 7);  // NOLINT: that is what is tested
    auto read = connect(async_read(file, io_request<bytes_type>{bad, 0}), recorder{&came});
    read.start(initiation::batched);
    run_all();
    EXPECT_EQ(came.code, EFAULT);
}

struct flag {
    std::atomic<bool>* is_done;
    void set_value(result<void>&&) const noexcept {}
    void set_done() const noexcept { *is_done = true; }
};

// A thread that has checked for work, and is about to make its system call.
class about_to_sleep {
public:
    explicit about_to_sleep(io_multiplexer& in) : promise_(in) {
        const int before = sleepers;
        is_gate_closed = true;
        thread_ = std::jthread([&in] {
            while (in.run().value_or(0) > 0) {}
        });
        while (sleepers.load() == before)
            std::this_thread::yield();
    }
    about_to_sleep(const about_to_sleep&) = delete;
    about_to_sleep& operator=(const about_to_sleep&) = delete;
    static void falls_asleep() { is_gate_closed = false; }

private:
    std::jthread thread_;
    io_multiplexer::work_guard promise_;  // is destroyed first
};

TEST_F(shared_ring, a_wake_up_that_another_thread_has_taken_is_passed_on) {
    auto pipe = pipe_handle::anonymous().value();
    attach(pipe.reader);
    one_read waits(pipe.reader, 1);
    waits.state.start(initiation::batched);
    (void)multiplexer->try_run();  // this thread has requested the wake-ups, and gets them
    std::atomic<bool> is_done = false;
    {
        auto sleep = connect(async_sleep(*multiplexer, 1ms), flag{&is_done});
        const about_to_sleep other(*multiplexer);
        sleep.start();                     // the other thread does not know of it
        (void)multiplexer->complete_io();  // takes the wake-up, and checks no deadline
        about_to_sleep::falls_asleep();
        while (not is_done.load())
            std::this_thread::yield();
        waits.state.cancel();
    }
    EXPECT_EQ(waits.result.dones, 1);
}

TEST_F(shared_ring, a_completion_found_while_a_handle_is_closed_is_passed_on) {
    auto polled = pipe_handle::anonymous().value();
    attach(polled.reader);
    one_read cancelled(polled.reader, 1);
    cancelled.state.start(initiation::batched);
    (void)multiplexer->try_run();  // the ring polls the pipe
    cancelled.state.cancel();
    (void)multiplexer->try_run();
    ASSERT_EQ(cancelled.result.dones, 1);
    socket_pair pair;
    attach(pair.ours);
    one_read read(pair.ours, 4);
    read.state.start(initiation::batched);
    (void)multiplexer->try_run();  // this thread has submitted it
    const about_to_sleep other(*multiplexer);
    pair.say("here");
    ASSERT_TRUE(polled.reader.close().has_value());  // this also takes completions
    about_to_sleep::falls_asleep();
    while (read.state.started())
        std::this_thread::yield();
    EXPECT_EQ(read.text(), "here");
}

}  // namespace
}  // namespace sluice::io

// A loop over io_uring when the kernel has no memory for it. best_available states the
// order of degradation.

#include <liburing.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <limits>
#include <thread>

#include "sluice/io/best_available.hpp"
#include "sluice/io/call/sandbox_testing.hpp"
#include "sluice/io/loop/registered_buffer.hpp"
#include "sluice/io/stream/accept_stream.hpp"
#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/stream/socket_sender.hpp"
#include "sluice/io/uring/uring_testing.hpp"

// --- the faults: simulated results of the kernel

namespace {

// Entries there is memory for.
std::atomic<unsigned> largest_ring{std::numeric_limits<unsigned>::max()};
std::atomic<int> refusals_left{0};  // calls answered with `refusal_code`
std::atomic<int> refusal_code{ENOMEM};
std::atomic<int> entries_asked{0};
std::atomic<int> calls_made{0};
std::atomic<int> waits_made{0};  // calls that may wait

bool refuses() {
    if (refusals_left.load() <= 0) {
        ++calls_made;
        return false;
    }
    --refusals_left;
    return true;
}

constexpr int forever = std::numeric_limits<int>::max();

}  // namespace

extern "C" {
int __real_io_uring_queue_init_params(unsigned entries, io_uring* ring, io_uring_params* params);
int __real_io_uring_submit(io_uring* ring);
int __real_io_uring_submit_and_get_events(io_uring* ring);
int __real_io_uring_get_events(io_uring* ring);
int __real_io_uring_enter(unsigned ring, unsigned submitted, unsigned count, unsigned flags, sigset_t* mask);
int __real_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** first, unsigned count,
                                            __kernel_timespec* limit, sigset_t* mask);

int __wrap_io_uring_queue_init_params(unsigned entries, io_uring* ring, io_uring_params* params) {
    entries_asked = static_cast<int>(entries);
    if (entries > largest_ring.load()) return -ENOMEM;
    return __real_io_uring_queue_init_params(entries, ring, params);
}
int __wrap_io_uring_submit(io_uring* ring) {
    return refuses() ? -refusal_code.load() : __real_io_uring_submit(ring);
}
int __wrap_io_uring_submit_and_get_events(io_uring* ring) {
    return refuses() ? -refusal_code.load() : __real_io_uring_submit_and_get_events(ring);
}
int __wrap_io_uring_get_events(io_uring* ring) {
    return refuses() ? -refusal_code.load() : __real_io_uring_get_events(ring);
}
int __wrap_io_uring_enter(unsigned ring, unsigned submitted, unsigned count, unsigned flags, sigset_t* mask) {
    ++waits_made;
    return refuses() ? -refusal_code.load() : __real_io_uring_enter(ring, submitted, count, flags, mask);
}
int __wrap_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** first, unsigned count,
                                            __kernel_timespec* limit, sigset_t* mask) {
    ++waits_made;
    if (refuses()) return -refusal_code.load();
    return __real_io_uring_submit_and_wait_timeout(ring, first, count, limit, mask);
}
}

namespace sluice::io {
namespace {

using namespace uring_test;
using namespace std::chrono_literals;

class uring_refusal : public ::testing::Test {
protected:
    void SetUp() override {
        if (const auto tried = try_uring(); not tried) GTEST_SKIP() << tried.error().message();
        ::unsetenv("SLUICE_MULTIPLEXER");
        multiplexer = make();
        drain(*multiplexer);
    }
    void TearDown() override {
        refusals_left = 0;
        refusal_code = ENOMEM;
        largest_ring = std::numeric_limits<unsigned>::max();
    }
    void attach(multiplexable_handle& to) { ASSERT_TRUE(to.set_multiplexer(multiplexer.get()).has_value()); }
    /// Runs until `done`; a loop that never ends is ended by the test's own time limit.
    template <class Condition>
    void run_until(Condition done) {
        while (not done())
            (void)multiplexer->try_run_for(10ms);
    }

    std::unique_ptr<io_multiplexer> multiplexer;
};

// --- a ring that cannot be created

TEST_F(uring_refusal, a_ring_without_memory_is_created_smaller_and_works) {
    largest_ring = 20;
    const auto made = make_uring_multiplexer();
    ASSERT_TRUE(made.has_value()) << made.error().message();
    EXPECT_EQ(entries_asked.load(), 16);
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(made->get()).has_value());
    one_read read(pair.ours, 8);
    read.state.start();
    pair.say("here");
    drain(**made);
    EXPECT_EQ(read.text(), "here");
}

TEST_F(uring_refusal, without_memory_for_any_ring_the_loop_uses_epoll_and_the_reason_names_the_cause) {
    EXPECT_EQ(
        sandbox_test::ask_in_child([] {
            const std::string before(best_available_reason());
            largest_ring = 0;
            const auto loop = best_available(1, 0);
            return before + "|" + (loop ? std::string((*loop)->name()) : loop.error().message()) + "|" +
                   std::string(best_available_reason());
        }),
        "io_uring|epoll|epoll for some loops: io_uring_setup, beyond RLIMIT_MEMLOCK or the memory of the "
        "control group: Cannot allocate memory");
}

TEST_F(uring_refusal, a_ring_that_is_required_is_not_replaced) {
    EXPECT_EQ(
        sandbox_test::ask_in_child([] {
            ::setenv("SLUICE_MULTIPLEXER", "io_uring", 1);
            largest_ring = 0;
            const auto loop = best_available(1, 0);
            return loop ? std::string((*loop)->name()) : loop.error().message();
        }),
        "io_uring_setup, beyond RLIMIT_MEMLOCK or the memory of the control group: Cannot allocate memory");
}

// A real limit: a process that locks all its maps, and may lock no more, cannot map a ring.
TEST_F(uring_refusal, a_lock_limit_lowered_at_run_time_leads_to_epoll) {
    const std::string answer = sandbox_test::ask_in_child([] {
        const std::string before(best_available_reason());
        constexpr uid_t nobody = 65534;
        if (::getuid() == 0 and ::setresuid(nobody, nobody, nobody) != 0) return std::string("setresuid");
        const rlimit none{.rlim_cur = 0, .rlim_max = 0};
        if (::mlockall(MCL_FUTURE) != 0) return std::string("skip: mlockall");
        if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0) return std::string("setrlimit");
        const auto loop = best_available(1, 0);
        return before + "|" + (loop ? std::string((*loop)->name()) : loop.error().message());
    });
    if (answer.starts_with("skip")) GTEST_SKIP() << answer << ": no memory may be locked here at all";
    EXPECT_EQ(answer, "io_uring|epoll");
}

TEST_F(uring_refusal, memory_beyond_the_lock_limit_is_used_unregistered) {
    EXPECT_EQ(sandbox_test::ask_in_child([] {
                  // Before the ring is created: it belongs to the user who creates it, and root's
                  // has no limit.
                  constexpr uid_t nobody = 65534;
                  if (::getuid() == 0 and ::setresuid(nobody, nobody, nobody) != 0) return std::string("uid");
                  const auto loop = make();
                  drain(*loop);
                  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
                  if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0) return std::string("setrlimit");
                  const auto memory = loop->allocate_registered_buffer(1 << 20);
                  if (not memory) return memory.error().message();
                  return std::string(memory->is_registered() ? "registered" : "plain") + " " +
                         std::to_string(memory->bytes().size());
              }),
              "plain 1048576");
}

// --- a ring whose requests the kernel refuses

TEST_F(uring_refusal, a_stream_is_read_and_written_while_the_kernel_takes_no_request) {
    socket_pair pair;
    attach(pair.ours);
    refusals_left = forever;
    one_read read(pair.ours, 8);
    one_write write(pair.ours, "there");
    read.state.start(initiation::batched);
    write.state.start(initiation::batched);
    run_until([&] { return write.result.dones == 1; });
    EXPECT_EQ(pair.hear(), "there");
    pair.say("here");
    run_until([&] { return read.result.dones == 1; });
    EXPECT_EQ(read.text(), "here");
}

TEST_F(uring_refusal, a_refusal_for_lack_of_requests_counts_as_well) {
    refusal_code = EAGAIN;
    socket_pair pair;
    attach(pair.ours);
    refusals_left = forever;
    one_read read(pair.ours, 8);
    read.state.start(initiation::batched);
    pair.say("here");
    run_until([&] { return read.result.dones == 1; });
    EXPECT_EQ(read.text(), "here");
}

TEST_F(uring_refusal, a_pipe_is_read_while_the_kernel_takes_no_request) {
    auto pipe = pipe_handle::anonymous().value();
    attach(pipe.reader);
    refusals_left = forever;
    one_read read(pipe.reader, 8);
    read.state.start();
    (void)multiplexer->try_run_for(5ms);
    EXPECT_EQ(read.result.dones, 0);
    ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{text("here")}).has_value());
    run_until([&] { return read.result.dones == 1; });
    EXPECT_EQ(read.text(), "here");
}

TEST_F(uring_refusal, more_file_requests_than_the_queue_holds_are_carried_out_while_the_kernel_takes_none) {
    auto file = scratch_file();
    ASSERT_TRUE(file.write(io_request<const_bytes_type>{text("0123456789abcdef"), 0}).has_value());
    attach(file);
    refusals_left = forever;
    constexpr int many = 600;  // two queues full and more
    std::vector<std::unique_ptr<one_read>> reads;
    for (int i = 0; i < many; ++i) {
        reads.push_back(std::make_unique<one_read>(file, 4, static_cast<extent_type>(i % 4) * 4));
        reads.back()->state.start(initiation::batched);
    }
    one_write write(file, "end", 100);
    write.state.start(initiation::batched);
    run_until([&] { return multiplexer->pending() == 0; });
    constexpr std::array<std::string_view, 4> parts{"0123", "4567", "89ab", "cdef"};
    for (int i = 0; i < many; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(reads[at]->text(), parts[at % 4]) << i;
    }
    EXPECT_EQ(write.result.bytes, 3U);
}

TEST_F(uring_refusal, connections_are_accepted_while_the_kernel_takes_no_request) {
    struct counter {
        int* accepted_so_far;
        int* dones;
        void set_value(result<accepted>&& one) noexcept { *accepted_so_far += one.has_value() ? 1 : 0; }
        void set_done() noexcept { ++*dones; }
    };
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    attach(listener);
    int count = 0;
    int dones = 0;
    accept_stream stream(listener, counter{&count, &dones});
    refusals_left = forever;
    stream.start();
    (void)multiplexer->try_run_for(5ms);
    const auto client = socket_handle::connect(listener.local_address().value()).value();
    const auto second = socket_handle::connect(listener.local_address().value()).value();
    run_until([&] { return count == 2; });
    stream.cancel();
    run_until([&] { return dones == 1; });
}

TEST_F(uring_refusal, deadlines_and_cancellations_end_operations_the_kernel_does_not_take) {
    socket_pair pair;
    attach(pair.ours);
    auto pipe = pipe_handle::anonymous().value();
    attach(pipe.reader);
    refusals_left = forever;
    one_read timed(pair.ours, 8, 0, 1ms);
    one_read cancelled(pipe.reader, 8);
    timed.state.start(initiation::batched);
    cancelled.state.start(initiation::batched);
    (void)multiplexer->try_run();
    cancelled.state.cancel();
    run_until([&] { return multiplexer->pending() == 0; });
    EXPECT_EQ(timed.result.code, ETIMEDOUT);
    EXPECT_EQ(cancelled.result.code, ECANCELED);
}

TEST_F(uring_refusal, a_posted_item_is_invoked_while_the_kernel_takes_no_request) {
    socket_pair pair;
    attach(pair.ours);
    one_read read(pair.ours, 8);
    read.state.start(initiation::batched);
    refusals_left = forever;
    std::atomic<bool> invoked{false};
    std::thread poster(
        [&] { EXPECT_TRUE(multiplexer->post([&]() noexcept { invoked = true; }).has_value()); });
    run_until([&] { return invoked.load(); });
    poster.join();
    read.state.cancel();
    run_until([&] { return multiplexer->pending() == 0; });
}

TEST_F(uring_refusal, the_ring_is_used_again_when_the_kernel_takes_requests_again) {
    socket_pair pair;
    attach(pair.ours);
    refusals_left = 3;
    one_read read(pair.ours, 8);
    read.state.start(initiation::batched);
    const int before = calls_made.load();
    run_until([&] { return refusals_left.load() == 0 and calls_made.load() > before + 1; });
    pair.say("here");
    run_until([&] { return read.result.dones == 1; });
    EXPECT_EQ(read.text(), "here");
    // No operation that was taken back completes twice.
    one_read next(pair.ours, 8);
    next.state.start(initiation::batched);
    pair.say("again");
    run_until([&] { return next.result.dones == 1; });
    EXPECT_EQ(next.text(), "again");
}

TEST_F(uring_refusal, a_handle_can_be_detached_while_the_kernel_takes_no_request) {
    auto pipe = pipe_handle::anonymous().value();
    attach(pipe.reader);
    {
        one_read read(pipe.reader, 8);
        read.state.start();
        drain(*multiplexer);  // its poll is with the kernel
        refusals_left = forever;
        read.state.cancel();
        run_until([&] { return read.result.dones == 1; });
    }
    ASSERT_TRUE(pipe.reader.set_multiplexer(nullptr).has_value());
    // The next handle in its place must not see the completion of that poll.
    socket_pair pair;
    attach(pair.ours);
    refusals_left = 0;
    one_read read(pair.ours, 8);
    read.state.start(initiation::batched);
    drain(*multiplexer);
    pair.say("here");
    run_until([&] { return read.result.dones == 1; });
    EXPECT_EQ(read.text(), "here");
}

// --- operations that do not wait

TEST_F(uring_refusal, a_handle_that_was_waited_for_is_closed_without_waiting) {
    for (int i = 0; i < 100; ++i) {
        auto pipe = pipe_handle::anonymous().value();
        attach(pipe.reader);
        one_read read(pipe.reader, 8);
        read.state.start(initiation::batched);
        (void)multiplexer->try_run();  // the ring polls the pipe
        read.state.cancel();
        run_until([&] { return read.result.dones == 1; });
        const int before = waits_made;
        ASSERT_TRUE(pipe.reader.close().has_value());
        EXPECT_EQ(waits_made, before);
        pollfd other{.fd = pipe.writer.descriptor(), .events = 0, .revents = 0};
        EXPECT_EQ(::poll(&other, 1, 0), 1) << "the ring keeps the closed end open";
    }
}

// --- errors that are not a lack of memory

TEST_F(uring_refusal, an_error_of_the_kernel_is_returned_and_the_operations_stay_pending) {
    socket_pair pair;
    attach(pair.ours);
    one_read read(pair.ours, 8);
    read.state.start(initiation::batched);
    for (const int code : {EBADR, EBADF}) {
        refusal_code = code;
        refusals_left = forever;
        const auto ran = multiplexer->run();
        ASSERT_FALSE(ran.has_value());
        EXPECT_EQ(ran.error().code(), code);
        EXPECT_NE(ran.error().message().find("io_uring_enter"), std::string::npos) << ran.error().message();
        EXPECT_EQ(multiplexer->complete_io(-1).error().code(), code);
        EXPECT_EQ(multiplexer->pending(), 1U);
        refusals_left = 0;
    }
    pair.say("here");
    run_until([&] { return read.result.dones == 1; });
    EXPECT_EQ(read.text(), "here");
}

}  // namespace
}  // namespace sluice::io

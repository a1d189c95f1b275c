#include "sluice/io/uring/uring_multiplexer.hpp"

#include <atomic>
#include <thread>

#include "sluice/io/loop/registered_buffer.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/uring/ring.hpp"
#include "sluice/io/uring/uring_testing.hpp"

namespace sluice::io {
namespace {

using namespace uring_test;
using namespace std::chrono_literals;

// Where io_uring is denied there is nothing to test in this program.
class needs_uring final : public testing::Environment {
    void SetUp() override {
        if (const auto tried = try_uring(); not tried) GTEST_SKIP() << tried.error().message();
    }
};
const testing::Environment* const added = testing::AddGlobalTestEnvironment(new needs_uring);

TEST(uring_multiplexer, one_made_on_another_thread_belongs_to_the_one_that_uses_it) {
    std::unique_ptr<io_multiplexer> multiplexer;
    std::thread([&] { multiplexer = make(); }).join();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    one_read read(pair.ours, 8);
    read.state.start();
    drain(*multiplexer);
    pair.say("here");
    drain(*multiplexer);
    EXPECT_EQ(read.text(), "here");
}

TEST(uring_multiplexer, one_used_by_a_thread_that_has_ended_can_be_destroyed_elsewhere) {
    auto multiplexer = make();
    const auto other = make();
    drain(*other);
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.reader.set_multiplexer(multiplexer.get()).has_value());
    std::thread([&] {
        one_read read(pair.ours, 8);
        read.state.start();
        pair.say("here");
        while (multiplexer->run().value_or(0) > 0) {}
        EXPECT_EQ(read.text(), "here");
        one_read cancelled(pipe.reader, 8);  // leaves its poll behind
        cancelled.state.start();
        drain(*multiplexer);
        cancelled.state.cancel();
        drain(*multiplexer);
        EXPECT_EQ(cancelled.result.dones, 1);
    }).join();
    ASSERT_TRUE(pair.ours.set_multiplexer(nullptr).has_value());
    ASSERT_TRUE(pipe.reader.set_multiplexer(nullptr).has_value());
    multiplexer.reset();
    // This thread's own ring still works.
    ASSERT_TRUE(pair.ours.set_multiplexer(other.get()).has_value());
    one_read read(pair.ours, 8);
    read.state.start();
    drain(*other);
    pair.say("still");
    drain(*other);
    EXPECT_EQ(read.text(), "still");
}

TEST(uring_multiplexer, a_posted_item_ends_the_sleep_of_the_loop) {
    const auto multiplexer = make();
    std::atomic<int> invoked{0};
    const io_multiplexer::work_guard guard(*multiplexer);
    std::thread poster([&] {
        for (int i = 0; i < 20; ++i) {
            const int before = invoked.load();
            EXPECT_TRUE(multiplexer->post([&invoked]() noexcept { ++invoked; }).has_value());
            while (invoked.load() == before)
                std::this_thread::yield();
            std::this_thread::sleep_for(1ms);
        }
    });
    while (invoked.load() < 20)
        EXPECT_GT(multiplexer->run().value_or(0), 0);
    poster.join();
}

TEST(uring_multiplexer, waiting_ends_when_the_time_has_come) {
    const auto multiplexer = make();
    socket_pair pair;
    ASSERT_TRUE(pair.ours.set_multiplexer(multiplexer.get()).has_value());
    one_read read(pair.ours, 8);
    read.state.start();
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(multiplexer->try_run_for(20ms), io_multiplexer::nothing_ready);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 20ms);
    read.state.cancel();
    drain(*multiplexer);
}

// liburing has marks of its own for a registered ring, which change with its version.
TEST(uring_ring, waits_by_its_registration_without_the_marks_of_liburing) {
    uring::ring ring;
    ASSERT_TRUE(ring.open(uring::ring::sizes_min).has_value());
    ASSERT_TRUE(ring.enable().has_value());
    io_uring_sqe* const entry = ring.next();
    ASSERT_NE(entry, nullptr);
    io_uring_prep_nop(entry);
    const auto marks = std::exchange(ring.raw().int_flags, {});
    EXPECT_TRUE(ring.submit_and_wait().has_value());
    EXPECT_TRUE(ring.has_completions());
    ring.raw().int_flags = marks;
}

TEST(uring_multiplexer, registered_memory_is_given_back) {
    const auto multiplexer = make();
    for (int round = 0; round < 200; ++round) {  // more often than there are places
        auto memory = multiplexer->allocate_registered_buffer(10'000);
        ASSERT_TRUE(memory.has_value());
        EXPECT_TRUE(memory->is_registered());
        EXPECT_EQ(memory->bytes().size(), 12'288U);
    }
    EXPECT_EQ(multiplexer->allocate_registered_buffer(0).error(), std::errc::invalid_argument);
}

}  // namespace
}  // namespace sluice::io

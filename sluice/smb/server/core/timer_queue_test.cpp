#include "sluice/smb/server/core/timer_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/server/core/pending_breaks.hpp"

namespace sluice::smb::server {
namespace {

class timers : public testing::Test {
protected:
    // Runs the first loop until all has been done that was not cancelled.
    io::task<void> run_until(const std::atomic<std::uint64_t>& done, std::uint64_t wanted) {
        while (done.load(std::memory_order_acquire) < wanted)
            (void)co_await pass(*loop_, deadline(std::chrono::milliseconds(1)));
    }
    io::task<void> end() {
        co_await io::yield(*loop_);  // tasks that are posted to the loop begin before
        background_.cancel();
        co_await background_.join();
    }

    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer().value();
    system_clock_source clock_;
    background_work background_{*loop_};
    timer_queue later_{clock_, background_};
};

TEST_F(timers, entry_is_done_or_cancelled_whichever_loop_adds_it) {
    constexpr std::uint64_t each = 300;
    std::atomic<std::uint64_t> ended{0};
    std::atomic<std::uint64_t> done{0};
    const auto add_some = [&] {
        for (std::uint64_t i = 0; i != each; ++i) {
            const auto added = later_.add(std::chrono::milliseconds(0), [&]() noexcept {
                done.fetch_add(1, std::memory_order_relaxed);
                ended.fetch_add(1, std::memory_order_release);
            });
            if (i % 2 == 0 and later_.cancel(added)) ended.fetch_add(1, std::memory_order_release);
            EXPECT_FALSE(i % 2 == 0 and later_.cancel(added)) << "an entry is cancelled once";
        }
    };
    std::thread one(add_some);
    std::thread other(add_some);
    io::sync_wait(*loop_, run_until(ended, 2 * each));
    one.join();
    other.join();
    io::sync_wait(*loop_, end());
    EXPECT_EQ(ended.load(), 2 * each);
    EXPECT_GE(done.load(), each) << "none of these was cancelled";
    EXPECT_EQ(later_.size(), 0U);
}

TEST_F(timers, entry_of_an_owner_is_cancelled_and_its_copy_reset) {
    bool is_done = false;
    std::optional<timer_queue::entry> kept =
        later_.add(std::chrono::hours(1), [&]() noexcept { is_done = true; });
    later_.end(kept);
    EXPECT_FALSE(kept);
    EXPECT_EQ(later_.size(), 0U);
    later_.end(kept);
    io::sync_wait(*loop_, end());
    EXPECT_FALSE(is_done);
}

io::task<void> wait_for_none(pending_breaks& breaks, io::io_multiplexer& loop) {
    co_await breaks.none_left(loop);
}

TEST(pending_breaks, waiter_is_woken_by_the_end_of_the_last_break_on_another_loop) {
    const std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    pending_breaks breaks;
    std::atomic<bool> is_stopped{false};
    const auto work = [&] {
        while (not is_stopped.load(std::memory_order_relaxed)) {
            breaks.begin();
            breaks.end();
        }
    };
    std::thread one(work);
    std::thread other(work);
    for (int i = 0; i != 2000; ++i)
        io::sync_wait(*loop, wait_for_none(breaks, *loop));
    is_stopped.store(true, std::memory_order_relaxed);
    one.join();
    other.join();
    EXPECT_FALSE(breaks.any());
}

TEST(pending_breaks, count_each_token_until_it_is_destroyed) {
    pending_breaks breaks;
    {
        pending_break one(breaks);
        const pending_break moved = std::move(one);
        EXPECT_TRUE(breaks.any());
        EXPECT_TRUE(static_cast<bool>(moved));
    }
    EXPECT_FALSE(breaks.any());
}

}  // namespace
}  // namespace sluice::smb::server

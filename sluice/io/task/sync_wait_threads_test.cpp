#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/task/frame_pool.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/when_all.hpp"
#include "sluice/io/task/with_deadline.hpp"

namespace sluice::io {
namespace {

// A loop on its own thread, until it is destroyed.
class loop_thread {
public:
    loop_thread() {
        while (not is_running_.load(std::memory_order_acquire))
            std::this_thread::yield();
    }
    loop_thread(const loop_thread&) = delete;
    loop_thread& operator=(const loop_thread&) = delete;
    ~loop_thread() {
        EXPECT_TRUE(multiplexer_->post([this]() noexcept { stops_ = true; }).has_value());
        thread_.join();
    }

    [[nodiscard]] io_multiplexer& multiplexer() noexcept { return *multiplexer_; }
    [[nodiscard]] std::thread::id id() const noexcept { return thread_.get_id(); }

private:
    void loop() {
        const io_multiplexer::work_guard more_to_come(*multiplexer_);
        (void)multiplexer_->invoke_posted_items();  // makes this thread its owner
        is_running_.store(true, std::memory_order_release);
        while (not stops_)
            (void)multiplexer_->run();
    }

    std::unique_ptr<io_multiplexer> multiplexer_ = make_epoll_multiplexer(0).value();
    bool stops_ = false;
    std::atomic<bool> is_running_{false};
    std::thread thread_{[this] { loop(); }};
};

class hopping : public testing::Test {
protected:
    template <class T>
    T run(task<T> root) {
        return sync_wait(*home_, std::move(root));
    }
    std::unique_ptr<io_multiplexer> home_ = make_epoll_multiplexer(0).value();
    loop_thread away_;
};

task<std::array<std::thread::id, 3>> there_and_back(io_multiplexer& home, io_multiplexer& away) {
    std::array<std::thread::id, 3> seen;
    seen[0] = std::this_thread::get_id();
    co_await resume_on(away);
    seen[1] = std::this_thread::get_id();
    co_await resume_on(home);
    seen[2] = std::this_thread::get_id();
    co_return seen;
}

TEST_F(hopping, a_task_continues_on_the_requested_thread) {
    const auto seen = run(there_and_back(*home_, away_.multiplexer()));
    EXPECT_EQ(seen[0], std::this_thread::get_id());
    EXPECT_EQ(seen[1], away_.id());
    EXPECT_EQ(seen[2], std::this_thread::get_id());
}

TEST_F(hopping, a_hop_to_the_present_thread_does_not_suspend) {
    const auto stay = [](io_multiplexer& home) -> task<int> {
        co_await resume_on(home);
        co_return 1;
    };
    EXPECT_EQ(run(stay(*home_)), 1);
}

task<std::thread::id> end_away(io_multiplexer& away) {
    co_await resume_on(away);
    co_return std::this_thread::get_id();
}

// Its next I/O, on a handle of its own multiplexer, would stop the program on another thread.
TEST_F(hopping, a_task_that_awaits_another_resumes_on_its_own_thread) {
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.writer.set_multiplexer(home_.get()).has_value());
    const auto here = std::this_thread::get_id();
    const auto writes = [&]() -> task<void> {
        std::array<std::byte, 1> one{};
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_TRUE((co_await co_write(pipe.writer, io_request<const_bytes_type>{one})).has_value());
    };
    const auto parent = [&](io_multiplexer& home, io_multiplexer& away) -> task<void> {
        EXPECT_EQ(co_await end_away(away), away_.id());
        co_await writes();
        (void)co_await when_all(end_away(away), end_away(away));
        co_await writes();
        EXPECT_TRUE((co_await with_deadline(home, end_away(away), std::chrono::hours(1))).has_value());
        co_await writes();
        std::vector<task<std::thread::id>> racers;
        racers.push_back(end_away(away));
        racers.push_back(end_away(away));
        (void)co_await race(std::span(racers));
        co_await writes();
        // A task that it awaits returns to the thread it is on.
        co_await resume_on(away);
        EXPECT_EQ(co_await end_away(home), here);
        EXPECT_EQ(std::this_thread::get_id(), away_.id());
    };
    run(parent(*home_, away_.multiplexer()));
    EXPECT_EQ(std::this_thread::get_id(), here);
}

// A foreign awaitable: it resumes on its own thread.
struct foreign_wait {
    std::jthread* thread;
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) const {
        std::jthread* const into = thread;  // this may be gone when the thread has begun
        *into = std::jthread([waiter] { waiter.resume(); });
    }
    static void await_resume() noexcept {}
};

TEST_F(hopping, a_root_that_a_foreign_awaitable_resumed_elsewhere_is_waited_for) {
    std::jthread thread;
    const auto work = [&]() -> task<int> {
        co_await foreign_wait{&thread};
        co_return 3;
    };
    const auto parent = [&]() -> task<int> {
        const int got = co_await work();
        EXPECT_TRUE(home_->is_owner()) << "only the task that waited itself is elsewhere";
        co_return got;
    };
    EXPECT_EQ(run(work()), 3);
    thread.join();
    EXPECT_EQ(run(parent()), 3);
}

TEST_F(hopping, a_handle_without_a_multiplexer_adopts_the_one_that_runs) {
    auto pipe = pipe_handle::anonymous().value();
    const auto reads = [&]() -> task<std::size_t> {
        std::array<std::byte, 1> one{};
        co_return (co_await co_read(pipe.reader, io_request<bytes_type>{one})).bytes_transferred();
    };
    std::jthread writes([&] {
        std::array<std::byte, 1> one{};
        EXPECT_TRUE(pipe.writer.write(io_request<const_bytes_type>{one}).has_value());
    });
    EXPECT_EQ(run(reads()), 1U);
    EXPECT_EQ(pipe.reader.multiplexer(), home_.get());
}

TEST_F(hopping, a_root_that_ends_on_another_thread_is_waited_for) {
    for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(run(end_away(away_.multiplexer())), away_.id());
}

task<int> ping_pong(io_multiplexer& home, io_multiplexer& away, int times) {
    int hops = 0;
    for (int i = 0; i < times; ++i) {
        co_await resume_on(away);
        ++hops;
        co_await resume_on(home);
        ++hops;
    }
    co_return hops;
}

TEST_F(hopping, a_thousand_hops_lose_nothing) {
    EXPECT_EQ(run(ping_pong(*home_, away_.multiplexer(), 1000)), 2000);
}

// The frame of the awaited task after the hop comes from this thread's pool or the heap, and frames
// of the other thread's pool end here.
task<int> leaf(int n) {
    co_return n;
}
task<int> hop_and_return(io_multiplexer& away, int n) {
    co_await resume_on(away);
    const int same = co_await leaf(n);
    co_return same;
}
task<int> parent_of_hoppers(io_multiplexer& home, io_multiplexer& away, int times) {
    int sum = 0;
    for (int i = 0; i < times; ++i) {
        co_await resume_on(home);
        auto hopper = hop_and_return(away, 1);  // a frame of home's pool
        co_await resume_on(away);
        sum += co_await std::move(hopper);  // ends on the other thread
    }
    co_await resume_on(home);
    co_return sum;
}

TEST_F(hopping, frames_that_end_on_another_thread_return_to_their_pool) {
    frame_pool pool(std::size_t{8} << 10);
    const frame_pool::use use(pool);
    EXPECT_EQ(run(parent_of_hoppers(*home_, away_.multiplexer(), 1000)), 1000);
    EXPECT_EQ(pool.statistics().live, 0U);
    EXPECT_EQ(pool.statistics().heap_frames, 0U) << "the blocks were used again";
}

TEST_F(hopping, children_of_one_parent_may_end_on_different_threads) {
    const auto both = [](io_multiplexer& home, io_multiplexer& away) -> task<int> {
        int sum = 0;
        for (int i = 0; i < 1000; ++i) {
            auto [a, b, c] = co_await when_all(hop_and_return(away, 1), leaf(1), ping_pong(home, away, 1));
            sum += a + b + c;
            co_await resume_on(home);
        }
        co_return sum;
    };
    EXPECT_EQ(run(both(*home_, away_.multiplexer())), 4000);
}

TEST_F(hopping, another_thread_cancels_a_scope_by_posting) {
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.reader.set_multiplexer(home_.get()).has_value());
    const auto read = [](pipe_handle& from) -> task<int> {
        std::array<std::byte, 1> one{};
        const auto got = co_await co_read(from, io_request<bytes_type>{one});
        co_return got.has_value() ? 0 : got.error().code();
    };
    cancel_scope scope;
    std::thread other([&] { EXPECT_TRUE(home_->post([&scope]() noexcept { scope.cancel(); }).has_value()); });
    EXPECT_EQ(run(in_scope(scope, read(pipe.reader))), ECANCELED);
    other.join();
}

TEST_F(hopping, a_group_child_that_hops_returns_to_end) {
    const auto visit = [](io_multiplexer& away, std::atomic<int>& visits) -> task<void> {
        co_await resume_on(away);
        visits.fetch_add(1, std::memory_order_relaxed);
    };
    const auto join = [](task_group& group) -> task<void> { co_await group.join(); };
    std::atomic<int> visits{0};
    task_group group(*home_);
    for (int i = 0; i < 100; ++i)
        group.spawn(visit(away_.multiplexer(), visits));
    run(join(group));
    EXPECT_EQ(visits.load(std::memory_order_relaxed), 100);
}

}  // namespace
}  // namespace sluice::io

#include "sluice/fsmutex/async_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "sluice/fsmutex/conformance_testing.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/fsmutex/processes_testing.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/sync_wait.hpp"
#include "sluice/io/task_group.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"
#include "sluice/io/with_deadline.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;

class every_async_lock : public on_each_algorithm {
protected:
    std::unique_ptr<io::io_multiplexer> loop = io::best_available().value();
    std::unique_ptr<shared_fs_mutex> mutex = open();
};

io::task<void> unlock_later(io::io_multiplexer& loop, fs_mutex_guard held) {
    (void)co_await io::co_sleep(loop, 20ms);
    held.unlock();
}

struct outcome {
    std::optional<result<fs_mutex_guard>> value;
    bool is_done = false;
};
struct receiver {
    outcome* to;
    void set_value(result<fs_mutex_guard> got) noexcept { to->value.emplace(std::move(got)); }
    void set_done() noexcept { to->is_done = true; }
};

TEST_P(every_async_lock, is_granted_to_a_coroutine_that_suspends_meanwhile) {
    auto held = mutex->lock(entity(1)).value();
    auto both = io::sync_wait(*loop,
                              [](io::io_multiplexer& on, shared_fs_mutex& wanted,
                                 fs_mutex_guard first) -> io::task<result<fs_mutex_guard>> {
                                  io::task_group others(on);
                                  others.spawn(unlock_later(on, std::move(first)));
                                  std::vector<entity> entities{entity(1), entity(2)};
                                  auto got = co_await co_lock(on, wanted, entities);
                                  co_await others.join();
                                  co_return got;
                              }(*loop, *mutex, std::move(held)));
    ASSERT_TRUE(both) << both.error().message();
    EXPECT_FALSE(mutex->try_lock(entity(2)));
}

TEST_P(every_async_lock, keeps_its_deadline_and_gives_up_its_place) {
    auto held = mutex->lock(entity(1)).value();
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(io::sync_wait(*loop, co_lock(*loop, *mutex, {entity(1), entity(2)}, 30ms)).error(),
              std::errc::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 30ms);
    EXPECT_TRUE(mutex->try_lock(entity(2)));
    held.unlock();
    EXPECT_TRUE(mutex->try_lock(entity(1)));
}

TEST_P(every_async_lock, ends_when_cancelled_and_gives_up_its_place) {
    auto held = mutex->lock(entity(1)).value();
    const auto got =
        io::sync_wait(*loop, io::with_deadline(*loop, co_lock(*loop, *mutex, {entity(1), entity(2)}), 20ms));
    EXPECT_EQ(got.error(), std::errc::timed_out);
    EXPECT_TRUE(mutex->try_lock(entity(2)));
}

TEST_P(every_async_lock, as_a_sender_tells_its_receiver_once) {
    auto held = mutex->lock(entity(1)).value();
    outcome late;
    auto waiting = connect(async_lock(*loop, *mutex, {entity(1)}), receiver{&late});
    waiting.start();
    EXPECT_FALSE(late.value);
    (void)loop->try_run_for(10ms);
    EXPECT_FALSE(late.is_done);
    held.unlock();
    while (not late.is_done)
        (void)loop->try_run_for(10ms);
    EXPECT_TRUE(*late.value);
    outcome refused;
    auto timed = connect(async_lock(*loop, *mutex, {entity(1)}, 10ms), receiver{&refused});
    timed.start();
    while (not refused.is_done)
        (void)loop->try_run_for(10ms);
    EXPECT_EQ(refused.value->error(), std::errc::timed_out);
}

TEST_P(every_async_lock, is_granted_after_its_holder_died_though_nobody_waits_in_a_thread) {
    process other = process_that_holds([&] { return open(); }, entity(1));
    const std::jthread killer([&] {
        std::this_thread::sleep_for(30ms);
        other.send(SIGKILL);
    });
    const auto got = io::sync_wait(*loop, co_lock(*loop, *mutex, {entity(1)}, 10s));
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->owner_died(), tested().reports_deaths);
}

SLUICE_ON_EACH_ALGORITHM(every_async_lock);

void wake(std::atomic<std::uint32_t>& word) {
    word.store(1);
    (void)::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Each multiplexer, and what it does where the kernel does not wake it for words: it looks after a pause.
class every_multiplexer : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        const bool is_uring = GetParam() == std::string("io_uring");
        if (is_uring and not io::try_uring()) GTEST_SKIP() << "no io_uring here";
        loop = (is_uring ? io::make_uring_multiplexer() : io::make_epoll_multiplexer()).value();
    }
    [[nodiscard]] result<void> wait(const io::word_wait& what) {
        return io::sync_wait(*loop, [](io::io_multiplexer& on, io::word_wait how) -> io::task<result<void>> {
            co_return co_await io::co_wait_word(on, how);
        }(*loop, what));
    }
    [[nodiscard]] int steps_while_locked_by_another_for(std::chrono::milliseconds time);

    std::unique_ptr<io::io_multiplexer> loop;
    alignas(64) std::atomic<std::uint32_t> word = 0;
};

TEST_P(every_multiplexer, is_told_when_a_word_changes_and_is_woken_for) {
    const std::jthread other([&] {
        std::this_thread::sleep_for(20ms);
        wake(word);
    });
    const auto began = std::chrono::steady_clock::now();
    while (word.load() == 0)
        EXPECT_TRUE(wait({.word = &word, .expected = 0, .at_most = 10s, .pause = 1ms}));
    EXPECT_LT(std::chrono::steady_clock::now() - began, 9s);
}

TEST_P(every_multiplexer, does_not_wait_for_a_word_that_has_changed) {
    word.store(7);
    EXPECT_TRUE(wait({.word = &word, .expected = 0, .at_most = 10s, .pause = 1ms}));
}

TEST_P(every_multiplexer, waits_for_a_word_no_longer_than_it_may) {
    const auto began = std::chrono::steady_clock::now();
    const auto outcome = wait({.word = &word, .expected = 0, .at_most = 20ms, .pause = 20ms});
    EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
    EXPECT_EQ(outcome.has_value(), not loop->waits_for_words());
    if (not outcome) EXPECT_EQ(outcome.error(), std::errc::timed_out);
}

TEST_P(every_multiplexer, stops_to_wait_for_a_word_when_cancelled) {
    struct receiver {
        std::optional<result<void>>* to;
        void set_value(const result<void>& got) noexcept { to->emplace(got); }
        void set_done() noexcept {}
    };
    std::optional<result<void>> outcome;
    auto waiting =
        io::connect(io::async_wait_word(*loop, {.word = &word, .expected = 0, .at_most = 10s, .pause = 10s}),
                    receiver{&outcome});
    waiting.start();
    (void)loop->try_run_for(10ms);
    EXPECT_FALSE(outcome);
    waiting.cancel();
    while (not outcome)
        (void)loop->run();
    EXPECT_EQ(outcome->error(), std::errc::operation_canceled);
    EXPECT_EQ(loop->pending(), 0U);
}

int every_multiplexer::steps_while_locked_by_another_for(std::chrono::milliseconds time) {
    const io::test_directory directory{"/dev/shm"};
    const auto mutex = memory_map::open(directory.anchor(), "map").value();
    auto held = mutex->lock(entity(1)).value();
    outcome late;
    auto waiting = connect(async_lock(*loop, *mutex, {entity(1)}), receiver{&late});
    waiting.start();
    const std::jthread other([&] {
        std::this_thread::sleep_for(time);
        held.unlock();
    });
    int steps = 0;
    for (; not late.is_done; ++steps)
        (void)loop->run();
    EXPECT_TRUE(*late.value);
    return steps;
}

TEST_P(every_multiplexer, does_not_look_all_the_time_whether_a_lock_is_granted_if_the_kernel_tells) {
    const int steps = steps_while_locked_by_another_for(200ms);
    if (loop->waits_for_words()) EXPECT_LE(steps, 8) << "once in 40 ms, after deaths";
}

INSTANTIATE_TEST_SUITE_P(multiplexer, every_multiplexer, testing::Values("io_uring", "epoll"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::fsmutex

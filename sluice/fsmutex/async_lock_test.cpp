#include "sluice/fsmutex/async_lock.hpp"

#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "sluice/fsmutex/conformance_testing.hpp"
#include "sluice/fsmutex/limits.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/fsmutex/process/processes_testing.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/with_deadline.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;

class every_async_lock : public on_each_algorithm {
protected:
    std::unique_ptr<io::io_multiplexer> loop = io::best_available().value();
    std::unique_ptr<shared_fs_mutex> mutex = open();

    [[nodiscard]] std::size_t requests_in_the_file() {
        const auto found = mutex->list();
        if (not found) return std::string_view(tested().name) == "byte_ranges" ? 1 : 0;
        return found->size();
    }
    // Checks the requests that the mutex lists, and the waiters of the kernel.
    void expect_nothing_is_left_but(std::size_t holders) {
        if (const auto found = mutex->list(); found) EXPECT_EQ(found->size(), holders);
        EXPECT_EQ(waiters_in_the_kernel(), 0U);
        EXPECT_EQ(loop->pending(), 0U);
    }
    [[nodiscard]] std::size_t waiters_in_the_kernel() const;
};

// Returns the number of requests that wait for a lock of a file of ours, according to /proc/locks:
// "7: -> OFDLCK ADVISORY READ -1 00:1a:4711 5 5". The number before the range is the inode's.
std::size_t every_async_lock::waiters_in_the_kernel() const {
    std::set<std::string> inodes;
    const std::string top = directory.anchor().current_path().value();
    for (const auto& each : std::filesystem::recursive_directory_iterator(top)) {
        struct stat status{};
        if (::stat(each.path().c_str(), &status) == 0) inodes.insert(std::to_string(status.st_ino));
    }
    std::size_t count = 0;
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
        if (line.find("->") == std::string::npos) continue;
        std::istringstream fields(line.substr(line.find("->")));
        std::string field;
        for (int i = 0; i != 6; ++i)
            fields >> field;
        count += inodes.count(field.substr(field.rfind(':') + 1));
    }
    return count;
}

io::task<void> record_code(io::task<result<fs_mutex_guard>> work, int& code) {
    const auto got = co_await std::move(work);
    code = got ? 0 : got.error().code();
}

io::task<void> lock_and_count(io::io_multiplexer& loop, shared_fs_mutex& wanted, std::size_t& granted) {
    std::vector<entity> entities{entity(1)};
    const auto got = co_await co_lock(loop, wanted, std::move(entities));
    if (got) ++granted;
}

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

TEST_P(every_async_lock, is_granted_to_a_coroutine_that_suspends_until_then) {
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

// Threads of the mutex wait for kernel locks; a forked child has none of them.
TEST_P(every_async_lock, lets_a_child_destroy_its_copy_of_the_mutex) {
    auto held = mutex->lock(entity(1)).value();
    io::sync_wait(
        *loop, [](io::io_multiplexer& on, shared_fs_mutex& wanted, fs_mutex_guard first) -> io::task<void> {
            io::task_group others(on);
            others.spawn(unlock_later(on, std::move(first)));
            std::vector<entity> entities{entity(1)};
            EXPECT_TRUE(co_await co_lock(on, wanted, entities));
            co_await others.join();
        }(*loop, *mutex, std::move(held)));
    process child([&] {
        ::alarm(20);  // a thread that does not exist cannot be joined
        mutex.reset();
    });
    EXPECT_TRUE(child.join());
    EXPECT_TRUE(mutex->try_lock(entity(1)));
}

TEST_P(every_async_lock, honours_its_deadline_and_leaves_the_queue) {
    auto held = mutex->lock(entity(1)).value();
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(io::sync_wait(*loop, co_lock(*loop, *mutex, {entity(1), entity(2)}, 30ms)).error(),
              std::errc::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 30ms);
    EXPECT_TRUE(mutex->try_lock(entity(2)));
    held.unlock();
    EXPECT_TRUE(mutex->try_lock(entity(1)));
}

TEST_P(every_async_lock, ends_when_cancelled_and_leaves_the_queue) {
    auto held = mutex->lock(entity(1)).value();
    const auto got =
        io::sync_wait(*loop, io::with_deadline(*loop, co_lock(*loop, *mutex, {entity(1), entity(2)}), 20ms));
    EXPECT_EQ(got.error(), std::errc::timed_out);
    EXPECT_TRUE(mutex->try_lock(entity(2)));
}

TEST_P(every_async_lock, as_a_sender_completes_once) {
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

TEST_P(every_async_lock, is_granted_after_its_holder_died_without_a_waiting_thread) {
    process other = process_that_holds([&] { return open(); }, entity(1));
    const std::jthread killer([&] {
        std::this_thread::sleep_for(30ms);
        other.send(SIGKILL);
    });
    const auto got = io::sync_wait(*loop, co_lock(*loop, *mutex, {entity(1)}, 10s));
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->owner_died(), tested().reports_deaths);
}

TEST_P(every_async_lock, in_a_task_that_is_never_awaited_requests_nothing) {
    auto held = mutex->lock(entity(1)).value();
    { const auto unused = co_lock(*loop, *mutex, {entity(1), entity(2)}); }
    EXPECT_TRUE(mutex->try_lock(entity(2)));
    EXPECT_EQ(requests_in_the_file(), 1U);
}

TEST_P(every_async_lock, in_a_cancelled_scope_ends_at_once_and_leaves_nothing) {
    auto held = mutex->lock(entity(1)).value();
    const auto got =
        io::sync_wait(*loop, [](io::io_multiplexer& on, shared_fs_mutex& wanted) -> io::task<int> {
            io::task_group group(on);
            group.cancel();
            int code = 0;
            group.spawn(record_code(co_lock(on, wanted, {entity(1), entity(2)}), code));
            co_await group.join();
            co_return code;
        }(*loop, *mutex));
    EXPECT_EQ(got, ECANCELED);
    expect_nothing_is_left_but(1);
}

// Cancelled after a number of turns of the loop, while the holder unlocks after another: at every
// moment between request and grant, and at the very moment of the grant.
TEST_P(every_async_lock, cancelled_at_any_step_ends_and_leaves_neither_request_nor_waiter) {
    for (int cancelled_at = 0; cancelled_at != 5; ++cancelled_at) {
        for (int unlocked_at = 0; unlocked_at != 6; ++unlocked_at) {
            auto held = mutex->lock(entity(1)).value();
            outcome end;
            auto waiting = connect(async_lock(*loop, *mutex, {entity(1), entity(2)}), receiver{&end});
            waiting.start();
            for (int turn = 0; not end.is_done; ++turn) {
                ASSERT_LT(turn, 10'000);
                if (turn == unlocked_at) held.unlock();
                if (turn == cancelled_at) waiting.cancel();
                // Between the two, with or without time for a thread to be woken.
                if (turn % 2 == 0) std::this_thread::yield();
                (void)loop->try_run_for(turn % 2 == 0 ? 0ms : 1ms);
            }
            ASSERT_TRUE(end.value);
            if (not*end.value) EXPECT_EQ(end.value->error(), std::errc::operation_canceled);
            const bool is_still_held = static_cast<bool>(held);
            if (is_still_held) EXPECT_FALSE(*end.value);
            end.value.reset();
            expect_nothing_is_left_but(is_still_held ? 1 : 0);
            held.unlock();
            EXPECT_TRUE(mutex->try_lock(std::vector{entity(1), entity(2)}));
        }
    }
}

TEST_P(every_async_lock, lets_the_next_request_proceed_when_cancelled) {
    auto held = mutex->lock(entity(1)).value();
    outcome first;
    outcome second;
    auto one = connect(async_lock(*loop, *mutex, {entity(1)}), receiver{&first});
    auto two = connect(async_lock(*loop, *mutex, {entity(1)}), receiver{&second});
    one.start();
    two.start();
    (void)loop->try_run_for(5ms);
    // In memory_map they wait for words.
    while (mutex->which() != algorithm::memory_map and waiters_in_the_kernel() == 0)
        (void)loop->try_run_for(1ms);
    one.cancel();
    one.cancel();
    while (not first.is_done)
        (void)loop->try_run_for(10ms);
    EXPECT_EQ(first.value->error(), std::errc::operation_canceled);
    one.cancel();
    (void)loop->try_run_for(5ms);
    EXPECT_FALSE(second.is_done);
    held.unlock();
    while (not second.is_done)
        (void)loop->try_run_for(10ms);
    EXPECT_TRUE(*second.value);
}

TEST_P(every_async_lock, in_a_deadline_ends_and_leaves_neither_request_nor_waiter) {
    auto held = mutex->lock(entity(1)).value();
    EXPECT_EQ(io::sync_wait(*loop, co_lock(*loop, *mutex, {entity(1), entity(2)}, 10ms)).error(),
              std::errc::timed_out);
    expect_nothing_is_left_but(1);
}

static_assert(io::sender<lock_sender>);

TEST_P(every_async_lock, leaves_neither_request_nor_waiter_when_its_frame_is_destroyed) {
    const auto before = io::set_failure_handler([](io::unreturned_failure, const char*) noexcept {});
    auto held = mutex->lock(entity(1)).value();
    {
        const auto waits = [&]() -> io::task<void> { (void)co_await async_lock(*loop, *mutex, {entity(1)}); };
        const auto sender_form = waits();
        const auto task_form = co_lock(*loop, *mutex, {entity(1)});
        sender_form.frame().resume();
        task_form.frame().resume();
        (void)loop->try_run_for(5ms);
        EXPECT_NE(loop->pending(), 0U);
    }
    (void)io::set_failure_handler(before);
    expect_nothing_is_left_but(1);
    held.unlock();
    EXPECT_TRUE(mutex->try_lock(entity(1)));
}

TEST_P(every_async_lock, as_a_sender_that_is_only_polled_is_granted) {
    auto held = mutex->lock(entity(1)).value();
    outcome end;
    auto waiting = connect(async_lock(*loop, *mutex, {entity(1)}), receiver{&end});
    waiting.start();
    EXPECT_FALSE(waiting.poll());
    held.unlock();
    while (not waiting.poll()) {}
    ASSERT_TRUE(end.value);
    EXPECT_TRUE(*end.value);
}

TEST_P(every_async_lock, as_a_sender_that_a_task_awaits_ends_at_the_deadline_of_the_task) {
    auto held = mutex->lock(entity(1)).value();
    const auto work = [&]() -> io::task<result<void>> {
        const auto got = co_await async_lock(*loop, *mutex, {entity(1), entity(2)});
        if (not got) co_return failure(got.error());
        co_return {};
    };
    EXPECT_EQ(io::sync_wait(*loop, io::with_deadline(*loop, work(), 10ms)).error(), std::errc::timed_out);
    expect_nothing_is_left_but(1);
    held.unlock();
    EXPECT_TRUE(io::sync_wait(*loop, work()));
}

TEST_P(every_async_lock, as_a_sender_that_threads_share_is_started_and_cancelled_by_another) {
    auto held = mutex->lock(entity(1)).value();
    (void)loop->try_run();  // this thread owns it
    outcome end;
    auto waiting = connect(io::atomic(async_lock(*loop, *mutex, {entity(1)})), receiver{&end});
    const io::io_multiplexer::work_guard more_to_come(*loop);
    std::jthread other([&] {
        waiting.start();
        std::this_thread::sleep_for(5ms);
        waiting.cancel();
    });
    while (not end.is_done)
        (void)loop->try_run_for(10ms);
    EXPECT_EQ(end.value->error(), std::errc::operation_canceled);
    expect_nothing_is_left_but(1);
}

// The thread that would begin it, which runs the loop, does not run before it is cancelled.
TEST_P(every_async_lock, as_a_sender_that_is_cancelled_before_it_begins_locks_nothing) {
    (void)loop->try_run();  // this thread owns it
    outcome end;
    auto waiting = connect(io::atomic(async_lock(*loop, *mutex, {entity(1)})), receiver{&end});
    const io::io_multiplexer::work_guard more_to_come(*loop);
    std::jthread([&] {
        waiting.start();
        waiting.cancel();
    }).join();
    while (not end.is_done)
        (void)loop->try_run_for(10ms);
    ASSERT_TRUE(end.value);
    ASSERT_FALSE(*end.value);
    EXPECT_EQ(end.value->error(), std::errc::operation_canceled);
    expect_nothing_is_left_but(0);
}

TEST_P(every_async_lock, of_more_requests_than_there_are_threads_grants_all_of_them) {
    auto held = mutex->lock(entity(1)).value();
    std::size_t granted = 0;
    constexpr std::size_t count = limits::lock_threads_max + 20;
    io::sync_wait(*loop,
                  [](io::io_multiplexer& on, shared_fs_mutex& wanted, fs_mutex_guard first,
                     std::size_t& granted_to) -> io::task<void> {
                      io::task_group group(on);
                      for (std::size_t i = 0; i != count; ++i)
                          group.spawn(lock_and_count(on, wanted, granted_to));
                      group.spawn(unlock_later(on, std::move(first)));
                      co_await group.join();
                  }(*loop, *mutex, std::move(held), granted));
    EXPECT_EQ(granted, count);
    expect_nothing_is_left_but(0);
}

SLUICE_ON_EACH_ALGORITHM(every_async_lock);

void wake(std::atomic<std::uint32_t>& word) {
    word.store(1);
    (void)::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Each multiplexer. Where the kernel does not wake it for words, it polls after a pause.
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
    struct turns {
        int steps;
        std::chrono::steady_clock::duration lasted;  // as requested, or longer on a busy machine
    };
    [[nodiscard]] turns steps_while_locked_by_another_for(std::chrono::milliseconds time, algorithm which);

    std::unique_ptr<io::io_multiplexer> loop;
    alignas(64) std::atomic<std::uint32_t> word = 0;
};

TEST_P(every_multiplexer, is_notified_when_a_word_changes_with_a_wake_up) {
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

TEST_P(every_multiplexer, waits_for_a_word_no_longer_than_its_deadline) {
    const auto began = std::chrono::steady_clock::now();
    const auto outcome = wait({.word = &word, .expected = 0, .at_most = 20ms, .pause = 20ms});
    EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
    EXPECT_EQ(outcome.has_value(), not io::detail::engine::waits_for_words(*loop));
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

every_multiplexer::turns every_multiplexer::steps_while_locked_by_another_for(std::chrono::milliseconds time,
                                                                              algorithm which) {
    const io::test_directory directory{"/dev/shm"};
    const auto& all = tested_algorithms();
    const auto tested = std::find_if(
        all.begin(), all.end(), [&](const tested_algorithm& each) { return each.name == name_of(which); });
    const auto mutex = tested->open(directory.anchor(), "lock", dependencies::of_this_machine()).value();
    auto held = mutex->lock(entity(1)).value();
    outcome late;
    auto waiting = connect(async_lock(*loop, *mutex, {entity(1)}), receiver{&late});
    const auto began = std::chrono::steady_clock::now();
    waiting.start();
    const std::jthread other([&] {
        std::this_thread::sleep_for(time);
        held.unlock();
    });
    int steps = 0;
    for (; not late.is_done; ++steps)
        (void)loop->run();
    EXPECT_TRUE(*late.value);
    return {.steps = steps, .lasted = std::chrono::steady_clock::now() - began};
}

TEST_P(every_multiplexer, does_not_poll_for_a_lock_if_the_kernel_wakes_it) {
    const auto [steps, lasted] = steps_while_locked_by_another_for(200ms, algorithm::memory_map);
    if (io::detail::engine::waits_for_words(*loop))
        EXPECT_LE(steps, 3 + lasted / 40ms) << "once in 40 ms, for deaths";
}

// Polling takes a turn of the loop every 16 ms, so at least twelve; a wake-up takes a few at the
// end.
TEST_P(every_multiplexer, sleeps_until_a_lock_of_the_kernel_is_free) {
    for (const algorithm which : {algorithm::atomic_append, algorithm::byte_ranges, algorithm::lock_files})
        EXPECT_LE(steps_while_locked_by_another_for(200ms, which).steps, 6) << name_of(which);
}

INSTANTIATE_TEST_SUITE_P(multiplexer, every_multiplexer, testing::Values("io_uring", "epoll"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::fsmutex

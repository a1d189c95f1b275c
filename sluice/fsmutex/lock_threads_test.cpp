#include "sluice/fsmutex/lock_threads.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/fsmutex/limits.hpp"
#include "sluice/fsmutex/process/descriptor_pool.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;
using kernel_lock::kind;

constexpr kernel_lock::range byte{.first = 7, .length = 1};

class lock_threads_of_a_file : public testing::Test {
protected:
    [[nodiscard]] bool is_free_for(int descriptor) const {
        return not kernel_lock::is_locked(descriptor, byte, kind::exclusive).value();
    }
    // Sleeps on the loop like a request, until woken.
    [[nodiscard]] bool sleeps_until_woken(const std::shared_ptr<wake_up>& waker) {
        struct receiver {
            bool* is_done;
            void set_value(const result<void>&) noexcept {}
            void set_done() noexcept { *is_done = true; }
        };
        bool is_done = false;
        struct sender {
            using result_type = result<void>;

            std::shared_ptr<wake_up> wakes;
            io::io_multiplexer* on;
            [[nodiscard]] io::io_multiplexer& multiplexer() const noexcept { return *on; }
            void configure(io::operation& configured) const noexcept {
                io::configure_external(configured, *on, *wakes, 10s);
            }
            [[nodiscard]] static result_type collect(const io::operation&) noexcept { return {}; }
        };
        auto waiting = io::connect(sender{waker, loop.get()}, receiver{&is_done});
        waiting.start();
        while (not is_done)
            (void)loop->run();
        return waker->was_woken();
    }

    io::test_directory directory{"/dev/shm"};
    io::file_handle file =
        io::file_handle::open(directory.anchor(), "locks", io::mode::write, io::creation::if_needed).value();
    descriptor_pool descriptors{file.descriptor(), O_RDWR};
    int holder = descriptors.take().value();
    int waiter = descriptors.take().value();
    std::unique_ptr<io::io_multiplexer> loop = io::best_available().value();
    lock_threads threads;
};

TEST_F(lock_threads_of_a_file, get_a_lock_when_its_holder_unlocks_and_wake_the_loop) {
    ASSERT_EQ(kernel_lock::try_lock(holder, byte, kind::exclusive), 0);
    const auto waker = wake_up::create();
    auto* const one = threads.begin(waiter, byte, kind::shared, waker);
    ASSERT_NE(one, nullptr);
    const std::jthread other([&] {
        std::this_thread::sleep_for(10ms);
        kernel_lock::unlock(holder, byte);
    });
    EXPECT_TRUE(sleeps_until_woken(waker));
    EXPECT_EQ(threads.end(one), 0);
    EXPECT_FALSE(is_free_for(holder)) << "the waiter's description has it";
}

TEST_F(lock_threads_of_a_file, end_a_wait_early_at_any_point_of_its_thread_and_leave_no_waiter) {
    ASSERT_EQ(kernel_lock::try_lock(holder, byte, kind::exclusive), 0);
    for (int round = 0; round != 300; ++round) {
        const auto waker = wake_up::create();
        auto* const one = threads.begin(waiter, byte, kind::shared, waker);
        ASSERT_NE(one, nullptr);
        // Not at all, and up to half a millisecond: before it enters the system call, while it
        // does, and inside.
        if (round % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(round * 5 / 3));
        EXPECT_EQ(threads.end(one), ECANCELED);
        EXPECT_FALSE(waker->was_woken());
    }
    kernel_lock::unlock(holder, byte);
    // A remaining waiter would have it now.
    EXPECT_TRUE(is_free_for(holder));
}

TEST_F(lock_threads_of_a_file, end_a_wait_that_is_granted_at_the_same_moment_with_or_without_the_lock) {
    for (int round = 0; round != 300; ++round) {
        ASSERT_EQ(kernel_lock::try_lock(holder, byte, kind::exclusive), 0);
        const auto waker = wake_up::create();
        auto* const one = threads.begin(waiter, byte, kind::shared, waker);
        ASSERT_NE(one, nullptr);
        std::jthread other([&] { kernel_lock::unlock(holder, byte); });
        if (round % 2 == 0) std::this_thread::yield();
        const int code = threads.end(one);
        EXPECT_TRUE(code == 0 or code == ECANCELED) << code;
        other.join();
        kernel_lock::unlock(waiter, byte);
        EXPECT_TRUE(is_free_for(holder)) << "and no thread takes it later";
    }
}

TEST_F(lock_threads_of_a_file, report_a_failure_as_the_outcome) {
    const auto waker = wake_up::create();
    auto* const one = threads.begin(-1, byte, kind::shared, waker);
    ASSERT_NE(one, nullptr);
    EXPECT_TRUE(sleeps_until_woken(waker));
    EXPECT_EQ(threads.end(one), EBADF);
}

TEST_F(lock_threads_of_a_file, are_not_waited_for_in_a_forked_child) {
    auto of_parent = std::make_unique<lock_threads>();
    const auto waker = wake_up::create();
    auto* const one = of_parent->begin(waiter, byte, kind::shared, waker);
    ASSERT_NE(one, nullptr);
    EXPECT_TRUE(sleeps_until_woken(waker));
    EXPECT_EQ(of_parent->end(one), 0) << "and keeps an idle thread";
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(10);  // ends a child that waits
        of_parent->leave_to_parent();
        of_parent.reset();
        ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(lock_threads_of_a_file, have_a_limited_number) {
    ASSERT_EQ(kernel_lock::try_lock(holder, byte, kind::exclusive), 0);
    std::vector<lock_threads::wait*> waits;
    for (std::size_t i = 0; i != limits::lock_threads_max; ++i) {
        waits.push_back(threads.begin(waiter, byte, kind::shared, wake_up::create()));
        ASSERT_NE(waits.back(), nullptr);
    }
    EXPECT_EQ(threads.begin(waiter, byte, kind::shared, wake_up::create()), nullptr);
    for (auto* const each : waits)
        EXPECT_EQ(threads.end(each), ECANCELED);
    auto* const again = threads.begin(waiter, byte, kind::shared, wake_up::create());
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(threads.end(again), ECANCELED);
}

std::atomic<int> handled;

TEST_F(lock_threads_of_a_file, leave_the_signals_of_the_program_to_its_other_threads) {
    handled = 0;
    struct sigaction counts{};
    counts.sa_handler = [](int) { ++handled; };
    struct sigaction before{};
    ASSERT_EQ(::sigaction(SIGUSR1, &counts, &before), 0);
    ASSERT_EQ(kernel_lock::try_lock(holder, byte, kind::exclusive), 0);
    auto* const one = threads.begin(waiter, byte, kind::shared, wake_up::create());
    ASSERT_NE(one, nullptr);
    // No other thread of the program takes it now: so it stays pending, unless a thread of ours
    // handles it.
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
    ::kill(::getpid(), SIGUSR1);
    std::this_thread::sleep_for(5ms);
    const timespec at_most{.tv_sec = 10, .tv_nsec = 0};
    EXPECT_EQ(handled, 0);
    EXPECT_EQ(handled != 0 ? 0 : ::sigtimedwait(&only, nullptr, &at_most), SIGUSR1);
    EXPECT_EQ(threads.end(one), ECANCELED);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace sluice::fsmutex

#include "sluice/io/call/sigpipe_guard.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/stream/splice.hpp"

namespace sluice::io {
namespace {

bool is_blocked() {
    sigset_t blocked;
    EXPECT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    return ::sigismember(&blocked, SIGPIPE) == 1;
}

bool is_pending() {
    sigset_t pending;
    EXPECT_EQ(::sigpending(&pending), 0);
    return ::sigismember(&pending, SIGPIPE) == 1;
}

sigset_t broken_pipe() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    return set;
}

pipe_handle writer_without_reader() {
    return std::move(pipe_handle::anonymous().value().writer);
}

error write_error(pipe_handle& to) {
    static constexpr std::byte one{};
    return to.write(io_request<const_bytes_type>{{&one, 1}}).error();
}

// The first signal that is delivered would terminate the program.
TEST(sigpipe_guard, a_write_without_a_reader_fails_without_a_signal_under_a_guard) {
    auto writer = writer_without_reader();
    {
        const sigpipe_guard guard;
        EXPECT_EQ(write_error(writer), std::errc::broken_pipe);
        EXPECT_TRUE(is_pending());
    }
    EXPECT_FALSE(is_pending());
    EXPECT_FALSE(is_blocked());
}

TEST(sigpipe_guard, nested_guards_protect_until_the_last_is_destroyed) {
    auto writer = writer_without_reader();
    std::optional<sigpipe_guard> first(std::in_place);
    std::optional<sigpipe_guard> second(std::in_place);
    first.reset();
    EXPECT_TRUE(is_blocked());
    EXPECT_TRUE(sigpipe_guard::is_active());
    EXPECT_EQ(write_error(writer), std::errc::broken_pipe);
    second.reset();
    EXPECT_FALSE(is_blocked());
    EXPECT_FALSE(sigpipe_guard::is_active());
    EXPECT_FALSE(is_pending());
}

TEST(sigpipe_guard, a_signal_that_was_blocked_and_pending_before_stays_so) {
    const sigset_t set = broken_pipe();
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
    ASSERT_EQ(::pthread_kill(::pthread_self(), SIGPIPE), 0);
    { const sigpipe_guard guard; }
    EXPECT_TRUE(is_blocked());
    EXPECT_TRUE(is_pending());
    const timespec at_once{};
    EXPECT_EQ(::sigtimedwait(&set, nullptr, &at_once), SIGPIPE);
    ASSERT_EQ(::pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
}

TEST(sigpipe_guard, other_signals_blocked_under_a_guard_stay_blocked) {
    sigset_t other;
    ::sigemptyset(&other);
    ::sigaddset(&other, SIGUSR2);
    {
        const sigpipe_guard guard;
        ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &other, nullptr), 0);
    }
    sigset_t blocked;
    ASSERT_EQ(::pthread_sigmask(SIG_UNBLOCK, &other, &blocked), 0);
    EXPECT_EQ(::sigismember(&blocked, SIGUSR2), 1);
    EXPECT_EQ(::sigismember(&blocked, SIGPIPE), 0);
}

TEST(sigpipe_guard, a_transfer_leaves_the_signal_to_the_guard_of_its_thread) {
    auto file = file_handle::temp_inode(path_handle::temporary_files().value()).value();
    static constexpr std::byte content[100]{};
    ASSERT_TRUE(file.write(io_request<const_bytes_type>{content, 0}).has_value());
    auto writer = writer_without_reader();
    const sigpipe_guard guard;
    EXPECT_EQ(send_file_to(file, writer, {}).error(), std::errc::broken_pipe);
    EXPECT_TRUE(is_blocked());
    EXPECT_TRUE(is_pending());  // a transfer that protected itself would have discarded it
}

TEST(sigpipe_guard, protects_only_its_own_thread) {
    const sigpipe_guard guard;
    std::thread([] { EXPECT_FALSE(sigpipe_guard::is_active()); }).join();
}

// Returns the number of threads of this process that block SIGPIPE, according to the kernel.
int threads_that_block_it() {
    int count = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(thread.path() / "status");
        for (std::string line; std::getline(status, line);) {
            if (not line.starts_with("SigBlk:")) continue;
            count += static_cast<int>(std::stoull(line.substr(7), nullptr, 16) >> (SIGPIPE - 1) & 1);
        }
    }
    return count;
}

TEST(sigpipe_guard, worker_threads_of_a_multiplexer_have_a_guard) {
    const int before = threads_that_block_it();
    const auto multiplexer = make_epoll_multiplexer(2).value();
    // They have been started, but may not have run yet.
    for (int i = 0; i < 5000 and threads_that_block_it() != before + 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(threads_that_block_it(), before + 2);
}

}  // namespace
}  // namespace sluice::io

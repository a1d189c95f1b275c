#include "sluice/cli/writer_lock.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

namespace sluice::cli {
namespace {

class held_file : public testing::Test {
protected:
    held_file() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sluice-hold-XXXXXX").string();
        directory = mkdtemp(pattern.data());
        path = (directory / "image").string();
    }
    ~held_file() override { std::filesystem::remove_all(directory); }

    // Starts another process, which holds the file until it is killed. Returns when it holds it.
    [[nodiscard]] pid_t start_holder() const {
        int ready[2];
        EXPECT_EQ(pipe(ready), 0);
        const pid_t child = fork();
        if (child == 0) {
            const auto held = writer_lock::take(path);
            if (held) (void)!write(ready[1], "x", 1);
            for (;;)
                pause();
        }
        close(ready[1]);
        char byte = 0;
        EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the other process has it";
        close(ready[0]);
        return child;
    }
    static void end(pid_t child) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }

    std::filesystem::path directory;
    std::string path;
};

TEST_F(held_file, excludes_flock_and_is_refused_while_another_program_holds_flock) {
    const std::string lock = path + ".lock";
    {
        const auto mine = writer_lock::take(path);
        ASSERT_TRUE(mine);
        const int other = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
        EXPECT_EQ(::flock(other, LOCK_EX | LOCK_NB), -1);
        ::close(other);
    }
    EXPECT_FALSE(std::filesystem::exists(lock));
    const int other = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
    const auto refused = writer_lock::take(path, deadline::zero());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), std::errc::device_or_resource_busy);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("by flock(2)"));
    EXPECT_TRUE(std::filesystem::exists(lock)) << "the process with the flock keeps the file";
    ::close(other);
    EXPECT_TRUE(writer_lock::take(path));
}

TEST_F(held_file, is_refused_to_a_second_writer_with_the_holder_and_its_start_time) {
    const pid_t other = start_holder();
    const auto mine = writer_lock::take(path, std::chrono::milliseconds(20));
    end(other);
    ASSERT_FALSE(mine);
    EXPECT_EQ(mine.error(), std::errc::device_or_resource_busy);
    char host[256] = {};
    ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
    EXPECT_THAT(mine.error().message(), testing::HasSubstr(path));
    EXPECT_THAT(mine.error().message(),
                testing::HasSubstr("held by process " + std::to_string(other) + " on " + host + " since 20"));
}

TEST_F(held_file, is_acquired_after_its_holder_was_killed_and_reports_its_death) {
    end(start_holder());
    const auto mine = writer_lock::take(path);
    ASSERT_TRUE(mine) << mine.error().message();
    EXPECT_TRUE(mine->previous_holder_died());
}

TEST_F(held_file, is_released_by_its_holder_without_a_trace) {
    {
        const auto mine = writer_lock::take(path);
        ASSERT_TRUE(mine) << mine.error().message();
        EXPECT_FALSE(mine->previous_holder_died());
        EXPECT_FALSE(writer_lock::take(path)) << "within one process, too";
    }
    EXPECT_TRUE(std::filesystem::is_empty(directory));
    EXPECT_TRUE(writer_lock::take(path));
}

TEST_F(held_file, is_shared_by_readers_that_keep_writers_away) {
    auto first = writer_lock::keep_writers_away(path);
    ASSERT_TRUE(first) << first.error().message();
    {
        const auto second = writer_lock::keep_writers_away(path);
        ASSERT_TRUE(second) << second.error().message();
        EXPECT_FALSE(writer_lock::take(path, std::chrono::milliseconds(1)));
    }
    EXPECT_FALSE(writer_lock::take(path, std::chrono::milliseconds(1)));
    first = failure({ECANCELED, "gone"});
    const auto writer = writer_lock::take(path);
    ASSERT_TRUE(writer);
    const auto refused = writer_lock::keep_writers_away(path, std::chrono::milliseconds(1));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("held by process " + std::to_string(getpid())));
}

TEST_F(held_file, stays_held_when_the_hold_is_moved) {
    auto first = writer_lock::take(path);
    ASSERT_TRUE(first);
    const auto kept = std::make_shared<writer_lock>(*std::move(first));
    first = failure({ECANCELED, "gone"});
    EXPECT_FALSE(writer_lock::take(path, std::chrono::milliseconds(1)));
}

TEST_F(held_file, accepts_a_lock_file_left_by_an_older_release) {
    std::ofstream(path + ".lock");
    EXPECT_TRUE(writer_lock::take(path));
}

TEST_F(held_file, is_refused_with_a_reason_if_no_lock_file_can_be_created) {
    const auto refused = writer_lock::take((directory / "absent" / "image").string());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace sluice::cli

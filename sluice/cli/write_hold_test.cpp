#include "sluice/cli/write_hold.hpp"

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
        folder = mkdtemp(pattern.data());
        path = (folder / "image").string();
    }
    ~held_file() override { std::filesystem::remove_all(folder); }

    // Another process that holds the file until it is killed; this returns once it does.
    [[nodiscard]] pid_t start_holder() const {
        int ready[2];
        EXPECT_EQ(pipe(ready), 0);
        const pid_t child = fork();
        if (child == 0) {
            const auto held = write_hold::take(path);
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

    std::filesystem::path folder;
    std::string path;
};

TEST_F(held_file, excludes_flock_and_is_refused_while_another_program_has_that) {
    const std::string lock = path + ".lock";
    {
        const auto mine = write_hold::take(path);
        ASSERT_TRUE(mine);
        const int other = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
        EXPECT_EQ(::flock(other, LOCK_EX | LOCK_NB), -1);
        ::close(other);
    }
    EXPECT_FALSE(std::filesystem::exists(lock));
    const int other = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
    const auto refused = write_hold::take(path, deadline::zero());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), std::errc::device_or_resource_busy);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("by flock(2)"));
    EXPECT_TRUE(std::filesystem::exists(lock)) << "who has it locked keeps it";
    ::close(other);
    EXPECT_TRUE(write_hold::take(path));
}

TEST_F(held_file, is_refused_to_a_second_writer_who_is_told_by_whom_and_since_when) {
    const pid_t other = start_holder();
    const auto mine = write_hold::take(path, std::chrono::milliseconds(20));
    end(other);
    ASSERT_FALSE(mine);
    EXPECT_EQ(mine.error(), std::errc::device_or_resource_busy);
    char host[256] = {};
    ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
    EXPECT_THAT(mine.error().message(), testing::HasSubstr(path));
    EXPECT_THAT(mine.error().message(),
                testing::HasSubstr("held by process " + std::to_string(other) + " on " + host + " since 20"));
}

TEST_F(held_file, can_be_had_once_its_holder_was_killed_and_the_next_is_told) {
    end(start_holder());
    const auto mine = write_hold::take(path);
    ASSERT_TRUE(mine) << mine.error().message();
    EXPECT_TRUE(mine->previous_holder_died());
}

TEST_F(held_file, is_given_back_by_its_holder_without_a_trace) {
    {
        const auto mine = write_hold::take(path);
        ASSERT_TRUE(mine) << mine.error().message();
        EXPECT_FALSE(mine->previous_holder_died());
        EXPECT_FALSE(write_hold::take(path)) << "within one process, too";
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    EXPECT_TRUE(write_hold::take(path));
}

TEST_F(held_file, is_shared_by_those_who_only_keep_writers_away) {
    auto first = write_hold::keep_writers_away(path);
    ASSERT_TRUE(first) << first.error().message();
    {
        const auto second = write_hold::keep_writers_away(path);
        ASSERT_TRUE(second) << second.error().message();
        EXPECT_FALSE(write_hold::take(path, std::chrono::milliseconds(1)));
    }
    EXPECT_FALSE(write_hold::take(path, std::chrono::milliseconds(1)));
    first = failure({ECANCELED, "gone"});
    const auto writer = write_hold::take(path);
    ASSERT_TRUE(writer);
    const auto refused = write_hold::keep_writers_away(path, std::chrono::milliseconds(1));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("held by process " + std::to_string(getpid())));
}

TEST_F(held_file, stays_held_when_the_hold_is_moved) {
    auto first = write_hold::take(path);
    ASSERT_TRUE(first);
    const auto kept = std::make_shared<write_hold>(*std::move(first));
    first = failure({ECANCELED, "gone"});
    EXPECT_FALSE(write_hold::take(path, std::chrono::milliseconds(1)));
}

TEST_F(held_file, can_have_a_lock_file_that_an_older_release_left_behind) {
    std::ofstream(path + ".lock");
    EXPECT_TRUE(write_hold::take(path));
}

TEST_F(held_file, is_refused_with_a_reason_where_no_lock_file_can_be) {
    const auto refused = write_hold::take((folder / "absent" / "image").string());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace sluice::cli

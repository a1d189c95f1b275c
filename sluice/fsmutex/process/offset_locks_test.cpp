#include "sluice/fsmutex/process/offset_locks.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace sluice::fsmutex {
namespace {

using state = offset_locks::state;

class offsets : public testing::Test {
protected:
    offsets() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sluice-offsets-XXXXXX").string();
        directory_ = mkdtemp(pattern.data());
    }
    ~offsets() override { std::filesystem::remove_all(directory_); }

    [[nodiscard]] offset_locks fresh() const {
        return offset_locks::open({}, (directory_ / "locks").string()).value();
    }

private:
    std::filesystem::path directory_;
};

TEST_F(offsets, conflict_with_others_according_to_their_state) {
    offset_locks mine = fresh();
    offset_locks theirs = fresh();
    EXPECT_TRUE(mine.set({0, 9}, state::shared).value());
    EXPECT_TRUE(theirs.set({5, 20}, state::shared).value());
    EXPECT_FALSE(theirs.is_settable({9, 9}, state::exclusive).value());
    EXPECT_FALSE(theirs.set({9, 30}, state::exclusive).value());
    EXPECT_TRUE(mine.is_settable({21, 30}, state::exclusive).value()) << "a refused request changed nothing";
    EXPECT_TRUE(mine.set({21, 30}, state::exclusive).value());
    EXPECT_FALSE(theirs.is_settable({30, 31}, state::shared).value());
    EXPECT_TRUE(theirs.is_settable({30, 31}, state::free).value());
}

TEST_F(offsets, have_one_state_which_the_next_replaces_in_part_or_whole) {
    offset_locks mine = fresh();
    offset_locks theirs = fresh();
    ASSERT_TRUE(mine.set({0, 99}, state::exclusive).value());
    ASSERT_TRUE(mine.set({10, 19}, state::shared).value());
    ASSERT_TRUE(mine.set({20, 29}, state::free).value());
    EXPECT_FALSE(theirs.is_settable({9, 9}, state::shared).value());
    EXPECT_TRUE(theirs.is_settable({10, 29}, state::shared).value());
    EXPECT_FALSE(theirs.is_settable({19, 19}, state::exclusive).value());
    EXPECT_TRUE(theirs.is_settable({20, 29}, state::exclusive).value());
    EXPECT_FALSE(theirs.is_settable({29, 30}, state::shared).value());
}

TEST_F(offsets, reach_as_far_as_the_kernel_can_count) {
    offset_locks mine = fresh();
    offset_locks theirs = fresh();
    constexpr std::uint64_t last = offset_locks::offset_max;
    ASSERT_TRUE(mine.set({last, last}, state::exclusive).value());
    EXPECT_FALSE(theirs.is_settable({0, last}, state::shared).value());
    EXPECT_TRUE(theirs.set({0, last - 1}, state::exclusive).value());
    EXPECT_FALSE(mine.is_settable({0, 0}, state::shared).value());
}

TEST_F(offsets, are_free_again_when_their_holder_is_destroyed_or_killed) {
    offset_locks mine = fresh();
    {
        offset_locks theirs = fresh();
        ASSERT_TRUE(theirs.set({1, 2}, state::exclusive).value());
        EXPECT_FALSE(mine.is_settable({2, 2}, state::shared).value());
    }
    EXPECT_TRUE(mine.is_settable({2, 2}, state::exclusive).value());

    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        offset_locks of_child = fresh();
        (void)!write(ready[1], of_child.set({7, 7}, state::exclusive).value() ? "y" : "n", 1);
        for (;;)
            pause();
    }
    char said = 0;
    ASSERT_EQ(read(ready[0], &said, 1), 1);
    EXPECT_EQ(said, 'y');
    EXPECT_FALSE(mine.is_settable({7, 7}, state::exclusive).value());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(mine.is_settable({7, 7}, state::exclusive).value());
}

}  // namespace
}  // namespace sluice::fsmutex

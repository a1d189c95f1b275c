#include "sluice/fsmutex/memory_map.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "sluice/fsmutex/process/processes_testing.hpp"
#include "sluice/fsmutex/queue/mapped_queue.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;

class a_mapped_mutex : public testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<shared_fs_mutex> open() const {
        return memory_map::open(directory.anchor(), "map").value();
    }
    io::test_directory directory{std::filesystem::current_path().string()};
};

TEST(yield_policy, rests_after_it_was_slow_and_longer_each_time_until_it_is_quick_again) {
    yield_policy habit;
    const auto waits_until_due = [&] {
        unsigned waits = 0;
        while (not habit.is_due())
            ++waits;
        return waits;
    };
    EXPECT_EQ(waits_until_due(), 0);
    habit.took(yield_policy::away_max);
    EXPECT_EQ(waits_until_due(), 0);
    habit.took(3ms);
    EXPECT_EQ(waits_until_due(), yield_policy::rest_min);
    habit.took(3ms);
    EXPECT_EQ(waits_until_due(), 2 * yield_policy::rest_min);
    for (int i = 0; i != 20; ++i)
        habit.took(3ms);
    EXPECT_EQ(waits_until_due(), yield_policy::rest_max);
    for (int i = 0; i != 20; ++i)
        habit.took(10us);
    EXPECT_EQ(waits_until_due(), 0);
    habit.took(3ms);
    EXPECT_EQ(waits_until_due(), yield_policy::rest_min);
}

TEST_F(a_mapped_mutex, is_refused_in_a_file_with_other_content_which_stays_as_it_is) {
    for (const std::size_t size : {std::size_t{1} << 20, sizeof(mapped::memory)}) {
        std::string content(size, '\0');
        content[1080] = 'S';  // the offset of ext4's signature
        directory.write("map", content);
        const auto refused = memory_map::open(directory.anchor(), "map");
        EXPECT_EQ(refused.error(), std::errc::bad_message);
        EXPECT_TRUE(directory.content("map") == content);
    }
}

TEST_F(a_mapped_mutex, is_refused_in_zeros_of_another_size) {
    const std::string content(1 << 20, '\0');
    directory.write("map", content);
    EXPECT_EQ(memory_map::open(directory.anchor(), "map").error(), std::errc::bad_message);
    EXPECT_TRUE(directory.content("map") == content);
}

TEST_F(a_mapped_mutex, starts_again_where_its_creator_died_before_it_wrote_the_version) {
    directory.write("map", std::string(sizeof(mapped::memory), '\0'));
    EXPECT_TRUE(open()->try_lock(entity(1)));
}

TEST_F(a_mapped_mutex, is_refused_after_a_fork_and_unchanged_by_the_child) {
    const auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    process child([&] {
        if (mutex->lock(entity(2)).error() != std::errc::state_not_recoverable)
            fail_child("the child locked");
        held.unlock();
        if (open()->try_lock(entity(1))) fail_child("the child released its parent's lock");
    });
    EXPECT_TRUE(child.join());
    EXPECT_FALSE(open()->try_lock(entity(1)));
}

TEST_F(a_mapped_mutex, notices_the_death_of_a_holder_whose_child_lives_on) {
    const auto mutex = open();
    const shared_memory<std::atomic<pid_t>> grandchild;
    process other([&] {
        const auto own = open();
        const auto held = own->lock(entity(1));
        if (const pid_t id = ::fork(); id != 0) {
            grandchild->store(id);
        }
        std::this_thread::sleep_for(1h);
    });
    ASSERT_TRUE(eventually([&] { return grandchild->load() != 0; }));
    EXPECT_FALSE(mutex->try_lock(entity(1)));
    other.send(SIGKILL);
    const auto held = mutex->lock(entity(1), 10s);
    ::kill(grandchild->load(), SIGKILL);
    ASSERT_TRUE(held) << held.error().message();
    EXPECT_TRUE(held->owner_died());
}

// /proc shows the start of a process in the reader's namespace of times, which may differ from that
// of the process.
TEST_F(a_mapped_mutex, does_not_treat_a_living_process_with_another_clock_as_dead) {
    const auto mutex = open();
    const shared_memory<std::atomic<int>> begun;
    const process other([&] {
        const bool has_own_times = enter_own_times();
        const auto own = open();
        const auto held = own->lock(entity(1));
        begun->store(has_own_times ? 2 : 1);
        std::this_thread::sleep_for(1h);
    });
    ASSERT_TRUE(eventually([&] { return begun->load() != 0; }));
    if (begun->load() == 1) GTEST_SKIP() << "this process may not begin a namespace of times";
    EXPECT_EQ(mutex->lock(entity(1), 300ms).error(), std::errc::timed_out);
}

TEST_F(a_mapped_mutex, is_granted_within_a_tenth_of_a_second_after_its_holder_died) {
    const auto mutex = open();
    process other = process_that_holds([&] { return open(); }, entity(1));
    std::chrono::steady_clock::time_point died;
    std::jthread killer([&] {
        std::this_thread::sleep_for(50ms);
        other.stop();
        died = std::chrono::steady_clock::now();
    });
    EXPECT_TRUE(mutex->lock(entity(1)).value().owner_died());
    const auto granted = std::chrono::steady_clock::now();
    killer.join();
    EXPECT_LT(granted - died, 5s);  // 50 ms on a machine that is not busy
}

TEST_F(a_mapped_mutex, is_refused_if_it_is_something_else_and_left_as_it_was) {
    for (const std::string& content : {std::string("short"), std::string(5000, 'x')}) {
        directory.write("map", content);
        EXPECT_EQ(memory_map::open(directory.anchor(), "map").error(), std::errc::bad_message);
        EXPECT_EQ(directory.content("map"), content);
    }
}

TEST_F(a_mapped_mutex, is_recreated_after_a_reboot) {
    {
        const auto mutex = open();
        const auto held = mutex->lock(entity(1)).value();
        std::string content = directory.content("map");
        content[8] = content[8] == 'f' ? 'e' : 'f';  // the boot's id
        directory.write("old", content);
    }
    const auto mutex = memory_map::open(directory.anchor(), "old").value();
    EXPECT_FALSE(mutex->try_lock(entity(1)).value().owner_died());
}

TEST_F(a_mapped_mutex, is_not_created_without_space_for_all_of_it) {
    process other([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{.rlim_cur = 65536, .rlim_max = 65536};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        if (memory_map::open(directory.anchor(), "map")) fail_child("it was created");
    });
    EXPECT_TRUE(other.join());
    EXPECT_TRUE(open()->try_lock(entity(1))) << "the remaining file can be recreated";
}

}  // namespace
}  // namespace sluice::fsmutex

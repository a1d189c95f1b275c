#include "sluice/fsmutex/lock_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/fsmutex/process/process_identity.hpp"
#include "sluice/fsmutex/process/processes_testing.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace {

std::function<void()> once_a_file_is_made;  // before it is locked
unsigned refusals = 0;  // of opens of an existing file for writing, as if by its permissions

}  // namespace

// The linker redirects openat(2) to this function.
extern "C" int __real_openat(int at, const char* path, int flags, ...);
extern "C" int __wrap_openat(int at, const char* path, int flags, ...) {
    std::va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : mode_t{0};
    va_end(more);
    if ((flags & O_ACCMODE) == O_RDWR and (flags & O_CREAT) == 0 and refusals != 0) {
        --refusals;
        errno = EACCES;
        return -1;
    }
    const int made = __real_openat(at, path, flags, mode);
    if (made >= 0 and (flags & O_EXCL) != 0 and once_a_file_is_made)
        std::exchange(once_a_file_is_made, nullptr)();
    return made;
}

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;

class lock_files_in : public testing::Test {
protected:
    io::test_directory directory{std::filesystem::current_path().string()};
    std::unique_ptr<shared_fs_mutex> mutex = lock_files::open(directory.anchor(), "locks").value();
    const std::string name = "locks/000000000000002a";
    [[nodiscard]] bool is_locked() { return not mutex->try_lock(entity(42)); }
};

TEST_F(lock_files_in, a_directory_are_named_by_16_digits_and_name_their_holder_until_unlocked) {
    auto held = mutex->lock(entity(42)).value();
    const std::string text = directory.content(name);
    EXPECT_NE(text.find("\npid " + std::to_string(::getpid()) + "\n"), std::string::npos) << text;
    held.unlock();
    EXPECT_FALSE(directory.exists(name));
}

TEST_F(lock_files_in, a_directory_are_taken_over_without_a_lock_holder_and_report_the_death_once) {
    directory.write(
        name,
        "host x\nboot y\npid 1\nstart 1\nand a line too long for this version of the program to write\n");
    auto held = mutex->try_lock(entity(42)).value();
    EXPECT_TRUE(held.owner_died());
    EXPECT_EQ(directory.content(name).find("host x"), std::string::npos);
    EXPECT_EQ(directory.content(name).find("too long"), std::string::npos);
    held.unlock();
    EXPECT_FALSE(mutex->try_lock(entity(42)).value().owner_died());
}

TEST_F(lock_files_in, a_directory_without_a_record_have_had_no_holder) {
    directory.write(name, "");
    EXPECT_FALSE(mutex->try_lock(entity(42)).value().owner_died());
}

TEST_F(lock_files_in, a_directory_report_the_death_of_an_owner_that_locked_a_new_one_before_its_creator) {
    once_a_file_is_made = [this] { directory.write(name, "host x\n"); };  // and was killed
    auto held = mutex->try_lock(entity(42)).value();
    EXPECT_TRUE(held.owner_died());
    held.unlock();
    EXPECT_FALSE(mutex->try_lock(entity(42)).value().owner_died());
}

TEST_F(lock_files_in, a_directory_keep_the_report_of_a_death_while_the_new_owner_waits_for_others) {
    directory.write(name, "host x\n");
    {
        const auto conflicting = mutex->lock(entity(43)).value();
        EXPECT_FALSE(mutex->try_lock(std::vector{entity(42), entity(43)}));
    }
    EXPECT_TRUE(mutex->try_lock(entity(42)).value().owner_died());
}

TEST_F(lock_files_in, a_directory_are_not_broken_while_their_creator_lives_for_any_content) {
    directory.write(name, "");
    const int file = ::open(directory.path_of(name).c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(kernel_lock::try_lock(file, {}, kernel_lock::kind::exclusive), 0);
    EXPECT_TRUE(is_locked());
    ::close(file);
    EXPECT_FALSE(is_locked());
}

TEST_F(lock_files_in, a_directory_are_released_although_a_forked_child_has_their_descriptors) {
    auto held = mutex->lock(entity(42)).value();
    const shared_memory<std::atomic<bool>> is_granted;
    process child([&] {
        if (lock_files::open(directory.anchor(), "locks").value()->lock(entity(42))) is_granted->store(true);
    });
    ASSERT_TRUE(eventually([&] { return is_asleep(child.id()); }));
    std::this_thread::sleep_for(50ms);
    held.unlock();
    EXPECT_TRUE(eventually([&] { return is_granted->load(); }, 5s));
}

TEST_F(lock_files_in, a_directory_are_opened_again_until_their_creator_has_given_others_access) {
    directory.write(name, "");
    refusals = 3;
    EXPECT_TRUE(mutex->try_lock(entity(42)));
    EXPECT_EQ(refusals, 0U);
}

TEST_F(lock_files_in, a_directory_that_others_may_not_open_are_an_error_in_the_end) {
    directory.write(name, "");
    refusals = 1000;
    EXPECT_EQ(mutex->try_lock(entity(42)).error(), std::errc::permission_denied);
    EXPECT_GT(refusals, 0U);
    refusals = 0;
}

TEST_F(lock_files_in, a_directory_are_not_created_through_a_symbolic_link_that_others_may_have_planted) {
    std::filesystem::create_directory(directory.path_of("target"));
    std::filesystem::create_directory_symlink("target", directory.path_of("link"));
    for (const char* const path : {"link", "link/"}) {
        ASSERT_EQ(::chmod(directory.path().c_str(), 0777), 0);
        EXPECT_EQ(lock_files::open(directory.anchor(), path).error(),
                  std::errc::too_many_symbolic_link_levels);
        ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
        EXPECT_TRUE(lock_files::open(directory.anchor(), path));
    }
    EXPECT_TRUE(std::filesystem::is_empty(directory.path_of("target")));
}

// Several processes find the same file of a dead creator: only one of them may take it over, at any
// moment.
TEST_F(lock_files_in, a_directory_are_taken_over_by_one_of_many_that_find_them_dead) {
    struct world {
        std::atomic<int> inside;
        std::atomic<int> waker;
    };
    const shared_memory<world> all;
    for (int round = 0; round != 30; ++round) {
        directory.write(name, "host x\n");
        all->waker.store(0);
        std::vector<process> takers;
        for (int i = 0; i != 4; ++i)
            takers.emplace_back([&] {
                const auto own = lock_files::open(directory.anchor(), "locks").value();
                const auto held = own->lock(entity(42)).value();
                if (all->inside.fetch_add(1) != 0) fail_child("two have taken it over");
                if (held.owner_died()) all->waker.fetch_add(1);
                std::this_thread::sleep_for(200us);
                all->inside.fetch_sub(1);
            });
        for (process& each : takers)
            EXPECT_TRUE(each.join());
        EXPECT_EQ(all->waker.load(), 1);
    }
}

}  // namespace
}  // namespace sluice::fsmutex

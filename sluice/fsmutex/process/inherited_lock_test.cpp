#include "sluice/fsmutex/process/inherited_lock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sluice/fsmutex/best_available.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

const entity whole_file = entity::of_name("");

class an_inherited_lock : public testing::TestWithParam<algorithm> {
protected:
    [[nodiscard]] std::unique_ptr<shared_fs_mutex> open_mutex() const {
        return open(GetParam(), directory.anchor(), "locks").value();
    }
    [[nodiscard]] static result<void> try_acquire(inherited_lock& lock) {
        return lock.acquire(deadline::zero(), dependencies::of_this_machine());
    }
    [[nodiscard]] inherited_lock acquired(entity wanted) const {
        auto lock = inherited_lock::beside(*mutex, std::span(&wanted, 1)).value();
        EXPECT_TRUE(try_acquire(lock));
        return lock;
    }
    [[nodiscard]] bool is_contended(entity wanted) const {
        auto lock = inherited_lock::beside(*mutex, std::span(&wanted, 1)).value();
        const auto locked = try_acquire(lock);
        if (locked) lock.release();
        return not locked and locked.error() == std::errc::timed_out;
    }
    io::test_directory directory{"/dev/shm"};
    std::unique_ptr<shared_fs_mutex> mutex = open_mutex();
};

TEST_P(an_inherited_lock, on_the_whole_file_lasts_until_the_last_copy_of_its_descriptor_is_closed) {
    int copy = -1;
    {
        const auto lock = acquired(whole_file);
        copy = ::fcntl(lock.descriptor(), F_DUPFD_CLOEXEC, 0);  // as a child inherits it
    }
    EXPECT_TRUE(is_contended(whole_file));
    EXPECT_TRUE(is_contended(entity(whole_file.number(), lock_mode::shared)));
    ::close(copy);
    EXPECT_FALSE(is_contended(whole_file));
}

TEST_P(an_inherited_lock, on_the_whole_file_excludes_flock_and_is_shared_with_shared_ones) {
    const int other = ::open(directory.path_of("locks").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(other, 0);
    {
        const auto lock = acquired(entity(whole_file.number(), lock_mode::shared));
        EXPECT_EQ(try_lock_whole_file(other, lock_mode::exclusive), EAGAIN);
        EXPECT_EQ(try_lock_whole_file(other, lock_mode::shared), 0);
        EXPECT_TRUE(is_contended(whole_file));
    }
    ::close(other);
    EXPECT_FALSE(is_contended(whole_file));
}

TEST_P(an_inherited_lock, that_was_released_is_free_for_others_although_copies_of_it_are_open) {
    auto lock = acquired(whole_file);
    const int copy = ::fcntl(lock.descriptor(), F_DUPFD_CLOEXEC, 0);
    lock.release();
    EXPECT_FALSE(is_contended(whole_file));
    ::close(copy);
}

INSTANTIATE_TEST_SUITE_P(, an_inherited_lock,
                         testing::Values(algorithm::memory_map, algorithm::atomic_append,
                                         algorithm::byte_ranges, algorithm::lock_files),
                         [](const auto& one) { return std::string(name_of(one.param)); });

class an_inherited_lock_on_a_queue : public an_inherited_lock {};

TEST_P(an_inherited_lock_on_a_queue, of_names_concerns_no_others) {
    const auto lock = acquired(entity(7));
    EXPECT_TRUE(is_contended(entity(7)));
    EXPECT_TRUE(is_contended(entity(7, lock_mode::shared)));
    EXPECT_FALSE(is_contended(entity(8)));
    EXPECT_FALSE(is_contended(whole_file));
}

TEST_P(an_inherited_lock_on_a_queue, is_exclusive_for_a_name_that_is_wanted_both_ways) {
    const std::vector wanted{entity(7), entity(7, lock_mode::shared)};
    auto lock = inherited_lock::beside(*mutex, wanted).value();
    ASSERT_TRUE(try_acquire(lock));
    EXPECT_TRUE(is_contended(entity(7, lock_mode::shared)));
}

TEST_P(an_inherited_lock_on_a_queue, keeps_the_file_until_its_removal_is_allowed) {
    {
        auto lock = acquired(entity(7));
        mutex.reset();
        EXPECT_TRUE(directory.exists("locks"));
        mutex = open_mutex();
        EXPECT_TRUE(is_contended(entity(7)));
        lock.release();
        lock.allow_removal();
        mutex.reset();
        EXPECT_FALSE(directory.exists("locks"));
    }
    mutex = open_mutex();
    mutex.reset();
    EXPECT_FALSE(directory.exists("locks"));
}

TEST_P(an_inherited_lock_on_a_queue, keeps_the_file_for_a_program_that_has_it_locked_by_flock) {
    const int other = ::open(directory.path_of("locks").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(try_lock_whole_file(other, lock_mode::exclusive), 0);
    {
        auto lock = acquired(entity(7));
        lock.release();
        lock.allow_removal();
        mutex.reset();
    }
    EXPECT_TRUE(directory.exists("locks"));
    ::close(other);
}

INSTANTIATE_TEST_SUITE_P(, an_inherited_lock_on_a_queue,
                         testing::Values(algorithm::memory_map, algorithm::atomic_append),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace sluice::fsmutex

#include "sluice/smb/server/core/ranked_mutex.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace sluice::smb::server {
namespace {

template <lock_rank Rank>
using checked_mutex = basic_ranked_mutex<Rank, true>;

struct mutexes {
    checked_mutex<lock_rank::file> file;
    checked_mutex<lock_rank::file> other_file;
    checked_mutex<lock_rank::leaf> leaf;
};

TEST(ranked_mutex, is_locked_in_ascending_order) {
    mutexes of;
    {
        const lock_guard outer(of.file);
        EXPECT_FALSE(held_mutexes::none());
        const lock_guard inner(of.leaf);
    }
    EXPECT_TRUE(held_mutexes::none());
    const lock_guard again(of.file);
}

TEST(ranked_mutex, order_is_that_of_each_thread) {
    mutexes of;
    const lock_guard outer(of.leaf);
    std::thread([&of] { const lock_guard other(of.file); }).join();
}

TEST(ranked_mutex, lets_one_thread_in_at_a_time) {
    struct {
        ranked_mutex<lock_rank::leaf> mutex;
        std::uint64_t count SLUICE_GUARDED_BY(mutex) = 0;
    } shared;
    constexpr std::uint64_t each = 20'000;
    std::vector<std::thread> threads;
    for (int i = 0; i != 3; ++i)
        threads.emplace_back([&shared] {
            for (std::uint64_t n = 0; n != each; ++n) {
                const lock_guard held(shared.mutex);
                ++shared.count;
            }
        });
    for (std::thread& one : threads)
        one.join();
    const lock_guard held(shared.mutex);
    EXPECT_EQ(shared.count, 3 * each);
}

TEST(ranked_mutex, is_shown_to_the_observer_when_it_is_locked) {
    static std::vector<std::pair<lock_rank, const void*>> shown;
    shown.clear();
    lock_observer::locking = [](lock_rank rank, const void* which) noexcept {
        shown.emplace_back(rank, which);
    };
    mutexes of;
    {
        const lock_guard outer(of.file);
        const lock_guard inner(of.leaf);
    }
    lock_observer::locking = nullptr;
    const lock_guard unseen(of.other_file);
    EXPECT_EQ(shown, (std::vector<std::pair<lock_rank, const void*>>{{lock_rank::file, &of.file},
                                                                     {lock_rank::leaf, &of.leaf}}));
}

TEST(ranked_mutex_death_test, descending_order_stops_the_program) {
    mutexes of;
    const lock_guard outer(of.leaf);
    EXPECT_DEATH(const lock_guard inner(of.file), "ascending order");
}

TEST(ranked_mutex_death_test, two_mutexes_of_one_rank_stop_the_program) {
    mutexes of;
    const lock_guard outer(of.file);
    EXPECT_DEATH(const lock_guard inner(of.other_file), "ascending order");
}

TEST(ranked_mutex_death_test, locking_again_stops_the_program) {
    mutexes of;
    const lock_guard outer(of.file);
    EXPECT_DEATH(held_mutexes::add(static_cast<unsigned>(lock_rank::file)), "ascending order");
}

TEST(ranked_mutex_death_test, suspension_with_a_mutex_held_stops_a_checked_build) {
    mutexes of;
    held_mutexes::ensure_none();
    const lock_guard outer(of.file);
    if (SLUICE_CHECKS_MUTEXES != 0) EXPECT_DEATH(held_mutexes::ensure_none(), "no mutex is held");
}

}  // namespace
}  // namespace sluice::smb::server

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "sluice/sync/skiplist/skiplist_range_lock.hpp"
#include "sluice/sync/skiplist/skiplist_testing.hpp"

// Every byte of a small resource has its holder, in an atomic. Plain words next to it let TSan
// detect a lock that does not order memory.

namespace sluice::sync {
namespace {

constexpr std::size_t bytes_in_use = 96;

class resource {
public:
    void enter(const byte_range& where, int who) {
        for (std::uint64_t at = where.first(); at <= where.last(); ++at) {
            int nobody = 0;
            if (not owners_[at].compare_exchange_strong(nobody, who, std::memory_order_relaxed))
                violations.fetch_add(1, std::memory_order_relaxed);
            ++plain_[at];
        }
    }
    void leave(const byte_range& where, int who) {
        for (std::uint64_t at = where.first(); at <= where.last(); ++at) {
            int me = who;
            if (not owners_[at].compare_exchange_strong(me, 0, std::memory_order_relaxed))
                violations.fetch_add(1, std::memory_order_relaxed);
        }
    }
    [[nodiscard]] std::uint64_t sum() const {
        std::uint64_t all = 0;
        for (const std::uint64_t one : plain_)
            all += one;
        return all;
    }
    std::atomic<int> violations{0};

private:
    std::array<std::atomic<int>, bytes_in_use> owners_{};
    std::array<std::uint64_t, bytes_in_use> plain_{};
};

[[nodiscard]] byte_range draw(seeded_random& random, std::uint64_t bytes_max) {
    const std::uint64_t first = random.below(bytes_in_use);
    return bytes(first, std::min<std::uint64_t>(first + random.below(bytes_max), bytes_in_use - 1));
}

template <class Lock>
[[nodiscard]] typename Lock::guard lock_somehow(Lock& lock, const byte_range& wanted, seeded_random& random) {
    switch (random.below(4)) {
        case 0:
            return lock.try_lock_for(wanted, std::chrono::microseconds(random.below(50)));
        case 1:
            return lock.lock(wanted);
        default:
            return lock.try_lock(wanted);
    }
}

// Returns the number of bytes entered.
template <class Lock>
std::uint64_t use(Lock& lock, resource& guarded, int who, int rounds) {
    seeded_random random(static_cast<std::uint64_t>(who));
    std::uint64_t entered = 0;
    std::array<typename Lock::guard, 4> held;
    for (int round = 0; round != rounds; ++round) {
        typename Lock::guard& one = held[random.below(held.size())];
        if (one) {
            guarded.leave(one.where(), who);
            one.unlock();
            continue;
        }
        const byte_range wanted = draw(random, random.below(8) == 0 ? 30 : 5);
        // A thread that holds a range does not wait: two such threads might wait for each other.
        const bool holds =
            std::ranges::any_of(held, [](const auto& each) { return static_cast<bool>(each); });
        one = holds ? lock.try_lock(wanted) : lock_somehow(lock, wanted, random);
        if (not one) continue;
        guarded.enter(wanted, who);
        entered += wanted.last() - wanted.first() + 1;
        if (random.below(8) == 0) std::this_thread::yield();
    }
    for (const typename Lock::guard& one : held)
        if (one) guarded.leave(one.where(), who);
    return entered;
}

template <class Lock>
void expect_threads_excluded() {
    for (const unsigned height_max : {1U, 2U, 13U}) {
        Lock lock({.height_max = height_max, .ranges_reserved = 2});
        resource guarded;
        std::atomic<std::uint64_t> entered{0};
        std::vector<std::thread> threads;
        for (int who = 1; who <= 8; ++who)
            threads.emplace_back([&, who] { entered += use(lock, guarded, who, 40'000); });
        for (std::thread& one : threads)
            one.join();
        EXPECT_EQ(guarded.violations.load(), 0);
        EXPECT_EQ(guarded.sum(), entered.load()) << "a write under a range was lost";
        EXPECT_TRUE(lock.try_lock(byte_range::whole())) << "something is still locked";
        EXPECT_LE(lock.nodes(), 8 * (5 + 1) + Lock::spare_nodes_max) << "one each for a new entry point";
    }
}

TEST(skiplist_range_lock, excludes_threads_that_try_wait_and_time_out_at_random) {
    expect_threads_excluded<skiplist_range_lock>();
}

TEST(skiplist_range_lock, excludes_threads_that_constantly_create_and_remove_entry_points) {
    expect_threads_excluded<basic_skiplist_range_lock<real_atomics, maintenance_steps>>();
}

TEST(skiplist_range_lock, passes_one_range_between_threads_without_a_lost_wake_up) {
    skiplist_range_lock lock;
    std::uint64_t count = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i != 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round != 20'000; ++round) {
                const skiplist_range_guard held = lock.try_lock_for(bytes(5, 9), std::chrono::seconds(60));
                ASSERT_TRUE(held) << "no thread was woken for a minute";
                ++count;
                if (round % 64 == 0) std::this_thread::yield();
            }
        });
    }
    for (std::thread& one : threads)
        one.join();
    EXPECT_EQ(count, 80'000U);
}

}  // namespace
}  // namespace sluice::sync

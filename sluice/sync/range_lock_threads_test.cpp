#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sync/range_lock.hpp"

// Every byte of a small resource says who has it: a writer, or how many readers. Plain words beside it, so
// that a lock that forgets to order memory is seen by TSan.

namespace sluice::sync {
namespace {

constexpr std::size_t bytes = 64;
constexpr int readers_max = 1000;

class resource {
public:
    void enter(const byte_range& where, lock_mode mode) {
        for (std::uint64_t at = where.first(); at <= where.last(); ++at) {
            const int before = owners_[at].fetch_add(weight(mode), std::memory_order_relaxed);
            const bool is_free = mode == lock_mode::exclusive ? before == 0 : before < readers_max;
            if (not is_free) violations.fetch_add(1, std::memory_order_relaxed);
            if (mode == lock_mode::exclusive)
                ++plain_[at];
            else
                sums.fetch_add(plain_[at] & 1, std::memory_order_relaxed);
        }
    }
    void leave(const byte_range& where, lock_mode mode) {
        for (std::uint64_t at = where.first(); at <= where.last(); ++at)
            owners_[at].fetch_sub(weight(mode), std::memory_order_relaxed);
    }
    std::atomic<int> violations{0};
    std::atomic<std::uint64_t> sums{0};

private:
    [[nodiscard]] static int weight(lock_mode mode) { return mode == lock_mode::exclusive ? readers_max : 1; }

    std::array<std::atomic<int>, bytes> owners_{};
    std::array<std::uint64_t, bytes> plain_{};
};

[[nodiscard]] lock_args draw(seeded_random& random) {
    const std::uint64_t first = random.below(bytes);
    const std::uint64_t last = std::min<std::uint64_t>(first + random.below(6), bytes - 1);
    lock_args wanted{.where = byte_range::between({.first = first, .last = last})};
    if (random.below(16) == 0) wanted.where = byte_range::between({.first = 0, .last = bytes - 1});
    if (random.below(2) == 0) wanted.mode = lock_mode::shared;
    return wanted;
}

class signalled final : public range_request {
public:
    ~signalled() = default;
    // 0 until it is over; 1 granted, 2 cancelled
    std::atomic<int> outcome{0};

private:
    void completed(bool is_granted) noexcept override {
        // release: pairs with the acquire of who waits for the outcome.
        outcome.store(is_granted ? 1 : 2, std::memory_order_release);
    }
};

[[nodiscard]] range_guard ask_and_wait(range_lock& lock, const lock_args& wanted, bool cancels) {
    signalled request;
    if (lock.lock_async(request, wanted)) return request.take();
    if (cancels) (void)lock.cancel(request);
    while (request.outcome.load(std::memory_order_acquire) == 0)
        std::this_thread::yield();
    return request.take();
}

[[nodiscard]] range_guard lock_somehow(range_lock& lock, const lock_args& wanted, seeded_random& random) {
    switch (random.below(5)) {
        case 0:
            return lock.try_lock(wanted);
        case 1:
            return lock.try_lock_for(wanted, std::chrono::microseconds(random.below(50)));
        case 2:
            return ask_and_wait(lock, wanted, random.below(2) == 0);
        default:
            return lock.lock(wanted);
    }
}

void use(range_lock& lock, resource& guarded, std::uint64_t seed, int rounds) {
    seeded_random random(seed);
    for (int round = 0; round != rounds; ++round) {
        const lock_args wanted = draw(random);
        range_guard held = lock_somehow(lock, wanted, random);
        if (not held) continue;
        guarded.enter(wanted.where, wanted.mode);
        if (random.below(4) == 0) std::this_thread::yield();
        guarded.leave(wanted.where, wanted.mode);
        if (random.below(4) == 0) {
            const range_guard moved = std::move(held);
        }
    }
}

TEST(range_lock, excludes_threads_that_lock_wait_time_out_and_cancel_at_random) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        range_lock lock;
        resource guarded;
        std::vector<std::thread> threads;
        for (std::uint64_t i = 0; i != 6; ++i)
            threads.emplace_back([&, i] { use(lock, guarded, seed * 100 + i, 4000); });
        for (std::thread& one : threads)
            one.join();
        EXPECT_EQ(guarded.violations.load(), 0) << "seed " << seed;
        EXPECT_TRUE(lock.try_lock({.where = byte_range::whole()})) << "something is still locked";
    }
}

TEST(range_lock, grants_a_wide_range_while_small_ones_are_taken_without_end) {
    range_lock lock;
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i != 4; ++i) {
        threads.emplace_back([&, i] {
            const lock_args mine{.where = byte_range::between({.first = i * 10, .last = i * 10 + 9})};
            while (not is_over.load(std::memory_order_relaxed)) {
                const range_guard held = lock.lock(mine);
                std::this_thread::yield();
            }
        });
    }
    for (int round = 0; round != 50; ++round)
        EXPECT_TRUE(lock.try_lock_for({.where = byte_range::whole()}, std::chrono::seconds(60)));
    is_over.store(true, std::memory_order_relaxed);
    for (std::thread& one : threads)
        one.join();
}

}  // namespace
}  // namespace sluice::sync

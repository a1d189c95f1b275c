#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sync/range_lock_testing.hpp"

// Every byte of a small resource has its holders: a writer, or the number of readers. Plain words
// next to it let TSan detect a lock that does not order memory.

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

template <class Atomics>
class signalled final : public basic_range_request<Atomics> {
public:
    ~signalled() = default;
    // 0 until the wait is over; 1 granted, 2 cancelled
    std::atomic<int> outcome{0};

private:
    void completed(bool is_granted) noexcept override {
        // release: pairs with the acquire of the thread that waits for the outcome.
        outcome.store(is_granted ? 1 : 2, std::memory_order_release);
    }
};

template <class Atomics>
[[nodiscard]] basic_range_guard<Atomics> ask_and_wait(basic_range_lock<Atomics>& lock,
                                                      const lock_args& wanted, bool cancels) {
    signalled<Atomics> request;
    if (lock.lock_async(request, wanted)) return request.take();
    if (cancels) (void)lock.cancel(request);
    while (request.outcome.load(std::memory_order_acquire) == 0)
        std::this_thread::yield();
    return request.take();
}

template <class Atomics>
[[nodiscard]] basic_range_guard<Atomics> lock_several(basic_range_lock<Atomics>& lock,
                                                      const lock_args& wanted) {
    std::array<basic_range_guard<Atomics>, 2> guards;
    const std::array both{wanted, lock_args{.where = byte_range::from(bytes), .mode = lock_mode::shared}};
    if (not lock.try_lock_all(both, guards)) return {};
    return std::move(guards[0]);
}

template <class Atomics>
[[nodiscard]] basic_range_guard<Atomics> lock_somehow(basic_range_lock<Atomics>& lock,
                                                      const lock_args& wanted, seeded_random& random) {
    switch (random.below(6)) {
        case 0:
            return lock.try_lock(wanted);
        case 1:
            return lock.try_lock_for(wanted, std::chrono::microseconds(random.below(50)));
        case 2:
            return ask_and_wait(lock, wanted, random.below(2) == 0);
        case 3:
            return lock_several(lock, wanted);
        default:
            return lock.lock(wanted);
    }
}

// An occasional operation of a holder on its lock. `held` has its final range.
template <class Atomics>
void change(basic_range_guard<Atomics>& held, resource& guarded, lock_mode mode, seeded_random& random) {
    const byte_range before = held.where();
    switch (random.below(8)) {
        case 0: {
            basic_range_guard<Atomics> moved = std::move(held);
            guarded.enter(before, mode);
            guarded.leave(before, mode);
            held = std::move(moved);
            return;
        }
        case 1:
            held.downgrade();
            guarded.enter(before, lock_mode::shared);
            guarded.leave(before, lock_mode::shared);
            return;
        case 2:
            if (not held.try_upgrade()) return;
            guarded.enter(before, lock_mode::exclusive);
            guarded.leave(before, lock_mode::exclusive);
            return;
        case 3:
            if (before.first() == before.last()) return;
            held.shrink(byte_range::between({.first = before.first() + 1, .last = before.last()}));
            guarded.enter(held.where(), mode);
            guarded.leave(held.where(), mode);
            return;
        case 4: {
            if (before.first() == before.last()) return;
            basic_range_guard<Atomics> rest;
            held.split(before.last(), rest);
            held.unlock();
            guarded.enter(rest.where(), mode);
            guarded.leave(rest.where(), mode);
            return;
        }
        default:
            return;
    }
}

template <class Atomics>
void use(basic_range_lock<Atomics>& lock, resource& guarded, std::uint64_t seed, int rounds) {
    seeded_random random(seed);
    for (int round = 0; round != rounds; ++round) {
        const lock_args wanted = draw(random);
        basic_range_guard<Atomics> held = lock_somehow(lock, wanted, random);
        if (not held) continue;
        guarded.enter(wanted.where, wanted.mode);
        if (random.below(4) == 0) std::this_thread::yield();
        guarded.leave(wanted.where, wanted.mode);
        change(held, guarded, wanted.mode, random);
    }
}

template <class Atomics>
void expect_exclusion(const range_lock_options& options) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        basic_range_lock<Atomics> lock(options);
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

TEST(range_lock, excludes_threads_that_lock_wait_time_out_and_cancel_at_random) {
    expect_exclusion<real_atomics>({});
}

TEST(range_lock, excludes_them_while_it_constantly_changes_its_form) {
    expect_exclusion<hot_atomics>({});
}

TEST(range_lock, excludes_them_where_they_may_overtake) {
    expect_exclusion<hot_atomics>({.overtakes_max = 2});
    expect_exclusion<hot_atomics>({.overtakes_max = range_lock_options::without_limit});
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

// Requests one range repeatedly; each completion counts, and releases.
template <class Atomics>
class counting_request final : public basic_range_request<Atomics> {
public:
    counting_request(std::uint64_t& counter, std::atomic<int>& ended) : counter_(counter), ended_(ended) {}
    ~counting_request() = default;

    void use() noexcept {
        ++counter_;
        this->take().unlock();
    }

private:
    void completed(bool is_granted) noexcept override {
        std::atomic<int>& ended = ended_;
        if (is_granted) use();
        ended.fetch_add(1, std::memory_order_release);  // this may be destroyed now
    }
    std::uint64_t& counter_;
    std::atomic<int>& ended_;
};

template <class Atomics>
std::uint64_t contend_for_one_byte(basic_range_lock<Atomics>& lock, std::uint64_t& counter,
                                   std::uint64_t seed) {
    seeded_random random(seed);
    constexpr int batch = 50;
    std::uint64_t cancelled = 0;
    for (int round = 0; round != 40; ++round) {
        std::atomic<int> ended{0};
        std::deque<counting_request<Atomics>> requests;
        for (int i = 0; i != batch; ++i) {
            counting_request<Atomics>& one = requests.emplace_back(counter, ended);
            const std::uint64_t first = random.below(8);  // all have byte 8
            if (not lock.lock_async(one, exclusive(first, 8 + random.below(8)))) continue;
            one.use();
            ended.fetch_add(1, std::memory_order_release);
        }
        for (counting_request<Atomics>& one : requests)
            if (random.below(4) == 0 and lock.cancel(one)) ++cancelled;
        while (ended.load(std::memory_order_acquire) != batch)
            std::this_thread::yield();
    }
    return 40 * batch - cancelled;
}

template <class Atomics>
void expect_each_counted() {
    basic_range_lock<Atomics> lock;
    std::uint64_t counter = 0;  // under byte 8
    std::atomic<std::uint64_t> expected{0};
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i != 6; ++i)
        threads.emplace_back([&, i] {
            expected.fetch_add(contend_for_one_byte(lock, counter, i + 1), std::memory_order_relaxed);
        });
    for (std::thread& one : threads)
        one.join();
    EXPECT_EQ(counter, expected.load());
    EXPECT_TRUE(lock.try_lock({.where = byte_range::whole()})) << "something is still locked";
}

TEST(range_lock, grants_a_contended_range_once_to_each_request_that_is_not_cancelled) {
    expect_each_counted<real_atomics>();
    expect_each_counted<hot_atomics>();
}

}  // namespace
}  // namespace sluice::sync

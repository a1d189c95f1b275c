// Checks that no peer wins by an error: threads check the holders of each byte of a small resource,
// and a single thread compares with a list of the held ranges. This found lost ranges in a
// published port of the list lock.

#include "bench/range_lock_peers/peers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "bench/range_lock_subjects.hpp"
#include "sluice/base/random.hpp"

namespace sluice::bench::range_locks {
namespace {

constexpr std::uint64_t bytes = 64;
constexpr resource guarded{.bytes = bytes, .segment_bytes = 1, .height_max = 16};

struct request {
    extent where;
    access how;
};

[[nodiscard]] request draw(seeded_random& random, bool has_readers) {
    const std::uint64_t begin = random.below(bytes);
    request wanted{.where = {.begin = begin, .end = std::min(begin + 1 + random.below(6), bytes)},
                   .how = access::exclusive};
    if (random.below(32) == 0) wanted.where = {.begin = 0, .end = bytes};
    if (has_readers and random.below(2) == 0) wanted.how = access::shared;
    return wanted;
}

// The holders of each byte, and next to it plain memory that TSan watches.
class owners {
public:
    void enter(const request& one) {
        for (std::uint64_t at = one.where.begin; at != one.where.end; ++at) {
            const int before = inside_[at].fetch_add(weight(one), std::memory_order_relaxed);
            const bool is_free = one.how == access::exclusive ? before == 0 : before < writer;
            if (not is_free) violations.fetch_add(1, std::memory_order_relaxed);
            if (one.how == access::exclusive)
                ++plain_[at];
            else
                sum.fetch_add(plain_[at], std::memory_order_relaxed);
        }
    }
    void leave(const request& one) {
        for (std::uint64_t at = one.where.begin; at != one.where.end; ++at)
            inside_[at].fetch_sub(weight(one), std::memory_order_relaxed);
    }
    std::atomic<int> violations{0};
    std::atomic<std::uint64_t> sum{0};

private:
    static constexpr int writer = 1000;
    [[nodiscard]] static int weight(const request& one) { return one.how == access::exclusive ? writer : 1; }

    std::array<std::atomic<int>, bytes> inside_{};
    std::array<std::uint64_t, bytes> plain_{};
};

template <class Lock>
void use(Lock& lock, owners& inside, std::uint64_t seed, int rounds) {
    seeded_random random(seed);
    for (int round = 0; round != rounds; ++round) {
        const request wanted = draw(random, Lock::has_readers);
        typename Lock::holder held;
        if (random.below(4) == 0) {
            if (not lock.try_lock(held, wanted.where, wanted.how)) continue;
        } else {
            lock.lock(held, wanted.where, wanted.how);
        }
        inside.enter(wanted);
        if (random.below(8) == 0) std::this_thread::yield();
        inside.leave(wanted);
        lock.unlock(held);
    }
}

template <class Lock>
int violations_of(Lock& lock, std::uint64_t seed, int rounds) {
    owners inside;
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i != 8; ++i)
        threads.emplace_back([&, i] { use(lock, inside, seed * 100 + i, rounds); });
    for (std::thread& one : threads)
        one.join();
    return inside.violations.load(std::memory_order_relaxed);
}

template <class Lock>
[[nodiscard]] bool can_lock(Lock& lock, const extent& where) {
    typename Lock::holder held;
    if (not lock.try_lock(held, where, access::exclusive)) return false;
    lock.unlock(held);
    return true;
}

// The ranges held according to a simple model.
template <class Lock>
class model {
public:
    [[nodiscard]] bool is_free(const request& wanted) const {
        return std::none_of(held_.begin(), held_.end(), [&](const auto& one) {
            const bool both_read =
                Lock::has_readers and wanted.how == access::shared and one.what.how == access::shared;
            return one.what.where.overlaps(wanted.where) and not both_read;
        });
    }
    typename Lock::holder& add(const request& wanted) {
        held_.push_back({.what = wanted, .held = std::make_unique<typename Lock::holder>()});
        return *held_.back().held;
    }
    void forget_last() { held_.pop_back(); }
    void release_one(Lock& lock, seeded_random& random) {
        const auto chosen = held_.begin() + static_cast<std::ptrdiff_t>(random.below(held_.size()));
        lock.unlock(*chosen->held);
        held_.erase(chosen);
    }
    [[nodiscard]] std::size_t size() const { return held_.size(); }

private:
    struct entry {
        request what;
        std::unique_ptr<typename Lock::holder> held;
    };
    std::vector<entry> held_;
};

template <class Lock>
class range_lock_peer : public testing::Test {};
using ranged_peers =
    testing::Types<kogan_list<false>, kogan_list<true>, kogan_reader_writer_list, song_skip_list, kara_tree,
                   pnova_segments, leanstore_bitmap, mutex_and_map, sluice_range_lock>;
TYPED_TEST_SUITE(range_lock_peer, ranged_peers);

TYPED_TEST(range_lock_peer, excludes_conflicting_holders_in_eight_threads) {
    static_assert(range_lock<TypeParam>);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        TypeParam lock(guarded);
        EXPECT_EQ(violations_of(lock, seed, 3000), 0) << "seed " << seed;
        for (std::uint64_t at = 0; at != bytes; ++at)
            EXPECT_TRUE(can_lock(lock, {.begin = at, .end = at + 1})) << "byte " << at << " is still locked";
        EXPECT_TRUE(can_lock(lock, {.begin = 0, .end = bytes}));
    }
}

TYPED_TEST(range_lock_peer, grants_a_try_if_and_only_if_no_held_range_conflicts) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        seeded_random random(seed);
        TypeParam lock(guarded);
        model<TypeParam> expected;
        for (int round = 0; round != 4000; ++round) {
            if (expected.size() > random.below(16)) expected.release_one(lock, random);
            const request wanted = draw(random, TypeParam::has_readers);
            const bool is_free = expected.is_free(wanted);
            const bool is_granted = lock.try_lock(expected.add(wanted), wanted.where, wanted.how);
            if (not is_granted) expected.forget_last();
            ASSERT_EQ(is_granted, is_free) << "seed " << seed << ", round " << round << ", "
                                           << wanted.where.begin << " to " << wanted.where.end;
        }
        while (expected.size() != 0)
            expected.release_one(lock, random);
    }
}

// In lists the two pass each other: the reader starts at the front while the writer walks to the
// end.
template <class Lock>
class range_lock_peer_with_readers : public testing::Test {};
using peers_with_readers =
    testing::Types<kogan_reader_writer_list, kara_tree, pnova_segments, sluice_range_lock>;
TYPED_TEST_SUITE(range_lock_peer_with_readers, peers_with_readers);

TYPED_TEST(range_lock_peer_with_readers, excludes_a_reader_of_all_and_a_writer_at_the_end) {
    TypeParam lock(guarded);
    owners inside;
    std::array<typename TypeParam::holder, bytes - 2> others;
    for (std::uint64_t at = others.size(); at-- != 0;)
        lock.lock(others[at], {.begin = at, .end = at + 1}, access::shared);
    const auto take_often = [&](const request& wanted) {
        for (int round = 0; round != 30'000; ++round) {
            typename TypeParam::holder held;
            lock.lock(held, wanted.where, wanted.how);
            inside.enter(wanted);
            inside.leave(wanted);
            lock.unlock(held);
        }
    };
    std::thread reader([&] { take_often({.where = {.begin = 0, .end = bytes}, .how = access::shared}); });
    std::thread writer(
        [&] { take_often({.where = {.begin = bytes - 1, .end = bytes}, .how = access::exclusive}); });
    reader.join();
    writer.join();
    EXPECT_EQ(inside.violations.load(std::memory_order_relaxed), 0);
    for (auto& held : others)
        lock.unlock(held);
}

TEST(one_mutex, excludes_all_regardless_of_their_range) {
    static_assert(range_lock<one_mutex>);
    one_mutex lock(guarded);
    EXPECT_EQ(violations_of(lock, 1, 3000), 0);
}

// Without this, the test above could not fail. TSan would correctly stop at it.
#if not defined(__has_feature) or not __has_feature(thread_sanitizer)
TEST(owners, detect_that_no_lock_does_not_exclude_threads) {
    static_assert(range_lock<no_lock>);
    no_lock lock(guarded);
    EXPECT_GT(violations_of(lock, 1, 3000), 0);
}
#endif

}  // namespace
}  // namespace sluice::bench::range_locks

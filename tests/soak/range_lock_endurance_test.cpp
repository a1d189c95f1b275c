// A lock that is used indefinitely holds no more memory than one that was used briefly. Runs the
// number of lock and unlock pairs given by the first argument (by default a million), in four
// threads and every form of request, and checks the memory after each fifth. See README.md.

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <charconv>
#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sync/range_lock.hpp"

namespace sluice::sync {
namespace {

std::uint64_t pairs_wanted = 1'000'000;

constexpr unsigned threads = 4;
constexpr std::size_t fifths = 5;
// The permitted growth between the first and the last fifth: the memory of a lock that is contended
// at that moment.
constexpr std::int64_t heap_growth_max = 128 << 10;
constexpr std::int64_t resident_growth_max = 1 << 20;

struct memory {
    std::int64_t heap_bytes = 0;
    std::int64_t resident_bytes = 0;
};

memory memory_now() {
    const struct mallinfo2 heap = mallinfo2();
    std::int64_t all_pages = 0;
    std::int64_t resident_pages = 0;
    std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
    return {.heap_bytes = static_cast<std::int64_t>(heap.uordblks + heap.hblkhd),
            .resident_bytes = resident_pages * sysconf(_SC_PAGESIZE)};
}

// A group of threads that work and stop together.
using step = std::function<void(seeded_random&)>;
std::array<memory, fifths> memory_while(std::uint64_t steps, const step& one_step) {
    std::array<memory, fifths> seen;
    std::barrier together(threads + 1);
    std::vector<std::thread> run_threads;
    for (unsigned number = 0; number != threads; ++number) {
        run_threads.emplace_back([&, number] {
            seeded_random random(number + 1);
            for (std::size_t fifth = 0; fifth != fifths; ++fifth) {
                for (std::uint64_t left = steps / fifths / threads; left != 0; --left)
                    one_step(random);
                together.arrive_and_wait();
                together.arrive_and_wait();  // between the two, the memory is stable
            }
        });
    }
    for (memory& after : seen) {
        together.arrive_and_wait();
        after = memory_now();
        together.arrive_and_wait();
    }
    for (std::thread& one : run_threads)
        one.join();
    return seen;
}

class awaited final : public range_request {
public:
    ~awaited() = default;
    void wait() const {
        // acquire: pairs with the release of completed().
        while (not is_over.load(std::memory_order_acquire))
            std::this_thread::yield();
    }

private:
    void completed(bool) noexcept override { is_over.store(true, std::memory_order_release); }
    std::atomic<bool> is_over{false};
};

lock_args draw(seeded_random& random) {
    const std::uint64_t first = random.below(4096);
    lock_args wanted{.where = byte_range::between({.first = first, .last = first + random.below(64)})};
    if (random.below(4096) == 0) wanted.where = byte_range::whole();
    if (random.below(2) == 0) wanted.mode = lock_mode::shared;
    return wanted;
}

void ask_without_a_thread(range_lock& lock, const lock_args& wanted, bool cancels) {
    awaited request;
    if (lock.lock_async(request, wanted)) return;  // the request releases it
    if (cancels) (void)lock.cancel(request);
    request.wait();
}

void take_apart(range_guard held) {
    const byte_range where = held.where();
    range_guard rest;
    if (where.first() != where.last()) held.split(where.last(), rest);
    held.downgrade();
}

// Locks and unlocks once, or tries without success.
void use(range_lock& lock, seeded_random& random) {
    const lock_args wanted = draw(random);
    switch (random.below(64)) {
        case 0:
            (void)lock.try_lock(wanted);
            break;
        case 1:
            (void)lock.try_lock_for(wanted, std::chrono::microseconds(random.below(20)));
            break;
        case 2:
            ask_without_a_thread(lock, wanted, random.below(2) == 0);
            break;
        case 3:
            take_apart(lock.lock(wanted));
            break;
        case 4: {  // a lock that others have to wait for
            const range_guard held = lock.lock(wanted);
            std::this_thread::yield();
            break;
        }
        default:
            (void)lock.lock(wanted);
    }
}

memory growth_of(const std::array<memory, fifths>& seen) {
    for (const memory& one : seen)
        std::cout << "heap " << one.heap_bytes << " B, resident " << one.resident_bytes << " B\n";
    return {.heap_bytes = seen.back().heap_bytes - seen.front().heap_bytes,
            .resident_bytes = seen.back().resident_bytes - seen.front().resident_bytes};
}

TEST(range_lock_endurance, holds_no_more_memory_however_often_it_is_locked) {
    range_lock lock;
    const memory growth =
        growth_of(memory_while(pairs_wanted, [&](seeded_random& random) { use(lock, random); }));
    EXPECT_LE(growth.heap_bytes, heap_growth_max);
    EXPECT_LE(growth.resident_bytes, resident_growth_max);
}

// Proves that the test above can fail: eight bytes per pair are lost, for which malloc takes 32.
TEST(range_lock_endurance, detects_a_leak_of_eight_bytes_per_pair) {
    const memory growth = growth_of(memory_while(200'000, [](seeded_random& random) {
        thread_local std::deque<std::unique_ptr<std::uint64_t>> kept;
        kept.push_back(std::make_unique<std::uint64_t>(random.next_u64()));
    }));
    EXPECT_GT(growth.heap_bytes, heap_growth_max);
    EXPECT_GT(growth.resident_bytes, resident_growth_max);
}

}  // namespace
}  // namespace sluice::sync

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const std::string_view wanted = argc > 1 ? argv[1] : "1000000";
    const auto [end, error] =
        std::from_chars(wanted.data(), wanted.data() + wanted.size(), sluice::sync::pairs_wanted);
    if (error != std::errc() or end != wanted.data() + wanted.size()) {
        std::cerr << "usage: " << argv[0] << " [PAIRS]\n";
        return 2;
    }
    return RUN_ALL_TESTS();
}

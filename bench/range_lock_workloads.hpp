#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "bench/range_lock_load.hpp"
#include "sluice/base/random.hpp"

// The workloads of the benchmark of range locks. Each is compiled for each subject, so that there
// is no call by pointer between a loop and a lock.

namespace sluice::bench::range_locks {

/// The work done under the lock of a slot.
enum class under_lock { nothing, write };

inline void use(const extent& where, under_lock what) noexcept {
    if (what == under_lock::write) std::memset(area() + where.begin, 0x5a, where.end - where.begin);
    // The compiler must neither omit the memory accesses nor merge those under two locks.
    asm volatile("" : : "r"(where.begin) : "memory");
}

/// W1 and W2 of T.-D. Nguyen, "Concurrent Range Lock" (thesis, TU Munich 2024): locks the next
/// `batch` slots of a queue, one by one, uses all, releases all. A lock with one range for
/// everything is taken once.
template <class Lock, std::size_t batch>
class batches {
public:
    batches(Lock& lock, std::span<const extent> queue) : lock_(lock), queue_(queue) {}

    /// Complexity: `batch` pairs.
    void next(under_lock what) {
        if (at_ + batch > queue_.size()) at_ = 0;
        const std::span<const extent> mine = queue_.subspan(at_, batch);
        at_ += batch;
        constexpr std::size_t locked = has_ranges<Lock> ? batch : 1;
        for (std::size_t i = 0; i != locked; ++i)
            lock_.lock(holders_[i], mine[i], access::exclusive);
        for (const extent& where : mine)
            use(where, what);
        for (std::size_t i = 0; i != locked; ++i)
            lock_.unlock(holders_[i]);
    }

private:
    Lock& lock_;
    std::span<const extent> queue_;
    std::size_t at_ = 0;
    std::array<typename Lock::holder, batch> holders_;
};

constexpr std::uint64_t pairs_between_looks = 16;  // checks whether it is over

template <class Lock, std::size_t batch>
std::uint64_t run_batches(Lock& lock, std::span<const extent> queue, under_lock what,
                          const std::atomic<bool>& is_over) {
    static_assert(pairs_between_looks % batch == 0);
    batches<Lock, batch> work(lock, queue);
    std::uint64_t pairs = 0;
    for (; not is_over.load(std::memory_order_relaxed); pairs += pairs_between_looks)
        for (std::uint64_t i = 0; i != pairs_between_looks; i += batch)
            work.next(what);
    return pairs;
}

template <class Lock>
[[nodiscard]] double object_bytes() {
    return static_cast<double>(Lock(the_area).object_bytes());
}

/// Called after eight threads ran W2 for a while.
template <class Lock>
[[nodiscard]] double object_bytes_when_hot(run& repeat) {
    Lock lock(the_area);
    run_on_threads(repeat, 8, [&](unsigned number, const std::atomic<bool>& is_over) {
        return run_batches<Lock, 16>(lock, queue_of(number, 8), under_lock::nothing, is_over);
    });
    return static_cast<double>(lock.object_bytes());
}

template <class Lock, std::size_t batch>
void disjoint(run& repeat, unsigned threads, under_lock what) {
    (void)area();
    Lock lock(the_area);
    run_on_threads(repeat, threads, [&](unsigned number, const std::atomic<bool>& is_over) {
        return run_batches<Lock, batch>(lock, queue_of(number, threads), what, is_over);
    });
}

/// Holds `count` ranges all the time: even slots, evenly spread.
template <class Lock>
class long_held {
public:
    long_held(Lock& lock, std::size_t count)
        : lock_(lock), count_(count), holders_(std::make_unique<typename Lock::holder[]>(count)) {
        const std::size_t step = slot_count / 2 / count;
        for (std::size_t i = count; i-- != 0;)  // backwards, which no list must walk for
            lock_.lock(holders_[i], slot(2 * step * i), access::exclusive);
    }
    long_held(const long_held&) = delete;
    long_held& operator=(const long_held&) = delete;
    ~long_held() {
        for (std::size_t i = 0; i != count_; ++i)
            lock_.unlock(holders_[i]);
    }

private:
    Lock& lock_;
    std::size_t count_;
    std::unique_ptr<typename Lock::holder[]> holders_;
};

/// W1 without the writes, in free slots, while others are held.
template <class Lock>
void held(run& repeat, unsigned threads, std::size_t count, unsigned height_max = 16) {
    resource shape = the_area;
    shape.height_max = height_max;
    Lock lock(shape);
    const long_held<Lock> others(lock, count);
    run_on_threads(repeat, threads, [&](unsigned number, const std::atomic<bool>& is_over) {
        return run_batches<Lock, 1>(lock, odd_queue_of(number, threads), under_lock::nothing, is_over);
    });
}

/// Some slots with a word each, which a reader loads and a writer stores.
class words {
public:
    static constexpr std::size_t count = 256;

    void use(const extent& where, access how) noexcept {
        for (std::uint64_t at = where.begin; at != where.end; at += slot_bytes) {
            std::atomic<std::uint64_t>& word = words_[at / slot_bytes].value;
            if (how == access::exclusive)
                word.store(at, std::memory_order_relaxed);
            else
                (void)word.load(std::memory_order_relaxed);
        }
    }

private:
    struct alignas(64) word {
        std::atomic<std::uint64_t> value{0};
    };
    std::array<word, count> words_;
};

struct drawn_request {
    extent where;
    access how = access::exclusive;
};

struct drawing {
    std::size_t slots;  // of words::count
    std::size_t length_max;
    unsigned shared_percent;
};

/// Returns requests for ranges that begin and end anywhere; a different seed for each thread.
[[nodiscard]] inline std::vector<drawn_request> draw(const drawing& from, std::uint64_t seed) {
    seeded_random random(seed + 1);
    std::vector<drawn_request> drawn(4096);
    for (drawn_request& one : drawn) {
        const std::uint64_t length = 1 + random.below(from.length_max);
        const std::uint64_t first = random.below(from.slots - length + 1);
        one.where = {.begin = first * slot_bytes, .end = (first + length) * slot_bytes};
        one.how = random.below(100) < from.shared_percent ? access::shared : access::exclusive;
    }
    return drawn;
}

/// Overlapping ranges, some shared, some exclusive.
template <class Lock>
void overlapping(run& repeat, unsigned threads, const drawing& from) {
    Lock lock({.bytes = words::count * slot_bytes});
    const auto shared = std::make_unique<words>();
    run_on_threads(repeat, threads, [&](unsigned number, const std::atomic<bool>& is_over) {
        const std::vector<drawn_request> requests = draw(from, number);
        std::uint64_t pairs = 0;
        for (; not is_over.load(std::memory_order_relaxed); ++pairs) {
            const drawn_request& wanted = requests[pairs % requests.size()];
            typename Lock::holder held;
            lock.lock(held, wanted.where, wanted.how);
            shared->use(wanted.where, wanted.how);
            lock.unlock(held);
        }
        return pairs;
    });
    if (from.shared_percent != 0 and not Lock::has_readers) repeat.note("all_exclusive", 1);
}

/// Eight threads that each repeatedly hold one slot of their own window for 200 µs, and a ninth
/// that requests all windows, a millisecond after it had them. Counts the grants to the wide one,
/// or to the small ones; the rest is in the notes.
enum class whom { wide, small, small_alone };
template <class Lock>
void starvation(run& repeat, whom counted) {
    constexpr unsigned small_threads = 8;
    constexpr std::size_t window_slots = 4;
    const extent all{.begin = 0, .end = small_threads * window_slots * slot_bytes};
    Lock lock({.bytes = all.end});
    std::array<std::atomic<std::uint64_t>, small_threads + 1> grants{};
    const auto hold_small = [&](unsigned number, typename Lock::holder& held) {
        const std::uint64_t turn = grants[number].fetch_add(1, std::memory_order_relaxed);
        lock.lock(held, slot(number * window_slots + turn % window_slots), access::exclusive);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        lock.unlock(held);
    };
    const unsigned threads = counted == whom::small_alone ? small_threads : small_threads + 1;
    run_on_threads(repeat, threads, [&](unsigned number, const std::atomic<bool>& is_over) {
        typename Lock::holder held;
        std::uint64_t granted = 0;
        for (; not is_over.load(std::memory_order_relaxed); ++granted) {
            if (number != small_threads) {
                hold_small(number, held);
                continue;
            }
            lock.lock(held, all, access::exclusive);
            const bool is_in_time = not is_over.load(std::memory_order_relaxed);
            lock.unlock(held);
            if (is_in_time) grants[number].fetch_add(1, std::memory_order_relaxed);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return granted;
    });
    std::uint64_t small = 0;
    for (unsigned number = 0; number != small_threads; ++number)
        small += grants[number].load(std::memory_order_relaxed);
    const std::uint64_t wide = grants[small_threads].load(std::memory_order_relaxed);
    repeat.did(counted == whom::wide ? wide : small);
    repeat.note("wide_grants", static_cast<double>(wide));
    repeat.note("small_grants", static_cast<double>(small));
}

}  // namespace sluice::bench::range_locks

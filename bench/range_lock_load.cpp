#include "bench/range_lock_load.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "bench/harness/hardware_counters.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench::range_locks {

namespace {

std::vector<extent> shuffled(std::size_t first, std::size_t step) {
    std::vector<extent> slots;
    for (std::size_t number = first; number < slot_count; number += step)
        slots.push_back(slot(number));
    std::shuffle(slots.begin(), slots.end(), std::mt19937_64(42));
    return slots;
}

std::span<const extent> part_of(const std::vector<extent>& slots, std::size_t thread, std::size_t threads) {
    const std::size_t each = slots.size() / threads;
    return std::span(slots).subspan(thread * each, each);
}

double thread_cpu_ns() {
    timespec time{};
    ENSURE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct alignas(64) share {
    std::uint64_t pairs = 0;
    double cpu_ns = 0;
    std::optional<hardware_counters::counts> counted;
};

// Pins to one of the available CPUs: the kernel leaves new threads on one CPU for longer than a
// repeat takes, and then there is no contention.
void pin_this_thread(unsigned number) {
    cpu_set_t allowed;
    ENSURE(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
    unsigned left = number % static_cast<unsigned>(CPU_COUNT(&allowed));
    for (int processor = 0; processor != CPU_SETSIZE; ++processor) {
        if (not CPU_ISSET(processor, &allowed) or left-- != 0) continue;
        cpu_set_t chosen;
        CPU_ZERO(&chosen);
        CPU_SET(processor, &chosen);
        ENSURE(sched_setaffinity(0, sizeof(chosen), &chosen) == 0);
        return;
    }
}

share do_share(unsigned number, const work& what, const std::atomic<bool>& is_over,
               std::barrier<>& beginning) {
    pin_this_thread(number);
    share done;
    hardware_counters counters;
    beginning.arrive_and_wait();
    counters.start();
    const double cpu_before = thread_cpu_ns();
    done.pairs = what(number, is_over);
    done.cpu_ns = thread_cpu_ns() - cpu_before;
    done.counted = counters.stop();
    return done;
}

void report(run& repeat, std::span<const share> shares, double seconds) {
    share all{.counted = hardware_counters::counts{}};
    std::uint64_t fewest = shares[0].pairs;
    std::uint64_t most = 0;
    for (const share& one : shares) {
        all.pairs += one.pairs;
        all.cpu_ns += one.cpu_ns;
        fewest = std::min(fewest, one.pairs);
        most = std::max(most, one.pairs);
        if (all.counted and one.counted) {
            all.counted->cycles += one.counted->cycles;
            all.counted->instructions += one.counted->instructions;
            all.counted->l1_misses += one.counted->l1_misses;
        } else {
            all.counted.reset();
        }
    }
    const auto pairs = static_cast<double>(std::max<std::uint64_t>(all.pairs, 1));
    repeat.did(all.pairs);
    repeat.cpu_spent(all.cpu_ns);
    repeat.note("pairs_per_second", pairs / seconds);
    repeat.note("slowest_of_fastest",
                static_cast<double>(fewest) / static_cast<double>(std::max<std::uint64_t>(most, 1)));
    if (not all.counted) return;
    repeat.note("cycles_per_pair", all.counted->cycles / pairs);
    repeat.note("instructions_per_pair", all.counted->instructions / pairs);
    repeat.note("l1_misses_per_pair", all.counted->l1_misses / pairs);
}

}  // namespace

std::byte* area() {
    static void* const mapped = mmap(nullptr, slot_bytes * slot_count, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    ENSURE(mapped != MAP_FAILED, "the area is mapped");
    return static_cast<std::byte*>(mapped);
}

std::span<const extent> queue_of(std::size_t thread, std::size_t threads) {
    static const std::vector<extent> slots = shuffled(0, 1);
    return part_of(slots, thread, threads);
}

std::span<const extent> odd_queue_of(std::size_t thread, std::size_t threads) {
    static const std::vector<extent> slots = shuffled(1, 2);
    return part_of(slots, thread, threads);
}

void run_on_threads(run& repeat, unsigned threads, const work& what) {
    const std::chrono::milliseconds time(repeat.operations());
    std::atomic<bool> is_over{false};
    std::barrier beginning(threads + 1);
    std::vector<share> shares(threads);
    std::vector<std::thread> run_threads;
    for (unsigned number = 0; number != threads; ++number)
        run_threads.emplace_back(
            [&, number] { shares[number] = do_share(number, what, is_over, beginning); });
    const auto begin = std::chrono::steady_clock::now();
    repeat.measure([&] {
        beginning.arrive_and_wait();
        std::this_thread::sleep_for(time);
        is_over.store(true, std::memory_order_relaxed);
        for (std::thread& one : run_threads)
            one.join();
    });
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    report(repeat, shares, passed.count());
}

}  // namespace sluice::bench::range_locks

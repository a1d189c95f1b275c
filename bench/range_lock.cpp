// The cost of a lock on ranges: alone, next to others, and with conflicts. Subjects are ours, no
// lock at all (limit), and the peers of bench/range_lock_peers. Repeats are bounded by time: the
// harness's number of operations is milliseconds until a repeat reports its number of pairs of lock
// and unlock.

#include <string>
#include <string_view>

#include "bench/harness/benchmark.hpp"
#include "bench/range_lock_once.hpp"
#include "bench/range_lock_queue.hpp"
#include "bench/range_lock_subjects.hpp"
#include "bench/range_lock_workloads.hpp"

namespace sluice::bench::range_locks {
namespace {

constexpr std::uint64_t milliseconds = 100;             // per repeat; a tenth with --quick
constexpr std::uint64_t milliseconds_starvation = 600;  // enough for the wide request to be granted

workload_options options(const std::string& series, const std::string& parameter, std::uint64_t value) {
    return {.name = series + "_" + std::to_string(value),
            .series = {{.name = series, .parameter = parameter, .value = static_cast<double>(value)}},
            .metric = metric::cpu_per_operation,
            .operations = milliseconds};
}

template <std::size_t batch>
void add_disjoint(benchmark& bench, const std::string& name, under_lock what) {
    for (const unsigned threads : {1U, 2U, 4U, 8U}) {
        workload& added = bench.add(options(name, "threads", threads));
        for_each_subject([&]<class Lock>(const char* subject) {
            added.subject(subject, [=](run& r) { disjoint<Lock, batch>(r, threads, what); });
        });
    }
}

void add_held(benchmark& bench, unsigned threads) {
    const std::string name = "held_by_" + std::to_string(threads) + "_threads";
    for (const std::size_t count : {16, 256, 4096, 20'000}) {
        workload& added = bench.add(options(name, "held ranges", count));
        for_each_subject([&]<class Lock>(const char* subject) {
            if constexpr (has_ranges<Lock>)
                added.subject(subject, [=](run& r) { held<Lock>(r, threads, count); });
        });
    }
}

void add_overlapping(benchmark& bench) {
    for (const unsigned percent : {0U, 50U, 90U, 100U}) {
        workload& added = bench.add(options("readers", "% shared", percent));
        for_each_subject([&]<class Lock>(const char* subject) {
            added.subject(subject, [=](run& r) {
                overlapping<Lock>(r, 4, {.slots = words::count, .length_max = 32, .shared_percent = percent});
            });
        });
    }
    for (const unsigned threads : {2U, 4U, 8U}) {
        workload& added = bench.add(options("overlap", "threads", threads));
        for_each_subject([&]<class Lock>(const char* subject) {
            added.subject(subject, [=](run& r) {
                overlapping<Lock>(r, threads, {.slots = 8, .length_max = 4, .shared_percent = 0});
            });
        });
    }
}

// A count of conflicts makes this quadratic. Building the longest queues alone takes minutes.
template <class Lock>
constexpr std::size_t queue_max = 100'000;
template <>
constexpr std::size_t queue_max<kara_tree> = 10'000;

void add_queue(benchmark& bench, const std::string& name, queued what) {
    for (const std::size_t waiting : {1, 10, 100, 1'000, 10'000, 32'000, 100'000}) {
        workload& added = bench.add(options(name, "waiting", waiting));
        for_each_subject([&]<class Lock>(const char* subject) {
            if constexpr (has_queue<Lock>) {
                added.subject(subject, [=](run& r) {
                    if (waiting > queue_max<Lock>) return r.skip("takes minutes");
                    rotate_queue<Lock>(r, waiting, what);
                });
            }
        });
    }
}

void add_starvation(benchmark& bench, const std::string& name, whom counted) {
    workload& added = bench.add(
        {.name = name, .metric = metric::operations_per_second, .operations = milliseconds_starvation});
    for_each_subject([&]<class Lock>(const char* subject) {
        if constexpr (excludes<Lock>) added.subject(subject, [=](run& r) { starvation<Lock>(r, counted); });
    });
}

void add_height(benchmark& bench) {
    for (const unsigned height : {1U, 2U, 3U, 4U, 6U, 8U, 10U, 12U, 14U, 16U}) {
        workload& added = bench.add(options("height", "levels", height));
        for_each_subject([&]<class Lock>(const char* subject) {
            if constexpr (has_height<Lock>)
                added.subject(subject, [=](run& r) { held<Lock>(r, 2, 4096, height); });
        });
    }
}

// For the resource of W1: a new lock, one recently used by many threads, and a range that is held.
// Reserves of pools are not included.
void add_memory(benchmark& bench) {
    workload& made = bench.add({.name = "memory_of_a_lock", .metric = metric::bytes});
    workload& hot =
        bench.add({.name = "memory_of_a_hot_lock", .metric = metric::bytes, .operations = milliseconds});
    workload& one_held = bench.add({.name = "memory_of_a_held_range", .metric = metric::bytes});
    for_each_subject([&]<class Lock>(const char* subject) {
        if constexpr (excludes<Lock>) {
            made.subject(subject, [](run& r) { r.occupies(object_bytes<Lock>()); });
            hot.subject(subject, [](run& r) { r.occupies(object_bytes_when_hot<Lock>(r)); });
            one_held.subject(subject, [](run& r) { r.occupies(Lock::held_bytes); });
        }
    });
}

void add_all(benchmark& bench) {
    // First, while the nodes of the list locks come from their pool in the order of their
    // addresses: a list of 20,000 nodes that others have used before is walked several times more
    // slowly.
    add_held(bench, 1);
    add_held(bench, 2);
    add_disjoint<1>(bench, "w1", under_lock::write);
    add_disjoint<1>(bench, "w1_lock_only", under_lock::nothing);
    add_disjoint<16>(bench, "w2", under_lock::write);
    add_disjoint<16>(bench, "w2_lock_only", under_lock::nothing);
    add_overlapping(bench);
    add_queue(bench, "queue", queued::equal);
    add_queue(bench, "queue_unequal", queued::unequal);
    add_queue(bench, "queue_readers", queued::readers);
    add_starvation(bench, "starvation_wide", whom::wide);
    add_starvation(bench, "starvation_small", whom::small);
    add_starvation(bench, "starvation_small_alone", whom::small_alone);
    add_height(bench);
    add_memory(bench);
}

}  // namespace
}  // namespace sluice::bench::range_locks

int main(int argc, char** argv) {
    using namespace sluice::bench;
    if (argc > 1 and std::string_view(argv[1]) == "--once") return range_locks::run_once(argc, argv);
    benchmark bench("range_lock",
                    "What does a lock on ranges cost alone, next to others, and with conflicts?");
    range_locks::add_all(bench);
    return bench.main(argc, argv);
}

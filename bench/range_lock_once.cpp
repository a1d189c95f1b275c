#include "bench/range_lock_once.hpp"

#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "bench/range_lock_subjects.hpp"
#include "bench/range_lock_workloads.hpp"

namespace sluice::bench::range_locks {

namespace {

using pairs_of = std::function<void(std::uint64_t pairs)>;

template <class Lock, std::size_t batch>
pairs_of disjoint_pairs(under_lock what) {
    return [what](std::uint64_t pairs) {
        (void)area();
        Lock lock(the_area);
        batches<Lock, batch> work(lock, queue_of(0, 1));
        for (std::uint64_t done = 0; done < pairs; done += batch)
            work.next(what);
    };
}

template <class Lock>
pairs_of held_pairs(std::size_t count) {
    return [count](std::uint64_t pairs) {
        Lock lock(the_area);
        const long_held<Lock> others(lock, count);
        batches<Lock, 1> work(lock, odd_queue_of(0, 1));
        for (std::uint64_t done = 0; done < pairs; ++done)
            work.next(under_lock::nothing);
    };
}

// Returns all subjects and workloads by "SUBJECT WORKLOAD".
std::map<std::string, pairs_of> all_that_runs_once() {
    std::map<std::string, pairs_of> all;
    for_each_subject([&]<class Lock>(const char* name) {
        const std::string subject = std::string(name) + " ";
        all[subject + "w1"] = disjoint_pairs<Lock, 1>(under_lock::write);
        all[subject + "w1_lock_only"] = disjoint_pairs<Lock, 1>(under_lock::nothing);
        all[subject + "w2"] = disjoint_pairs<Lock, 16>(under_lock::write);
        all[subject + "w2_lock_only"] = disjoint_pairs<Lock, 16>(under_lock::nothing);
        if constexpr (has_ranges<Lock>) all[subject + "held_256"] = held_pairs<Lock>(256);
    });
    return all;
}

}  // namespace

int run_once(int argc, const char* const* argv) {
    const auto all = all_that_runs_once();
    if (argc == 2) {
        for (const auto& [name, unused] : all)
            std::printf("%s\n", name.c_str());
        return 0;
    }
    std::uint64_t pairs = 0;
    const std::string_view number = argc == 5 ? argv[4] : "";
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), pairs);
    const auto chosen = argc == 5 ? all.find(std::string(argv[2]) + " " + argv[3]) : all.end();
    if (chosen == all.end() or parsed.ec != std::errc() or parsed.ptr != number.data() + number.size()) {
        std::fprintf(
            stderr,
            "usage: %s --once [SUBJECT WORKLOAD PAIRS]; without arguments, lists subjects and workloads\n",
            argv[0]);
        return 2;
    }
    chosen->second(pairs);
    return 0;
}

}  // namespace sluice::bench::range_locks

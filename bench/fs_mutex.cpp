// Locks between processes: the throughput tables of docs/benchmarks/fs_mutex.md. 1, 2, 4 and 8
// processes lock and unlock 1, 2, 4 or 8 entities, all the same ones or each its own, on a disk and
// in memory. `sluice bench fsmutex` runs the same benchmark.

#include <cstdlib>
#include <string>

#include "bench/harness/benchmark.hpp"
#include "sluice/cli/lock_benchmark/benchmark_subjects.hpp"

namespace sluice::bench {
namespace {

using lock_benchmark::workload;

void run_workload(run& repeat, const lock_benchmark::benchmark_subject& who, const workload& where,
                  const std::string& directory) {
    lock_benchmark::round round(who, where, directory);
    repeat.measure([&] { repeat.did(round.run_for(std::chrono::milliseconds(repeat.operations()))); });
    const lock_benchmark::outcome ended = round.end();
    repeat.note("worker_cpu_ns_per_op", ended.cpu_ns_per_operation);
    repeat.note("slowest_to_fastest", ended.slowest_to_fastest);
}

void add_workload(benchmark& all, const std::string& volume, const workload& where,
                  const std::string& directory) {
    auto& work = all.add({.name = volume + (where.is_disjoint ? "_disjoint_" : "_same_") +
                                  std::to_string(where.processes) + "x" + std::to_string(where.entities),
                          .metric = metric::operations_per_second,
                          .operations = 100});  // milliseconds
    for (const lock_benchmark::benchmark_subject& who : lock_benchmark::benchmark_subjects())
        if (takes_part(who, where))
            work.subject(who.name, [&who, where, directory](run& repeat) {
                run_workload(repeat, who, where, directory);
            });
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark locks("fs_mutex", "How many times per second do processes lock and unlock a set of entities?");
    const char* const chosen = std::getenv("TMPDIR");
    const std::string disk = chosen != nullptr ? chosen : ".";
    for (const auto& [volume, directory] :
         {std::pair<std::string, std::string>{"disk", disk}, {"memory", "/dev/shm"}})
        for (const bool is_disjoint : {false, true})
            for (const unsigned processes : {1U, 2U, 4U, 8U})
                for (const unsigned entities : {1U, 2U, 4U, 8U})
                    if (processes != 1 or not is_disjoint)
                        add_workload(
                            locks, volume,
                            {.processes = processes, .entities = entities, .is_disjoint = is_disjoint},
                            directory);
    return locks.main(argc, argv);
}

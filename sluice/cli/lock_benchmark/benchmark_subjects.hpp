#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/cli/lock_benchmark/worker_processes.hpp"

namespace sluice::lock_benchmark {

/// The setup of a process: a directory of the benchmark, its number among all processes, and the
/// numbers to lock.
struct lock_setup {
    std::string directory;
    unsigned process = 0;
    unsigned processes = 1;
    std::vector<std::uint64_t> numbers;  // ascending
};

/// A lock implementation to measure.
struct benchmark_subject {
    std::string name;
    std::unique_ptr<locker> (*make)(const lock_setup&);
    /// Returns false for lower bounds, which exclude no other process and run alone.
    bool excludes = true;
    /// Whether it takes part only in workloads with more than one process.
    bool needs_company = false;
};

/// A value of benchmark_subject::make.
template <class Locker>
[[nodiscard]] std::unique_ptr<locker> make_locker(const lock_setup& here) {
    return std::make_unique<Locker>(here);
}

/// Our algorithms; the usual alternatives: flock(2), fcntl(2) locks of open file descriptions and
/// of processes, lockf(3), exclusively created files, robust mutexes of pthreads in shared memory,
/// each locking several entities one after the other in ascending order; and limits, the lower
/// bounds:
///   - limit.atomic_append, limit.byte_ranges, limit.lock_files: only the system calls that the
///     algorithm requires. Those of atomic_append exclude no other process, so they run alone.
///   - limit.hand_off: processes in a ring, each of which wakes the next by a futex and goes
///     to sleep: the minimum for a lock with strict FIFO order and sleeping waiters.
[[nodiscard]] const std::vector<benchmark_subject>& benchmark_subjects();

// The three parts of that list.
[[nodiscard]] std::vector<benchmark_subject> ours();
[[nodiscard]] std::vector<benchmark_subject> peers();
[[nodiscard]] std::vector<benchmark_subject> limits();

/// A combination of parameters, one column of the tables.
struct workload {
    unsigned processes = 1;
    unsigned entities = 1;
    bool is_disjoint = false;  // whether each process has entities of its own
};

/// The result of one subject in one workload.
struct outcome {
    double cpu_ns_per_operation = 0;
    double slowest_to_fastest = 1;
};

[[nodiscard]] bool takes_part(const benchmark_subject& who, const workload& where) noexcept;

/// The processes of one workload, ready to start, in a new directory inside `directory`, which the
/// destructor removes. Errors: ends the program if it cannot be created.
class round {
public:
    round(const benchmark_subject& who, const workload& where, const std::string& directory);
    round(const round&) = delete;
    round& operator=(const round&) = delete;
    ~round();

    /// Runs the processes, and returns how often they locked and unlocked. Blocks: for that long.
    std::uint64_t run_for(std::chrono::milliseconds duration) { return workers_.run_for(duration); }
    /// Ends the processes, and returns the other results.
    [[nodiscard]] outcome end();

private:
    std::string directory_;
    worker_processes workers_;
};

}  // namespace sluice::lock_benchmark

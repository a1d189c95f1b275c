#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/cli/contest/crowd.hpp"

namespace sluice::contest {

/// Where a process stands: in a folder of the contest's own, one of so many, wanting these numbers.
struct standing {
    std::string folder;
    unsigned process = 0;
    unsigned processes = 1;
    std::vector<std::uint64_t> numbers;  // ascending
};

/// Something to lock with.
struct contestant {
    std::string name;
    std::unique_ptr<locker> (*make)(const standing&);
    /// Whether it excludes anybody. What does not is what locking costs at least, and runs alone.
    bool excludes = true;
    /// Whether it is of a cell with more than one process only.
    bool needs_company = false;
};

/// Our algorithms; what a program would take otherwise: flock(2), fcntl(2) locks of open file descriptions
/// and of processes, lockf(3), exclusively created files, robust mutexes of pthreads in shared memory, all of
/// them one after the other in ascending order if there are several; and limits, the least it can cost:
/// - limit.atomic_append, limit.byte_ranges, limit.lock_files: the system calls that algorithm has to make
///   and nothing else. Those of atomic_append exclude nobody, so they run alone.
/// - limit.hand_over: processes in a ring, each waking the next by a futex and going to sleep: what a lock
///   that is granted strictly in order has to do at least, if who waits sleeps.
[[nodiscard]] const std::vector<contestant>& contestants();

// Their parts.
[[nodiscard]] std::vector<contestant> ours();
[[nodiscard]] std::vector<contestant> peers();
[[nodiscard]] std::vector<contestant> limits();

/// One of the seed's cells.
struct cell {
    unsigned processes = 1;
    unsigned entities = 1;
    bool is_disjoint = false;  // whether each process has entities of its own
};

/// Of a contestant in a cell.
struct outcome {
    double cpu_ns_per_operation = 0;
    double slowest_to_fastest = 1;
};

[[nodiscard]] bool takes_part(const contestant& who, const cell& where) noexcept;

/// The processes of one cell, ready to start, in a folder made for them inside `folder`. Errors: stops the
/// program if that cannot be made. Its destructor removes the folder.
class round {
public:
    round(const contestant& who, const cell& where, const std::string& folder);
    round(const round&) = delete;
    round& operator=(const round&) = delete;
    ~round();

    /// How often they locked and unlocked. Blocks: for that long.
    std::uint64_t run_for(std::chrono::milliseconds duration) { return workers_.run_for(duration); }
    /// Ends them, and tells what else there is to tell.
    [[nodiscard]] outcome end();

private:
    std::string folder_;
    crowd workers_;
};

}  // namespace sluice::contest
